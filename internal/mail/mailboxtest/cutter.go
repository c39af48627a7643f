package mailboxtest

import (
	"bytes"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
)

// Cutter is a proxy before an IMAP server that cuts the connection once when it is
// armed: it forwards a command to the server, but not the answer.
type Cutter struct {
	// To is the address of the server.
	To string
	// Commands are the commands whose answer is lost.
	Commands []string

	armed atomic.Bool
}

// Arm has the next of the commands lose its answer, and Disarm none.
func (c *Cutter) Arm() { c.armed.Store(true) }

// Disarm reports whether the cutter was still armed.
func (c *Cutter) Disarm() bool { return c.armed.Swap(false) }

// Serve forwards the connections of a listener until that is closed.
func (c *Cutter) Serve(listener net.Listener) {
	var running sync.WaitGroup
	defer running.Wait()
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		running.Go(func() { c.pass(client) })
	}
}

// cuts reports whether the answer to a part of a client's stream is lost.
func (c *Cutter) cuts(part []byte) bool {
	return slices.ContainsFunc(c.Commands, func(command string) bool { return bytes.Contains(part, []byte(command)) }) && c.armed.CompareAndSwap(true, false)
}

func (c *Cutter) pass(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", c.To)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	var deaf atomic.Bool
	var back sync.WaitGroup
	back.Go(func() {
		defer func() { _ = client.Close() }()
		buffer := make([]byte, 64<<10)
		for {
			n, err := server.Read(buffer)
			if err != nil || deaf.Load() { // the answer to the command: it was executed
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	})
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			break
		}
		if c.cuts(buffer[:n]) {
			deaf.Store(true)
		}
		if _, err := io.Copy(server, bytes.NewReader(buffer[:n])); err != nil {
			break
		}
	}
	_ = server.Close()
	back.Wait()
}
