package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	// agents propose one action after another, each with a pause between.
	agents = 10
	pause  = 100 * time.Millisecond
	// Every so-manieth action is a long call.
	longEvery = 30
)

// proposed is an action that an agent proposed and the API accepted.
type proposed struct {
	tool string
	took time.Duration
}

// load is the agents, and the results that they get.
type load struct {
	address, token string
	stopping       chan struct{}
	running        sync.WaitGroup

	mu       sync.Mutex // guards the fields below
	next     int
	accepted map[int]proposed
	requests int
	// refused are the errors of requests that were not accepted.
	refused []string
}

func newLoad(address, token string) *load {
	return &load{address: address, token: token, stopping: make(chan struct{}), accepted: make(map[int]proposed)}
}

func (l *load) start(ctx context.Context) {
	for i := range agents {
		// Half of them keep their connections. No client repeats a request.
		client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: i%2 == 0}}
		l.running.Go(func() {
			defer client.CloseIdleConnections()
			for {
				select {
				case <-l.stopping:
					return
				case <-ctx.Done():
					return
				case <-time.After(pause):
					l.propose(ctx, client)
				}
			}
		})
	}
}

func (l *load) stop() error {
	close(l.stopping)
	l.running.Wait()
	if len(l.accepted) == 0 {
		return fmt.Errorf("no action was accepted, of %d: %q", l.requests, l.refused)
	}
	return nil
}

func (l *load) propose(ctx context.Context, client *http.Client) {
	l.mu.Lock()
	n := l.next
	l.next++
	l.mu.Unlock()
	p := proposed{tool: toolOnce, took: shortest + rand.N(longest-shortest)}
	switch {
	case n%longEvery == longEvery-1:
		p.took = longCall
	case n%3 == 0:
		p.tool = toolKeyed
	}
	err := l.send(ctx, client, n, p)
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests++
	if err != nil {
		l.refused = append(l.refused, err.Error())
		return
	}
	l.accepted[n] = p
}

// send sends a request once. Its body cannot be read again, so that the client
// of Go's library cannot send it again either.
func (l *load) send(ctx context.Context, client *http.Client, n int, p proposed) error {
	body, err := json.Marshal(object{
		"type": "mcp.exec", "external_id": externalID(n), "tool": object{"source": toolSource, "name": p.tool},
		"args": object{"n": n, "ms": p.took.Milliseconds()},
	})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.address+"/api/v1/actions", io.NopCloser(bytes.NewReader(body)))
	if err != nil {
		return err
	}
	req.ContentLength = int64(len(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+l.token)
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(res.Body)
	_ = res.Body.Close() // it is read
	if err == nil && res.StatusCode/100 != 2 {
		err = fmt.Errorf("%s: %s", res.Status, answer)
	}
	return err
}
