package model_test

import (
	"context"
	"encoding/binary"

	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

// elsewhere starts a server at a non-loopback address of this machine, and
// counts its connections. If the machine has none, it returns a documentation
// address without a listener.
func elsewhere(t *testing.T) (netip.AddrPort, *atomic.Int32) {
	t.Helper()
	var reached atomic.Int32
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || p.Addr().IsLoopback() || !p.Addr().Is4() {
			continue
		}
		listener, err := net.Listen("tcp", netip.AddrPortFrom(p.Addr(), 0).String())
		if err != nil {
			continue
		}
		go accept(listener, &reached) // until the listener is closed
		t.Cleanup(func() { _ = listener.Close() })
		return netip.MustParseAddrPort(listener.Addr().String()), &reached
	}
	return netip.MustParseAddrPort("192.0.2.1:8080"), &reached
}

func accept(l net.Listener, reached *atomic.Int32) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		reached.Add(1)
		_ = conn.Close() // no data is expected on it
	}
}

// resolver returns a resolver that answers each query with the next addresses,
// and repeats the last ones.
func resolver(answers ...[]netip.Addr) *net.Resolver {
	var asked atomic.Int32
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		client, server := net.Pipe()
		go answerDNS(server, func() []netip.Addr { return answers[min(int(asked.Add(1))-1, len(answers)-1)] }) // until client closes it
		return client, nil
	}}
}

// answerDNS answers queries for IPv4 addresses over a stream.
func answerDNS(conn net.Conn, next func() []netip.Addr) {
	defer func() { _ = conn.Close() }()
	for {
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		raw := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, raw); err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(raw) != nil {
			return
		}
		m.Response, m.Additionals = true, nil
		if q := m.Questions[0]; q.Type == dnsmessage.TypeA {
			for _, addr := range next() {
				m.Answers = append(m.Answers, dnsmessage.Resource{
					Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class},
					Body:   &dnsmessage.AResource{A: addr.As4()},
				})
			}
		}
		packed, err := m.Pack()
		if err != nil {
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(packed))), packed...)); err != nil {
			return
		}
	}
}

// at returns the model of a server at a URL, and its refusals.
func at(t *testing.T, c model.ServerConfig) (model.Tier, *[]model.Refused) {
	t.Helper()
	var refused []model.Refused
	tier := open(t, model.Config{
		Servers: map[string]model.ServerConfig{"test": c}, Tiers: map[string]model.TierConfig{"t1": {Server: "test", Model: "test-model"}},
	}, model.Observer{Refused: func(r model.Refused) { refused = append(refused, r) }}, time.Hour)
	return tier, &refused
}

func wantRefused(t *testing.T, got []model.Refused, want model.Refusal) {
	t.Helper()
	if len(got) != 1 || got[0].Refusal != want || got[0].Server != "test" {
		t.Errorf("observed the refusals %+v, want one of %q", got, want)
	}
}

func TestOnlyLocalAddresses(t *testing.T) {
	t.Parallel()
	away, reached := elsewhere(t)
	port := away.Port()
	for name, c := range map[string]model.ServerConfig{
		"a literal address":       {URL: "http://" + away.String()},
		"an IPv4-mapped address":  {URL: "http://" + netip.AddrPortFrom(netip.AddrFrom16(away.Addr().As16()), port).String()},
		"a public address":        {URL: "http://8.8.8.8:8080"},
		"a public IPv6 address":   {URL: "http://[2606:4700::1111]:8080"},
		"a metadata address":      {URL: "http://169.254.169.254", Networks: []netip.Prefix{netip.MustParsePrefix("169.254.169.254/32")}},
		"a name":                  {URL: "http://models.test:" + away.String()[strings.LastIndex(away.String(), ":")+1:], Resolver: resolver([]netip.Addr{away.Addr()})},
		"a name of two addresses": {URL: "http://models.test:" + away.String()[strings.LastIndex(away.String(), ":")+1:], Resolver: resolver([]netip.Addr{away.Addr(), netip.MustParseAddr("192.0.2.8")})},
		"another network":         {URL: "http://" + away.String(), Networks: []netip.Prefix{netip.MustParsePrefix("10.254.254.254/32")}},
	} {
		t.Run(name, func(t *testing.T) {
			tier, refused := at(t, c)

			_, err := tier.Ask(t.Context(), question())

			wantKind(t, err, model.Remote)
			wantRefused(t, *refused, model.RefusedAddress)
		})
	}
	if n := reached.Load(); n > 0 {
		t.Errorf("the listener elsewhere was reached %d times", n)
	}
}

// TestRebinding has a name that changes its address between two look-ups.
func TestRebinding(t *testing.T) {
	t.Parallel()
	away, reached := elsewhere(t)
	server := modeltest.New(t, modeltest.Config{})
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	set, err := model.Open(model.Config{
		Servers: map[string]model.ServerConfig{"test": {
			URL: "http://models.test:" + u.Port(), Resolver: resolver([]netip.Addr{netip.MustParseAddr("127.0.0.1")}, []netip.Addr{away.Addr()}),
		}},
		Tiers: map[string]model.TierConfig{"t1": {Server: "test", Model: "test-model"}},
	}, model.Observer{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	tier, _ := set.Tier("t1")
	if _, err := tier.Ask(t.Context(), question()); err != nil {
		t.Fatalf("Ask() while the name leads to this machine = %v", err)
	}

	set.Close() // so that the next question connects again
	_, err = tier.Ask(t.Context(), question())

	wantKind(t, err, model.Remote)
	if got := len(server.Requests()); got != 1 || reached.Load() > 0 {
		t.Errorf("the server was asked %d questions and the listener elsewhere reached %d times", got, reached.Load())
	}
}

func TestNamedNetworksAndSockets(t *testing.T) {
	t.Parallel()
	server := modeltest.New(t, modeltest.Config{})
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "model.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	front := &http.Server{Handler: server.Handler()}
	go front.Serve(listener) // until it is closed
	t.Cleanup(func() { _ = front.Close() })
	for name, c := range map[string]model.ServerConfig{
		"a name of this machine": {URL: "http://models.test:" + u.Port(), Resolver: resolver([]netip.Addr{netip.MustParseAddr("127.0.0.1")})},
		"a mapped loopback":      {URL: "http://[::ffff:127.0.0.1]:" + u.Port()},
		"with the path /v1":      {URL: server.URL() + "/v1"},
		"a Unix socket":          {URL: "unix://" + socket},
	} {
		t.Run(name, func(t *testing.T) {
			tier, _ := at(t, c)
			if _, err := tier.Ask(t.Context(), question()); err != nil {
				t.Errorf("Ask() = %v", err)
			}
		})
	}
}

// TestRedirect has a server redirect to another one on this machine, which the
// guard would allow.
func TestRedirect(t *testing.T) {
	t.Parallel()
	var reached atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(other.Close)
	server := modeltest.New(t, modeltest.Config{RedirectTo: other.URL})
	tier, refused := at(t, model.ServerConfig{URL: server.URL()})
	if err := tier.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Fail(modeltest.Redirect)

	_, err := tier.Ask(t.Context(), question())

	wantKind(t, err, model.Remote)
	wantRefused(t, *refused, model.RefusedRedirect)
	if reached.Load() > 0 {
		t.Error("the redirect was followed")
	}
}

// TestRemoteModels has local servers report that a model is remote.
func TestRemoteModels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]modeltest.Config{
		"a cloud model's name":         {Dialect: model.Ollama, Model: "gpt-oss:120b-cloud"},
		"a back end of a provider":     {Dialect: model.Lemonade, Model: "fireworks.qwen3", Recipe: "cloud"},
		"a collection of models":       {Dialect: model.Lemonade, Model: "router", Recipe: "collection.router"},
		"a back end elsewhere":         {Dialect: model.Lemonade, BackEnd: "http://10.0.0.7:8001/v1"},
		"a back end without a recipe":  {Dialect: model.Lemonade, Recipe: " "},
		"a back end of a strange name": {Dialect: model.Lemonade, BackEnd: "http://127.0.0.1.example.com/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := modeltest.New(t, c)
			of := server.Models()
			var refused []model.Refused
			tier := open(t, of, model.Observer{Refused: func(r model.Refused) { refused = append(refused, r) }}, time.Hour)

			_, err := tier.Ask(t.Context(), question())

			wantKind(t, err, model.Remote)
			wantRefused(t, refused, model.RefusedModel)
			if n := len(server.Requests()); n > 0 {
				t.Errorf("the server was asked %d questions", n)
			}
		})
	}
}

// TestProxyVariables runs in a separate process, since net/http reads the
// variables once. The proxy is on loopback, which the guard allows, and would
// forward the question elsewhere.
func TestProxyVariables(t *testing.T) {
	t.Parallel()
	if address := os.Getenv("MODEL_TEST_SERVER"); address != "" {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		tier, _ := at(t, model.ServerConfig{URL: "http://models.test:" + u.Port(), Resolver: resolver([]netip.Addr{netip.MustParseAddr("127.0.0.1")})})
		if _, err := tier.Ask(t.Context(), question()); err != nil {
			t.Error(err)
		}
		// Without the transport's settings the variables would take effect.
		request, err := http.NewRequest(http.MethodGet, "http://models.test", nil)
		if err != nil {
			t.Fatal(err)
		}
		if proxy, err := http.ProxyFromEnvironment(request); proxy == nil || err != nil {
			t.Errorf("ProxyFromEnvironment() = %v, %v, want the proxy", proxy, err)
		}
		return
	}
	var reached atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	t.Cleanup(proxy.Close)
	server := modeltest.New(t, modeltest.Config{})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestProxyVariables$")
	cmd.Env = append(os.Environ(), "MODEL_TEST_SERVER="+server.URL(), "HTTP_PROXY="+proxy.URL, "http_proxy="+proxy.URL, "ALL_PROXY="+proxy.URL, "NO_PROXY=")

	out, err := cmd.CombinedOutput()

	if err != nil {
		t.Fatalf("the process: %v\n%s", err, out)
	}
	if got := len(server.Requests()); got != 1 || reached.Load() > 0 {
		t.Errorf("the server was asked %d questions and the proxy reached %d times, want 1 and 0", got, reached.Load())
	}
}
