package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
)

// networkProxy is a proxy of Toxiproxy in this process, through which two other
// processes are connected.
type networkProxy struct {
	proxy *toxiproxy.Proxy
}

// toxic is Toxiproxy's word for one disturbance of a connection.
type toxic struct {
	Name       string         `json:"name"`
	Type       string         `json:"type"`
	Stream     string         `json:"stream"`
	Toxicity   float64        `json:"toxicity"`
	Attributes map[string]any `json:"attributes"`
}

// The directions: up is towards the server.
const (
	up   = "upstream"
	down = "downstream"
)

// newNetworkProxy starts a proxy of an address.
func newNetworkProxy(name, to string) (*networkProxy, error) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // it would write to our standard error
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	l := &networkProxy{toxiproxy.NewProxy(server, name, "127.0.0.1:0", to)}
	for _, stream := range []string{up, down} {
		// It never acts, but has every connection end with a reset.
		if err := l.add(toxic{Name: "linger_" + stream, Type: "reset_peer", Stream: stream}); err != nil {
			return nil, err
		}
	}
	if err := l.proxy.Start(); err != nil {
		return nil, fmt.Errorf("start proxy %s: %w", name, err)
	}
	return l, nil
}

func (l *networkProxy) address() string { return l.proxy.Listen }

func (l *networkProxy) close() { l.proxy.Stop() }

// cut ends every connection with a reset; new ones may be made at once.
func (l *networkProxy) cut() error {
	l.proxy.Stop()
	if err := l.proxy.Start(); err != nil {
		return fmt.Errorf("start proxy %s again: %w", l.proxy.Name, err)
	}
	return nil
}

func (l *networkProxy) add(t toxic) error {
	text, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("toxic %s: %w", t.Name, err)
	}
	if _, err := l.proxy.Toxics.AddToxicJson(strings.NewReader(string(text))); err != nil {
		return fmt.Errorf("toxic %s: %w", t.Name, err)
	}
	return nil
}

// withToxics runs fn while the toxics apply to all connections.
func (l *networkProxy) withToxics(ctx context.Context, toxics []toxic, fn func() error) (err error) {
	for i, t := range toxics {
		t.Name, t.Toxicity = fmt.Sprintf("%s_%d", t.Type, i), 1
		if err := l.add(t); err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, l.proxy.Toxics.RemoveToxic(context.WithoutCancel(ctx), t.Name))
		}()
	}
	return fn()
}

// silence drops all bytes. Connections can be made; those that were silent are
// closed at the end.
func silence() []toxic {
	never := map[string]any{"timeout": 0}
	return []toxic{{Type: "timeout", Stream: up, Attributes: never}, {Type: "timeout", Stream: down, Attributes: never}}
}

// delayed has every answer come later by a time, more or less.
func delayed(by, jitter time.Duration) []toxic {
	return []toxic{{Type: "latency", Stream: down, Attributes: map[string]any{
		"latency": by.Milliseconds(), "jitter": jitter.Milliseconds(),
	}}}
}

// slow lets so many kilobytes a second through on each connection, towards the
// client.
func slow(kilobytes int) []toxic {
	return []toxic{{Type: "bandwidth", Stream: down, Attributes: map[string]any{"rate": kilobytes}}}
}
