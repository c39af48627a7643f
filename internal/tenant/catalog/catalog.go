// Package catalog owns the sources of tools and their tools: what the sources
// list, the digests and drift of definitions, what operators say of a tool, how
// a tool is found by its name or by words, and how all of it is stored. A
// Catalog is one tenant's, and never changes. It does not call sources
// (source/connect) and does not decide what may be called (settings).
package catalog

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// DefaultMaxAttempts bounds the attempts of an envelope whose tool sets no
// other bound.
const DefaultMaxAttempts = 5

// Tool is a tool as the catalog knows it.
type Tool struct {
	Key policy.Key
	// Definition is the one that the source listed last.
	Definition
	// Digest is the digest of Definition, Accepted that of the definition that
	// an operator accepted, or else that was listed first. They may be of
	// different schemes: Is compares them.
	Digest, Accepted []byte
	// AcceptedDefinition is the accepted definition where its digest differs
	// from Digest, if it is stored; else nil.
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
	Recipients []contact.Pattern
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
	// Described is the description by operators, without inferred parts.
	Described Description

	schema Schema
}

// Check validates arguments against the tool's input schema. The error is an
// *envelope.InvalidError whose pointers begin with /args, or fault.Conflict
// if the schema itself cannot be used.
func (t *Tool) Check(args json.RawMessage) error { return t.schema.Check(args) }

// The kinds of source.
const (
	KindMCP         = "mcp"
	KindBuiltin     = "builtin"
	KindToolGateway = "tool_gateway"
	KindComposio    = "composio"
	KindSlack       = "slack"
	KindLinear      = "linear"
	KindSentry      = "sentry"
	// KindWebhook delivers messages to an address of the tenant's own.
	KindWebhook = "webhook"
)

// Source is a source as the catalog knows it.
type Source struct {
	ID, Kind string
	Config   json.RawMessage
	// Secret is encrypted; only package connect decrypts it.
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

// Catalog is one tenant's sources and their tools. It is safe for concurrent
// use and never changes.
type Catalog struct {
	sources       map[string]Source
	tools         map[policy.Key]*Tool
	snapshotRules map[policy.Key]SnapshotRule
	// named are the tools by name and by full name.
	named map[string][]*Tool
	index func() *index
}

// Source returns a source by its id.
func (c *Catalog) Source(id string) (Source, bool) {
	src, ok := c.sources[id]
	return src, ok
}

// Sources returns every source in order of id.
func (c *Catalog) Sources() []Source {
	return slices.SortedFunc(maps.Values(c.sources), func(a, b Source) int { return strings.Compare(a.ID, b.ID) })
}

// Tools returns every tool in order of its key.
func (c *Catalog) Tools() []*Tool {
	return slices.SortedFunc(maps.Values(c.tools), compareKeys)
}

func compareKeys(a, b *Tool) int { return strings.Compare(a.Key.String(), b.Key.String()) }

// Tool returns a tool by its key.
func (c *Catalog) Tool(key policy.Key) (*Tool, bool) {
	t, ok := c.tools[key]
	return t, ok
}

// Offers reports whether a tool's source is switched on, and that it could be listed
// the last time. What waits for a tool of another source is not lost: Resolve
// and Tool know it still.
func (c *Catalog) Offers(t *Tool) bool {
	src, ok := c.sources[t.Key.Source]
	return ok && src.Enabled && src.ListError == ""
}
