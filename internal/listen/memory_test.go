package listen_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
)

// memory is a listener with connections in memory, for use with synctest.
type memory struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newMemory() *memory {
	return &memory{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (m *memory) Accept() (net.Conn, error) {
	select {
	case c := <-m.conns:
		return c, nil
	case <-m.closed:
		return nil, net.ErrClosed
	}
}

func (m *memory) Close() error {
	m.once.Do(func() { close(m.closed) })
	return nil
}

func (m *memory) Addr() net.Addr { return &net.TCPAddr{} }

// errRefused is the error of a client whose connection is not accepted.
var errRefused = errors.New("connection refused")

// from returns a function that dials from an address.
func (m *memory) from(addr string) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		select {
		case m.conns <- addressed{far, netip.AddrPortFrom(netip.MustParseAddr(addr), 1)}:
			return near, nil
		case <-m.closed:
			return nil, errRefused
		}
	}
}

// addressed is a connection from an address.
type addressed struct {
	net.Conn
	from netip.AddrPort
}

func (c addressed) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.from) }
