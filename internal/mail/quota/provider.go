package quota

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// Operation is a kind of request to a server.
type Operation string

// The operations.
const (
	// Command is an IMAP command or a connection.
	Command Operation = "command"
	// List is a page of a listing, and Changes a page of changes.
	List    Operation = "list"
	Changes Operation = "changes"
	// Read is one message.
	Read    Operation = "read"
	Folders Operation = "folders"
)

// Resource is the unit of a limit.
type Resource string

// The resources.
const (
	Units Resource = "units"
	Bytes Resource = "bytes"
)

// Limit is a provider's limit for a period.
type Limit struct {
	Of   Resource
	Most int64
	Per  time.Duration
	// Shared reports whether all mailboxes of the provider in a process share
	// the limit.
	Shared bool
}

// Provider hosts mailboxes and limits their use.
type Provider struct {
	Name   string
	Limits []Limit
	// Costs holds the units of operations; others cost one.
	Costs map[Operation]int
}

func (p Provider) cost(op Operation) int {
	if units, ok := p.Costs[op]; ok {
		return units
	}
	return 1
}

// Other is an unknown provider. It is assumed to allow a thousand operations a
// minute, of which the share is ten a second.
const Other = "other"

// providers have published limits. Gmail's API limits each user and all users
// of a program; Gmail over IMAP limits each mailbox.
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

// Named returns the provider with a name.
func Named(name string) (Provider, bool) {
	p, ok := providers()[name]
	p.Name = name
	return p, ok
}

// Names returns the names of the known providers, sorted.
func Names() []string { return slices.Sorted(maps.Keys(providers())) }

// OfIMAP returns the provider of an IMAP server by its host.
func OfIMAP(host string) Provider {
	name := Other
	switch strings.ToLower(strings.TrimSuffix(host, ".")) {
	case "imap.gmail.com", "imap.googlemail.com":
		name = "gmail-imap"
	}
	p, _ := Named(name)
	return p
}

// Registry holds the buckets of a process. Accounts of the same mailbox share a
// bucket, and mailboxes of one provider share its common limits. The zero value
// is ready to use, and safe for concurrent use.
type Registry struct {
	mu      sync.Mutex
	buckets map[[2]string]*Bucket
	shared  map[string][]*limiter
}

// Bucket returns the bucket of a mailbox. mailbox may be any text that is the
// same for the same mailbox.
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
