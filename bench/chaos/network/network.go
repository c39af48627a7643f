// Package network puts a proxy of Toxiproxy between two processes, and
// disturbs their traffic. It is independent of the kind of processes.
package network

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

// Proxy is a proxy in this process.
type Proxy struct{ proxy *toxiproxy.Proxy }

// Toxic is Toxiproxy's name for one disturbance of a connection.
type Toxic struct {
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

// New starts a proxy of an address.
func New(name, to string) (*Proxy, error) {
	zerolog.SetGlobalLevel(zerolog.Disabled) // it would write to this process's standard error
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p := &Proxy{toxiproxy.NewProxy(server, name, "127.0.0.1:0", to)}
	for _, stream := range []string{up, down} {
		// This toxic never acts, but makes every connection end with a reset.
		if err := p.add(Toxic{Name: "linger_" + stream, Type: "reset_peer", Stream: stream}); err != nil {
			return nil, err
		}
	}
	if err := p.proxy.Start(); err != nil {
		return nil, fmt.Errorf("start proxy %s: %w", name, err)
	}
	return p, nil
}

// Address returns the address that the proxy listens on.
func (p *Proxy) Address() string { return p.proxy.Listen }

// Close ends the proxy.
func (p *Proxy) Close() { p.proxy.Stop() }

// Cut ends every connection with a reset; new ones are possible immediately.
func (p *Proxy) Cut() error {
	p.proxy.Stop()
	if err := p.proxy.Start(); err != nil {
		return fmt.Errorf("start proxy %s again: %w", p.proxy.Name, err)
	}
	return nil
}

func (p *Proxy) add(t Toxic) error {
	text, err := json.Marshal(t)
	if err == nil {
		_, err = p.proxy.Toxics.AddToxicJson(strings.NewReader(string(text)))
	}
	if err != nil {
		return fmt.Errorf("toxic %s: %w", t.Name, err)
	}
	return nil
}

// With runs fn while the toxics apply to all connections.
func (p *Proxy) With(ctx context.Context, toxics []Toxic, fn func() error) (err error) {
	for i, t := range toxics {
		t.Name, t.Toxicity = fmt.Sprintf("%s_%d", t.Type, i), 1
		if err := p.add(t); err != nil {
			return err
		}
		defer func() {
			err = errors.Join(err, p.proxy.Toxics.RemoveToxic(context.WithoutCancel(ctx), t.Name))
		}()
	}
	return fn()
}

// Silence drops all bytes. Connections can be made; silent ones are closed at
// the end.
func Silence() []Toxic {
	never := map[string]any{"timeout": 0}
	return []Toxic{{Type: "timeout", Stream: up, Attributes: never}, {Type: "timeout", Stream: down, Attributes: never}}
}

// Delayed makes every answer late by a time, plus or minus a jitter.
func Delayed(by, jitter time.Duration) []Toxic {
	return []Toxic{{Type: "latency", Stream: down, Attributes: map[string]any{
		"latency": by.Milliseconds(), "jitter": jitter.Milliseconds(),
	}}}
}

// Slow limits answers to kilobytes per second on each connection.
func Slow(kilobytes int) []Toxic {
	return []Toxic{{Type: "bandwidth", Stream: down, Attributes: map[string]any{"rate": kilobytes}}}
}
