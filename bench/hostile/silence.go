package hostile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// attackerIP is the source address of the silent connections, other than the
	// neighbour's.
	attackerIP = "127.0.0.2"
	// drip is the interval at which a slow client sends a byte.
	drip = time.Second
	// holdFor is the time for which the attacker keeps a connection that the API
	// does not close.
	holdFor = 20 * time.Second
	// sampleEvery is the interval at which the API's connections are counted.
	sampleEvery = 500 * time.Millisecond
)

// addressConnections and callerConnections are the bounds that the API is started
// with.
const (
	addressConnections = 200
	callerConnections  = 400
)

// limits are the bounds as the API reads them.
func limits() []string {
	return []string{
		fmt.Sprintf("COUNTERSIGN_ADDRESS_CONNECTIONS=%d", addressConnections),
		fmt.Sprintf("COUNTERSIGN_TOKEN_CONNECTIONS=%d", callerConnections),
	}
}

// maxConnections bounds the connections that the attacker may hold: the limits of
// its address and its token, and those that are just being refused or closed on a
// busy machine.
const maxConnections = addressConnections + callerConnections + 30

// silent is a connection on which little is sent or nothing is read: send begins
// it; drips reports whether it continues byte by byte, half whether its client
// closes its side, and reads whether it reads the response.
type silent struct {
	name               string
	send               string
	drips, half, reads bool
}

// kinds are the kinds of silent connections.
func kinds(token string) []silent {
	const announced = "Content-Type: application/json\r\nContent-Length: 100000\r\n"
	as := "Authorization: Bearer " + token + "\r\n"
	begin := func(line string) string { return line + " HTTP/1.1\r\nHost: x\r\n" }
	return []silent{
		{name: "nothing sent", reads: true},
		{name: "slow header", send: begin("POST /api/v1/actions"), drips: true, reads: true},
		{name: "slow body", send: begin("POST /api/v1/actions") + as + announced + "\r\n", drips: true, reads: true},
		{name: "body announced, no token", send: begin("POST /api/v1/actions") + announced + "\r\n{", reads: true},
		{name: "body announced", send: begin("POST /api/v1/actions/batch") + as + announced + "\r\n{", reads: true},
		{name: "body announced, MCP", send: begin("POST /mcp") + as + announced + "\r\n{", reads: true},
		{name: "chunks without an end", send: begin("POST /api/v1/policy/explain") + as + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n", reads: true},
		{name: "half-closed", send: begin("POST /api/v1/actions") + as + announced + "\r\n{", half: true, reads: true},
		{name: "pipelined, never read", send: strings.Repeat(begin("GET /api/v1/openapi.json")+"\r\n", 40)},
		{name: "stream, never read", send: begin("GET /api/v1/events") + as + "\r\n"},
		{name: "MCP stream, never read", send: begin("GET /mcp") + as + "Accept: text/event-stream\r\n\r\n"},
		{name: "idle with a token", send: begin("GET /api/v1/actions?limit=1") + as + "\r\n", reads: true},
	}
}

// silence keeps silent connections open.
type silence struct {
	address string
	kinds   []silent

	mu sync.Mutex
	// opened counts the connections by kind, ended by the API's reaction: the status
	// of its answer, or a close without one.
	opened, ended map[string]int
}

func newSilence(base, token string) *silence {
	return &silence{address: strings.TrimPrefix(base, "http://"), kinds: kinds(token), opened: make(map[string]int), ended: make(map[string]int)}
}

// run keeps connections open, some of each kind, until ctx ends. It opens at most
// rate per second.
func (s *silence) run(ctx context.Context, connections, rate int) {
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	var open sync.WaitGroup
	defer open.Wait()
	for i := range connections {
		open.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
					s.hold(ctx, s.kinds[i%len(s.kinds)])
				}
			}
		})
	}
}

// hold opens a connection and keeps it until the API closes it.
func (s *silence) hold(ctx context.Context, kind silent) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(attackerIP)}, Timeout: time.Second}
	c, err := dialer.DialContext(ctx, "tcp", s.address)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	s.count(s.opened, kind.name)
	over, cancel := context.WithTimeout(ctx, holdFor)
	defer cancel()
	_ = c.SetDeadline(time.Now().Add(holdFor))
	var sending sync.WaitGroup
	defer sending.Wait()
	defer cancel()
	sending.Go(func() { kind.write(over, c) })
	if !kind.reads {
		<-over.Done()
		return
	}
	from := bufio.NewReader(c)
	line, _ := from.ReadString('\n') // empty if the API closes without an answer
	_, _ = io.Copy(io.Discard, from)
	if over.Err() == nil {
		answer := "closed without an answer"
		if _, status, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			answer = "answered " + status
		}
		s.count(s.ended, answer)
	}
}

func (s *silence) count(in map[string]int, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in[name]++
}

// write sends the data of a kind.
func (k silent) write(ctx context.Context, c net.Conn) {
	if _, err := io.WriteString(c, k.send); err != nil {
		return
	}
	if tcp, ok := c.(*net.TCPConn); ok && k.half {
		_ = tcp.CloseWrite()
	}
	if !k.drips {
		return
	}
	tick := time.NewTicker(drip)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if _, err := c.Write([]byte("x")); err != nil {
				return
			}
		}
	}
}

// watch counts the attacker's connections that the API's process has open until
// ctx ends, and returns the most.
func (s *silence) watch(ctx context.Context) (most int, err error) {
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return 0, err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return 0, err
	}
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return most, nil
		case <-tick.C:
			n, err := held(number)
			if err != nil {
				return most, err
			}
			most = max(most, n)
		}
	}
}

// held counts the connections of the attacker's address to a port that a process
// on the other side has open, as Linux lists them.
func held(port int) (n int, err error) {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return 0, fmt.Errorf("connections are counted on Linux only: %w", err)
	}
	local, remote := fmt.Sprintf("0100007F:%04X", port), "0200007F:"
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		const address, peer, inode = 1, 2, 9
		if len(fields) > inode && fields[address] == local && strings.HasPrefix(fields[peer], remote) && fields[inode] != "0" {
			n++
		}
	}
	return n, nil
}
