package main

import (
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
)

// balancer forwards connections to one of several processes, like the network
// of Kubernetes: it chooses for each new connection, and leaves the others
// alone. A connection that its process refuses is closed.
type balancer struct {
	listener net.Listener
	running  sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	to    []string
	conns map[net.Conn]bool
}

func newBalancer() (*balancer, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &balancer{listener: listener, conns: make(map[net.Conn]bool)}
	b.running.Go(b.accept)
	return b, nil
}

func (b *balancer) address() string { return b.listener.Addr().String() }

func (b *balancer) add(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.to = append(b.to, address)
}

func (b *balancer) remove(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.to = slices.DeleteFunc(b.to, func(a string) bool { return a == address })
}

func (b *balancer) accept() {
	for {
		conn, err := b.listener.Accept()
		if err != nil {
			return // it is closed
		}
		b.running.Go(func() { b.pass(conn) })
	}
}

// track keeps a connection until it is closed.
func (b *balancer) track(conn net.Conn) (done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.conns[conn] = true
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.conns, conn)
		_ = conn.Close() // the other side may have closed it
	}
}

func (b *balancer) choose() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.to) == 0 {
		return ""
	}
	return b.to[rand.IntN(len(b.to))]
}

func (b *balancer) pass(from net.Conn) {
	defer b.track(from)()
	to, err := net.Dial("tcp", b.choose())
	if err != nil {
		return
	}
	defer b.track(to)()
	ended := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() { // ends with either connection, which pass closes
			_, _ = io.Copy(pair[0], pair[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}

func (b *balancer) close() {
	_ = b.listener.Close()
	b.mu.Lock()
	for conn := range b.conns {
		_ = conn.Close()
	}
	b.mu.Unlock()
	b.running.Wait()
}
