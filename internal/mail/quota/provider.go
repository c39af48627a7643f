package quota

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Operation is what a reader asks a server for.
type Operation string

// The operations.
const (
	// Command is one command of IMAP, or a connection.
	Command Operation = "command"
	// List is a page of a listing, and Changes one of what changed.
	List    Operation = "list"
	Changes Operation = "changes"
	// Read is one message.
	Read    Operation = "read"
	Folders Operation = "folders"
)

// Resource is what a limit counts.
type Resource string

// The resources.
const (
	Units Resource = "units"
	Bytes Resource = "bytes"
)

// Limit is what a provider allows in a period.
type Limit struct {
	Of   Resource
	Most int64
	Per  time.Duration
	// Shared says that all mailboxes of the provider that a process reads share the
	// limit.
	Shared bool
}

// Provider is somebody who keeps mailboxes and limits their use.
type Provider struct {
	Name   string
	Limits []Limit
	// Costs are the units of operations; those that are left out cost one.
	Costs map[Operation]int
}

func (p Provider) cost(op Operation) int {
	if units, ok := p.Costs[op]; ok {
		return units
	}
	return 1
}

// Other is the provider of whom nothing is known, and who is taken to allow a
// thousand operations a minute: the share is ten a second.
const Other = "other"

// providers are those whose limits are published. The limits of Gmail's API are
// for each user and for all users of a program, and those of Gmail over IMAP for
// each mailbox.
func providers() map[string]Provider {
	return map[string]Provider{
		Other: {Limits: []Limit{{Of: Units, Most: 1000, Per: time.Minute}}},
		"gmail-api": {
			Limits: []Limit{{Of: Units, Most: 250, Per: time.Second}, {Of: Units, Most: 1_200_000, Per: time.Minute, Shared: true}},
			Costs:  map[Operation]int{List: 5, Read: 5, Changes: 2, Folders: 1},
		},
		"gmail-imap": {Limits: []Limit{{Of: Units, Most: 1000, Per: time.Minute}, {Of: Bytes, Most: 2_500_000_000, Per: 24 * time.Hour}}},
	}
}

// Named returns a provider of the table.
func Named(name string) (Provider, bool) {
	p, ok := providers()[name]
	p.Name = name
	return p, ok
}

// Names returns the names of the table, in order.
func Names() []string { return slices.Sorted(maps.Keys(providers())) }

// OfIMAP returns the provider behind the host of an IMAP server.
func OfIMAP(host string) Provider {
	name := Other
	switch strings.ToLower(strings.TrimSuffix(host, ".")) {
	case "imap.gmail.com", "imap.googlemail.com":
		name = "gmail-imap"
	}
	p, _ := Named(name)
	return p
}

// Registry holds the buckets of a process, so that accounts which are the same
// mailbox share one, and mailboxes of one provider what the provider allows to all
// of them together. The zero value is ready for use, and safe for concurrent use.
type Registry struct {
	mu      sync.Mutex
	buckets map[[2]string]*Bucket
	shared  map[string][]*limiter
}

// Bucket returns the bucket of a mailbox, which any text names that is the same
// for the same mailbox.
func (r *Registry) Bucket(p Provider, mailbox string) *Bucket {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.buckets == nil {
		r.buckets, r.shared = map[[2]string]*Bucket{}, map[string][]*limiter{}
	}
	key := [2]string{p.Name, mailbox}
	if b := r.buckets[key]; b != nil {
		return b
	}
	b := &Bucket{provider: p}
	shared, known := r.shared[p.Name]
	for _, l := range p.Limits {
		switch {
		case !l.Shared:
			b.limits = append(b.limits, newLimiter(l))
		case !known:
			shared = append(shared, newLimiter(l))
		}
	}
	r.shared[p.Name] = shared
	b.limits = append(b.limits, shared...)
	r.buckets[key] = b
	return b
}
