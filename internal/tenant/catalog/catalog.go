// Package catalog owns what can be acted with: the sources of tools, their
// tools with the digests of their definitions, and the rules of policy that
// name them. Readers get a snapshot of one tenant at one version, which never
// changes; a version that moved on means another snapshot. It refuses to
// decide: policy does, from what the snapshot holds.
package catalog

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// DefaultMaxAttempts bounds the attempts of an envelope whose tool sets no
// other bound.
const DefaultMaxAttempts = 5

// Tool is a tool as the catalog knows it.
type Tool struct {
	Key                policy.Key
	Title, Description string
	InputSchema        json.RawMessage
	OutputSchema       json.RawMessage
	Hints              source.Hints
	// Digest is of the definition as it was last listed, Accepted of the one
	// that an operator accepted (or that was the first to be seen). They may be
	// of different schemes: Is compares them.
	Digest, Accepted []byte
	// AcceptedDefinition is what Accepted is of, where it has another digest;
	// nil also if nobody knows.
	AcceptedDefinition *Definition
	// Drift is how far the definition is from the accepted one, and Guard how
	// much of that matters to policy.
	Drift Drift
	Guard DriftGuard
	// Risk and Effect are what follows from overrides, hints and defaults.
	Risk        policy.ToolRisk
	Effect      envelope.Effect
	MaxAttempts int
	// Retry is how its attempts are spaced; the zero Retry leaves it to the
	// worker.
	Retry Retry
	// Recipients find whom its arguments address. Guessed says that no operator
	// said so.
	Recipients []preflight.Pattern
	Guessed    bool
	// Scopes are what an employee needs to use it.
	Scopes []string
	// Quarantined says that it is a new tool of a source whose new tools wait
	// for an operator to accept them: nobody may use it until then.
	Quarantined bool
	// FullName is its name by what it does, and SideEffects what a call
	// changes.
	FullName    FullName
	SideEffects []string
	// Reversal is how a call of it is undone; nil if nobody said how.
	Reversal *Reversal
	// Described is what operators say of it, without what is inferred.
	Described Description

	check checker
}

// Retry is how the attempts of a tool are spaced: exponentially longer from
// Base to Cap, each wait spread by the part Jitter of itself to either side.
type Retry struct {
	Base, Cap time.Duration
	Jitter    float64
}

// Check validates arguments against the tool's input schema. The error is an
// *envelope.InvalidError whose pointers begin with /args, or fault.Conflict
// if the schema itself cannot be used.
func (t *Tool) Check(args json.RawMessage) error { return t.check.check(args) }

// Source is a source as the catalog knows it.
type Source struct {
	ID, Kind string
	Config   json.RawMessage
	// Secret is sealed; only Live opens it.
	Secret      []byte
	DefaultRisk policy.ToolRisk
	Enabled     bool
	// DriftGuard says which changes of its tools need a person; empty is
	// GuardFull. Quarantine keeps its new tools from use until an operator
	// accepts them.
	DriftGuard DriftGuard
	Quarantine bool
	// ListError says why the last listing failed; empty when it worked.
	ListError string
	// LeftOut is how many tools the last one that worked left out: those that
	// no envelope could name, and those whose definition cannot be read.
	LeftOut int
	// ListedAt is when that was; nil if it never was.
	ListedAt *time.Time
}

// Snapshot is one tenant's catalog and policy at one version. It is safe for
// concurrent use and never changes.
type Snapshot struct {
	Tenant  envelope.TenantID
	Version int64
	// Limits are the tenant's own settings of what may go out, when, and how
	// fast.
	Limits *limits.Set

	sources      map[string]Source
	tools        map[policy.Key]*Tool
	shots        map[policy.Key]Shot
	byName       map[string][]*Tool
	byFullName   map[string][]*Tool
	index        func() *index
	organisation policy.Rules
	automations  map[string]policy.Rules
	book         book
	decider      *policy.Decider
	reviews      map[policy.Key][]ReviewRule
}

// Source returns a source by its id.
func (s *Snapshot) Source(id string) (Source, bool) {
	src, ok := s.sources[id]
	return src, ok
}

// Sources returns every source in order of id.
func (s *Snapshot) Sources() []Source {
	all := make([]Source, 0, len(s.sources))
	for _, src := range s.sources {
		all = append(all, src)
	}
	slices.SortFunc(all, func(a, b Source) int { return strings.Compare(a.ID, b.ID) })
	return all
}

// Tools returns every tool in order of its key.
func (s *Snapshot) Tools() []*Tool {
	all := make([]*Tool, 0, len(s.tools))
	for _, t := range s.tools {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *Tool) int { return strings.Compare(a.Key.String(), b.Key.String()) })
	return all
}

// Tool returns a tool by its key.
func (s *Snapshot) Tool(key policy.Key) (*Tool, bool) {
	t, ok := s.tools[key]
	return t, ok
}

func invalidTool(pointer string, rule envelope.Rule, message string) error {
	return &envelope.InvalidError{Fields: []envelope.FieldError{{Pointer: pointer, Rule: rule, Message: message}}}
}
