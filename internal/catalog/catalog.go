// Package catalog owns what can be acted with: the sources of tools, their
// tools with the digests of their definitions, and the rules of policy that
// name them. Readers get a snapshot of one tenant at one version, which never
// changes; a version that moved on means another snapshot. It refuses to
// decide: policy does, from what the snapshot holds.
package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/executor"
	"github.com/countersign-dev/countersign/internal/gate"
	"github.com/countersign-dev/countersign/internal/limit"
	"github.com/countersign-dev/countersign/internal/policy"
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
	Hints              executor.Hints
	// Digest is of the definition as it was last listed, Accepted of the one
	// that an operator accepted (or that was the first to be seen).
	Digest, Accepted []byte
	// Risk and Effect are what follows from overrides, hints and defaults.
	Risk        policy.ToolRisk
	Effect      envelope.Effect
	MaxAttempts int
	// Retry is how its attempts are spaced; the zero Retry leaves it to the
	// worker.
	Retry Retry
	// Recipients find whom its arguments address. Guessed says that no operator
	// said so.
	Recipients []gate.Pattern
	Guessed    bool
	// Scopes are what an employee needs to use it.
	Scopes []string

	check checker
}

// Retry is how the attempts of a tool are spaced: exponentially longer from
// Base to Cap, each wait spread by the part Jitter of itself to either side.
type Retry struct {
	Base, Cap time.Duration
	Jitter    float64
}

// Drifted says that the definition is not the accepted one.
func (t *Tool) Drifted() bool { return !bytes.Equal(t.Digest, t.Accepted) }

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
	// ListError says why the last listing failed; empty when it worked.
	ListError string
}

// Snapshot is one tenant's catalog and policy at one version. It is safe for
// concurrent use and never changes.
type Snapshot struct {
	Tenant  envelope.TenantID
	Version int64
	// Limits are the tenant's own settings of what may go out, when, and how
	// fast.
	Limits *limit.Set

	sources      map[string]Source
	tools        map[policy.Key]*Tool
	byName       map[string][]*Tool
	organisation policy.Rules
	automations  map[string]policy.Rules
	decider      *policy.Decider
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

// Resolve finds the tool that a proposal means: by source and name, by
// Composio app and name, or by name alone where only one source has it.
func (s *Snapshot) Resolve(named envelope.Tool) (*Tool, error) {
	source := named.Source
	if source == "" {
		source = named.ComposioApp
	}
	if source != "" {
		if t, ok := s.tools[policy.Key{Source: source, Action: named.Name}]; ok && s.sources[source].Enabled {
			return t, nil
		}
		if src, ok := s.sources[source]; !ok || !src.Enabled {
			return nil, invalidTool("/tool/source", "unknown_source", "no such source; list the tools to see the ones there are")
		}
		return nil, invalidTool("/tool/name", "unknown_tool", "the source has no such tool; list the tools to see the ones there are")
	}
	var found []*Tool
	for _, t := range s.byName[named.Name] {
		if s.sources[t.Key.Source].Enabled {
			found = append(found, t)
		}
	}
	switch len(found) {
	case 0:
		return nil, invalidTool("/tool/name", "unknown_tool", "no source has such a tool; list the tools to see the ones there are")
	case 1:
		return found[0], nil
	}
	ids := make([]string, len(found))
	for i, t := range found {
		ids[i] = t.Key.Source
	}
	slices.Sort(ids)
	return nil, invalidTool("/tool/source", "required", "several sources have this tool; say which: "+strings.Join(ids, ", "))
}

// Proposed is what policy looks at in an envelope, beside its tool.
type Proposed struct {
	Automation string
	// AskedApproval says that the agent wants a person to look.
	AskedApproval bool
	// Employee is the agent's identity; the zero value is nobody.
	Employee envelope.EmployeeID
	// Risk is the higher of what the agent said and the tool's own.
	Risk envelope.Risk
	// Listed says that it addresses somebody on the do-not-contact list.
	Listed bool
	// Session is the agent's; empty for none.
	Session string
	// Args are what the tool is called with.
	Args json.RawMessage
	// Tools are the patterns of the tools that the proposer's token is for;
	// nil is all.
	Tools []string
}

// Decide asks policy about a tool. An automation without rules of its own
// adds nothing; nor does an employee who is not registered, unless the tenant
// has an entry for those.
func (s *Snapshot) Decide(t *Tool, p Proposed) policy.Decision {
	in := policy.Input{
		Key:           t.Key,
		Automation:    s.automations[p.Automation],
		Organisation:  s.organisation,
		Risk:          t.Risk,
		AskedApproval: p.AskedApproval,
		Drifted:       t.Drifted(),
		Listed:        p.Listed,
	}
	if e, ok := s.Limits.Employee(p.Employee); ok {
		in.Trust, in.EnvelopeRisk = policy.Trust(e.Trust), p.Risk
		in.MissingScopes = gate.Granted(e.Scopes, t.Scopes)
	}
	return s.decider.Decide(in)
}

// MaxRecipientBytes bounds the text at the recipient places of one call.
// Reading addresses takes time, and an agent chooses the text.
const MaxRecipientBytes = 32 << 10

// Contacts returns whom a call of a tool addresses, by the tenant's way to
// read addresses; nobody if the tool is not there. It reports false if there
// is more text at those places than it reads: then nobody can say.
func (s *Snapshot) Contacts(key policy.Key, args json.RawMessage) ([]gate.Contact, bool) {
	t, ok := s.tools[key]
	if !ok {
		return nil, true
	}
	found, size := gate.Find(args, t.Recipients), 0
	for _, text := range found {
		size += len(text)
	}
	if size > MaxRecipientBytes {
		return nil, false
	}
	return s.Limits.Contacts(found), true
}

func invalidTool(pointer string, rule envelope.Rule, message string) error {
	return &envelope.InvalidError{Fields: []envelope.FieldError{{Pointer: pointer, Rule: rule, Message: message}}}
}
