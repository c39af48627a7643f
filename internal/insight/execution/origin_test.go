package execution_test

import (
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/config"
	"github.com/countersign-dev/countersign/internal/insight/execution"
)

func TestClientBehindTrustedProxies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ remote, forwarded, trusted, want string }{
		"no proxy":                      {"192.0.2.7:80", "", "", "192.0.2.7"},
		"a header that nobody trusts":   {"192.0.2.7:80", "198.51.100.1", "", "192.0.2.7"},
		"one proxy":                     {"10.0.0.1:80", "192.0.2.7", "10.0.0.0/8", "192.0.2.7"},
		"a proxy by its address":        {"10.0.0.1:80", "192.0.2.7", "10.0.0.1", "192.0.2.7"},
		"what the client wrote itself":  {"10.0.0.1:80", "198.51.100.1, 192.0.2.7", "10.0.0.0/8", "192.0.2.7"},
		"two proxies":                   {"10.0.0.1:80", "198.51.100.1, 192.0.2.7, 10.0.0.9", "10.0.0.0/8", "192.0.2.7"},
		"proxies all the way":           {"10.0.0.1:80", "10.0.0.3, 10.0.0.2", "10.0.0.0/8", "10.0.0.3"},
		"a proxy that says nothing":     {"10.0.0.1:80", "", "10.0.0.0/8", "10.0.0.1"},
		"a proxy that talks nonsense":   {"10.0.0.1:80", "192.0.2.7, unknown", "10.0.0.0/8", "10.0.0.1"},
		"version six":                   {"[2001:db8::1]:80", "2001:db8::2", "2001:db8::1", "2001:db8::2"},
		"four in six":                   {"[::ffff:10.0.0.1]:80", "192.0.2.7", "10.0.0.0/8", "192.0.2.7"},
		"a zone":                        {"[fe80::1%eth0]:80", "", "", "fe80::1"},
		"what has no address of a peer": {"@", "192.0.2.7", "10.0.0.0/8", ""},
	} {
		trusted, err := config.ParseNetworks(test.trusted)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = test.remote
		if test.forwarded != "" {
			r.Header.Set("X-Forwarded-For", test.forwarded)
		}

		if got := execution.OriginOf(r, execution.ViaAPI, "r", trusted); got.IP != test.want {
			t.Errorf("%s: OriginOf = %q, want %q", name, got.IP, test.want)
		}
	}
}

// FuzzOriginOf checks that the database accepts any user agent.
func FuzzOriginOf(f *testing.F) {
	f.Add("curl/8", "192.0.2.7", "10.0.0.1:1")
	f.Add("\x00\xff\u2028"+strings.Repeat("ä", 200), "a, b", "[::1%x]:1")
	f.Fuzz(func(t *testing.T, agent, forwarded, remote string) {
		trusted, err := config.ParseNetworks("10.0.0.0/8")
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = remote
		r.Header = map[string][]string{"User-Agent": {agent}, "X-Forwarded-For": {forwarded}}

		o := execution.OriginOf(r, execution.ViaMCP, "id", trusted)

		if len(o.UserAgent) > execution.MaxAgentBytes || !utf8.ValidString(o.UserAgent) || strings.ContainsRune(o.UserAgent, 0) {
			t.Errorf("OriginOf = %+q", o)
		}
	})
}
