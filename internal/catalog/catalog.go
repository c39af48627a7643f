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

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/executor"
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

	check checker
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

// Decide asks policy about a tool. An automation without rules of its own
// adds nothing.
func (s *Snapshot) Decide(t *Tool, automation string, askedApproval bool) policy.Decision {
	return s.decider.Decide(policy.Input{
		Key:           t.Key,
		Automation:    s.automations[automation],
		Organisation:  s.organisation,
		Risk:          t.Risk,
		AskedApproval: askedApproval,
		Drifted:       t.Drifted(),
	})
}

func invalidTool(pointer string, rule envelope.Rule, message string) error {
	return &envelope.InvalidError{Fields: []envelope.FieldError{{Pointer: pointer, Rule: rule, Message: message}}}
}
