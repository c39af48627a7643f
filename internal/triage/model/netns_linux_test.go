package model_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

// TestNothingLeavesTheMachine asks models in a network namespace in which every
// address is routed to the loopback interface, and counts each packet there
// that is not to or from the model server.
func TestNothingLeavesTheMachine(t *testing.T) {
	t.Parallel()
	if os.Getenv("MODEL_TEST_NAMESPACE") != "" {
		askInNamespace(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestNothingLeavesTheMachine$", "-test.v")
	cmd.Env = append(os.Environ(), "MODEL_TEST_NAMESPACE=1", "HTTP_PROXY=http://198.51.100.1:3128", "GODEBUG=netdns=go")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}

	out, err := cmd.CombinedOutput()

	if err != nil && cmd.ProcessState == nil {
		t.Skipf("network namespaces are forbidden here: %v", err)
	}
	if err != nil {
		t.Errorf("the process in a namespace: %v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skipf("the namespace cannot be set up here:\n%s", out)
	}
}

func askInNamespace(t *testing.T) {
	if err := leadEverythingToLoopback(); err != nil {
		t.Skipf("set up the namespace: %v", err)
	}
	server := modeltest.New(t, modeltest.Config{RedirectTo: "http://198.51.100.2/v1/chat/completions"})
	u, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	seen, err := watch(t, netip.MustParseAddrPort(u.Host))
	if err != nil {
		t.Skipf("watch the interface: %v", err)
	}
	seen.want(t, "a packet elsewhere", func() { sendElsewhere(t) })

	tier, _ := at(t, model.ServerConfig{URL: server.URL()})
	for range 3 {
		if _, err := tier.Ask(t.Context(), question()); err != nil {
			t.Error(err)
		}
	}
	for _, f := range modeltest.Faults() {
		server.Recover()
		tier, _ := at(t, model.ServerConfig{URL: server.URL()})
		if err := tier.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		if f != modeltest.Silent {
			server.Fail(f)
			_, _ = tier.Ask(t.Context(), question()) // most fail, which other tests check
		}
	}
	for _, address := range []string{
		"http://8.8.8.8:8080", "http://[2606:4700::1111]:8080", "http://198.51.100.3:8080", "http://[::ffff:198.51.100.3]:8080", "http://[2001:db8::3]:8080", "http://10.1.2.3:8080", "http://169.254.169.254",
	} {
		tier, _ := at(t, model.ServerConfig{URL: address})
		_, err := tier.Ask(t.Context(), question())
		wantKind(t, err, model.Remote)
	}

	if got := seen.packets(t); len(got) > 0 {
		t.Errorf("%d packets were not to or from the model server, the first %s", len(got), got[0])
	}
}

// sendElsewhere sends packets that the watcher must see, so that the test can
// fail.
func sendElsewhere(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: 53, Addr: [4]byte{198, 51, 100, 4}}); err != nil {
		t.Fatal(err)
	}
}

// leadEverythingToLoopback brings the loopback interface up and makes every
// address local.
func leadEverythingToLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("bring lo up: %w", err)
	}
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		if err := addLocalRoute(family); err != nil {
			return fmt.Errorf("add a route: %w", err)
		}
	}
	return nil
}

// addLocalRoute is `ip route add local default dev lo` over netlink. The
// loopback interface is the first of a namespace.
func addLocalRoute(family uint8) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	const length = unix.SizeofNlMsghdr + unix.SizeofRtMsg + 8
	m := binary.NativeEndian.AppendUint32(nil, length)
	m = binary.NativeEndian.AppendUint16(m, unix.RTM_NEWROUTE)
	m = binary.NativeEndian.AppendUint16(m, unix.NLM_F_REQUEST|unix.NLM_F_CREATE|unix.NLM_F_ACK)
	m = append(m, 1, 0, 0, 0, 0, 0, 0, 0)
	m = append(m, family, 0, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_STATIC, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0)
	m = binary.NativeEndian.AppendUint16(m, 8)
	m = binary.NativeEndian.AppendUint16(m, unix.RTA_OIF)
	m = binary.NativeEndian.AppendUint32(m, 1)
	if err := unix.Sendto(fd, m, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < 20 {
		return fmt.Errorf("%d bytes of an answer: %w", n, err)
	}
	if code := int32(binary.NativeEndian.Uint32(answer[16:])); code != 0 {
		return syscall.Errno(-code)
	}
	return nil
}

// watcher sees the packets on the loopback interface.
type watcher struct {
	fd     int
	server netip.AddrPort
}

func watch(t *testing.T, server netip.AddrPort) (watcher, error) {
	t.Helper()
	all := binary.BigEndian.Uint16(binary.NativeEndian.AppendUint16(nil, unix.ETH_P_ALL))
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(all))
	if err != nil {
		return watcher{}, err
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	// A burst must not be lost between two reads.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20) // the default size suffices if this is not allowed
	return watcher{fd, server}, nil
}

// want runs a function that sends a packet, and requires that it is seen.
func (w watcher) want(t *testing.T, what string, send func()) {
	t.Helper()
	send()
	if len(w.packets(t)) == 0 {
		t.Fatalf("%s was not seen", what)
	}
}

// packets returns the packets since the last call that are neither to nor from
// the server. Loopback delivers packets before the send returns.
func (w watcher) packets(t *testing.T) []string {
	t.Helper()
	var list []string
	buffer := make([]byte, 1<<16)
	for {
		n, _, err := unix.Recvfrom(w.fd, buffer, 0)
		if err == unix.EAGAIN {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if p := describe(buffer[:n]); p.from != w.server && p.to != w.server && !p.own {
			list = append(list, fmt.Sprintf("%+v", p))
		}
	}
}

// packet is the source and the destination of a packet. Own packets are those
// with which IPv6 configures interfaces.
type packet struct {
	from, to netip.AddrPort
	protocol byte
	own      bool
}

func describe(raw []byte) packet {
	var p packet
	var source, target netip.Addr
	header := 0
	switch {
	case len(raw) >= 20 && raw[0]>>4 == 4:
		header, p.protocol = int(raw[0]&15)*4, raw[9]
		source, target = netip.AddrFrom4([4]byte(raw[12:16])), netip.AddrFrom4([4]byte(raw[16:20]))
	case len(raw) >= 40 && raw[0]>>4 == 6:
		header, p.protocol = 40, raw[6]
		source, target = netip.AddrFrom16([16]byte(raw[8:24])), netip.AddrFrom16([16]byte(raw[24:40]))
		p.own = target.IsLinkLocalMulticast() || source.IsUnspecified()
	}
	var from, to uint16
	if (p.protocol == unix.IPPROTO_TCP || p.protocol == unix.IPPROTO_UDP) && len(raw) >= header+4 {
		from, to = binary.BigEndian.Uint16(raw[header:]), binary.BigEndian.Uint16(raw[header+2:])
	}
	p.from, p.to = netip.AddrPortFrom(source, from), netip.AddrPortFrom(target, to)
	return p
}
