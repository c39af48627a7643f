package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// world is the counting server as its own process, seen from the outside.
type world struct {
	child *child
	url   string
}

// startWorld starts a counting server and waits for its address.
func startWorld(ctx context.Context, order tallyOrder) (*world, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start counting server: %w", err)
	}
	defer r.Close() //nolint:errcheck // only read from
	c, err := spawnSelf(roleTally, order, w, os.Stderr)
	_ = w.Close() // the child has its own handle
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, c.kill)
	defer stop()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		c.kill()
		return nil, fmt.Errorf("wait for counting server: %w", err)
	}
	return &world{child: c, url: strings.TrimSpace(line)}, nil
}

// counts asks what has happened.
func (w *world) counts(ctx context.Context) (tallied, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url+"/counts", http.NoBody)
	if err != nil {
		return tallied{}, fmt.Errorf("read counts: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return tallied{}, fmt.Errorf("read counts: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	var seen tallied
	if err := json.NewDecoder(io.LimitReader(resp.Body, 64<<20)).Decode(&seen); err != nil {
		return tallied{}, fmt.Errorf("read counts: %w", err)
	}
	return seen, nil
}
