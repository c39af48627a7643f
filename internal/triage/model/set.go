package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// Set is the set of servers of a process. All users of a server share one set,
// so that slots and breakers apply to the whole process.
type Set struct {
	hosts map[string]*host
	tiers map[string]Tier
}

// Tier is the model of a tier.
type Tier struct {
	*Server
	// Pack is the largest number of messages in one question.
	Pack int
}

// Open returns the servers of a configuration. It does not connect.
func Open(c Config, o Observer) (*Set, error) { return open(c, o, usualLimits()) }

func open(c Config, o Observer, l limits) (*Set, error) {
	s := &Set{hosts: make(map[string]*host), tiers: make(map[string]Tier)}
	for _, name := range slices.Sorted(maps.Keys(c.Servers)) {
		h, err := newHost(name, c.Servers[name], l)
		if err != nil {
			return nil, fmt.Errorf("model server %s: %w", name, err)
		}
		s.hosts[name] = h
	}
	servers := make(map[[2]string]*Server)
	for name, t := range c.Tiers {
		h := s.hosts[t.Server]
		if h == nil {
			return nil, fmt.Errorf("tier %s: unknown server %s", name, t.Server)
		}
		of := [2]string{t.Server, t.Model}
		if servers[of] == nil {
			servers[of] = newServer(h, c.Servers[t.Server].Dialect, t, o)
		}
		pack := t.Pack
		pack = cmp.Or(pack, 8)
		s.tiers[name] = Tier{servers[of], pack}
	}
	return s, nil
}

// Tier returns the model of a tier, by a name of Tiers, and whether the
// configuration has one.
func (s *Set) Tier(name string) (Tier, bool) {
	t, ok := s.tiers[name]
	return t, ok
}

// Close closes idle connections.
func (s *Set) Close() {
	for _, h := range s.hosts {
		h.client.CloseIdleConnections()
	}
}
