package listen

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
)

const (
	// tenantShare is the ratio of a tenant's bound to that of one caller.
	tenantShare = 5
	// retryAfter is the value of Retry-After when a bound is reached.
	retryAfter = 5 * time.Second
)

// busyProblem is the body of the answer over a bound. busyAnswer is the whole
// answer to a connection whose request is not read.
const (
	busyProblem = `{"type":"urn:countersign:problem:busy","title":"Busy","status":503,"detail":"too many connections; close some, or try again later","code":"busy"}`
	busyAnswer  = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\nRetry-After: 5\r\nConnection: close\r\n\r\n" + busyProblem
)

// The bounds by name.
const (
	boundAll     = "all"
	boundAddress = "address"
	boundCaller  = "caller"
	boundTenant  = "tenant"
)

// key identifies a counter: of all connections, an address, a caller or a
// tenant.
type key struct{ bound, of string }

// gate counts open connections. It is safe for concurrent use.
type gate struct {
	limits  Limits
	refused func(bound string)

	mu   sync.Mutex
	held map[key]int
}

func newGate(limits Limits, refused func(bound string)) *gate {
	if refused == nil {
		refused = func(string) {}
	}
	return &gate{limits: limits, refused: refused, held: make(map[key]int)}
}

func (g *gate) most(bound string) int {
	switch bound {
	case boundAddress:
		return g.limits.AddressConnections
	case boundCaller:
		return g.limits.CallerConnections
	case boundTenant:
		return g.limits.CallerConnections * tenantShare
	}
	return g.limits.Connections
}

// holding is a counted connection, or a counted request that came through a
// proxy. The mutex of its gate guards it.
type holding struct {
	gate     *gate
	keys     []key
	released bool
}

// take counts one more for every key. It returns nil over a bound.
func (g *gate) take(keys ...key) *holding {
	h := &holding{gate: g}
	if _, ok := h.replace(keys); !ok {
		return nil
	}
	return h
}

// replace moves a holding to other keys. Over a bound it changes nothing, counts
// the refusal and returns the bound.
func (h *holding) replace(keys []key) (bound string, ok bool) {
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	if h.released {
		return "", true
	}
	h.count(-1)
	for _, k := range keys {
		if h.gate.held[k] >= h.gate.most(k.bound) {
			h.count(1)
			h.gate.refused(k.bound)
			return k.bound, false
		}
	}
	h.keys = keys
	h.count(1)
	return "", true
}

// release stops counting a holding. It may be called twice.
func (h *holding) release() {
	h.gate.mu.Lock()
	defer h.gate.mu.Unlock()
	h.count(-1)
	h.keys, h.released = nil, true
}

func (h *holding) count(n int) {
	for _, k := range h.keys {
		if h.gate.held[k] += n; h.gate.held[k] == 0 {
			delete(h.gate.held, k)
		}
	}
}

// admitting is a listener that refuses connections over a bound.
type admitting struct {
	net.Listener
	gate *gate
}

// Accept returns the next connection within the bounds.
func (l *admitting) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if admitted := l.gate.admit(c); admitted != nil {
			return admitted, nil
		}
		refuse(c)
	}
}

// admit counts a connection until it is closed. It returns nil over a bound. A
// trusted proxy's address is not counted.
func (g *gate) admit(c net.Conn) *connection {
	keys := []key{{bound: boundAll}}
	from := addressOf(c.RemoteAddr().String())
	proxied := within(from, g.limits.TrustedProxies)
	if !proxied {
		keys = append(keys, addressKey(from))
	}
	h := g.take(keys...)
	if h == nil {
		return nil
	}
	return &connection{Conn: c, holding: h, proxied: proxied}
}

// refuse answers a connection without reading from it, and closes it.
func refuse(c net.Conn) {
	// The answer fits the buffer of any new connection.
	_ = c.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = c.Write([]byte(busyAnswer)) // the client sees in any case that it is closed
	_ = c.Close()
}

// addressKey returns the key of a client's address.
func addressKey(addr netip.Addr) key { return key{boundAddress, Network(addr).String()} }

// Network returns the addresses that count as one client: an IPv4 address, or the /64
// network of an IPv6 address.
func Network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap()
	network, _ := addr.Prefix(min(addr.BitLen(), 64)) // fails only for lengths that no address has
	return network
}

// connection is an open, counted connection.
type connection struct {
	net.Conn
	holding *holding
	// proxied reports whether the connection is that of a trusted proxy.
	proxied bool
}

// Close closes the connection and stops counting it.
func (c *connection) Close() error {
	defer c.holding.release()
	return c.Conn.Close()
}

// CloseWrite closes the writing side, which net/http does before it closes a
// connection whose client may still be sending.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type connectionKey struct{}

// withConnection is the ConnContext of the server.
func withConnection(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, c)
}

// SetCaller counts the connection of a request, or the request itself if it came
// through a trusted proxy, for its authenticated caller and the caller's tenant
// instead of its address. The error is fault.Busy if either has too many open
// connections. Without a server of this package it does nothing.
func SetCaller(ctx context.Context, caller, tenant string) error {
	x, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil
	}
	keys := []key{{boundCaller, caller}, {boundTenant, tenant}}
	if !x.proxied {
		keys = append(keys, key{bound: boundAll})
	}
	bound, ok := x.holding.replace(keys)
	if ok {
		return nil
	}
	x.closes = true
	return &fault.Error{Kind: fault.Busy, After: retryAfter,
		Text: "this " + bound + " has too many connections open here; close some, or try again later"}
}
