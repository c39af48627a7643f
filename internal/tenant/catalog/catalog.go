// Package catalog owns the sources of tools and their tools: what the sources
// list, the digests and drift of definitions, what operators say of a tool, how
// a tool is found by its name or by words, and how all of it is stored. A
// Catalog is one tenant's, and never changes. It does not call sources
// (connection) and does not decide what may be called (settings).
package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/schema"
	"github.com/countersign-dev/countersign/internal/source"
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
	// was accepted, or else that was listed first. They may be of different
	// schemes: Is compares them.
	Digest, Accepted []byte
	// Binding is the digest of Definition and of the address of its source.
	// Proposals, approvals, grants and plans are for a binding, so that none is
	// for a tool of that name somewhere else.
	Binding []byte
	// Moved says that the address of its source is not the accepted one.
	Moved bool
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
	// Timeout is how long a call may go without an answer or progress; zero leaves it to
	// the source.
	Timeout time.Duration
	// Recipients find whom its arguments address. Guessed says that no operator
	// said so.
	Recipients []contact.Pattern
	Guessed    bool
	// Scopes are what an employee needs to use it.
	Scopes []string
	// Quarantined reports whether nobody may use it yet: it is a new tool of a
	// source with a quarantine, or its source is Unaccepted.
	Quarantined bool
	// FullName is its name by what it does, and SideEffects what a call
	// changes.
	FullName    FullName
	SideEffects []string
	// Reversal is how a call of it is reverted, by an operator's word or else its
	// adapter's; nil if nobody said how.
	Reversal *Reversal
	// Described is the description by operators, without inferred parts.
	Described Description

	schema Schema
}

// Check validates arguments against the tool's input schema. The error is an
// *envelope.InvalidError whose pointers begin with /args, or fault.Conflict
// if the schema itself cannot be used, or the context's.
func (t *Tool) Check(ctx context.Context, args json.RawMessage) error {
	return t.schema.Check(ctx, args)
}

// CheckWithin is Check within a budget that the checks of one request share.
func (t *Tool) CheckWithin(ctx context.Context, b *schema.Budget, args json.RawMessage) error {
	return t.schema.CheckWithin(ctx, b, args)
}

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
	// KindMail changes messages in mailboxes.
	KindMail = "mail"
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
	// GuardFull. Quarantine keeps tools that it lists later than the first ones
	// from use until somebody accepts them.
	DriftGuard DriftGuard
	Quarantine bool
	// Unaccepted reports whether nobody who may change policy has accepted where
	// its calls go: all its tools are in quarantine.
	Unaccepted bool
	// Generation is another one each time Secret is; approvals are for one.
	Generation uuid.UUID
	// ListError says why the last listing failed; empty when it worked.
	ListError string
	// LeftOut is how many tools the last one that worked left out: those that
	// no envelope could name, and those whose definition cannot be used.
	// LeftOutTools has the first few of them.
	LeftOut      int
	LeftOutTools []wire.LeftOutTool
	// UncheckedTools has the first few tools whose input schema has regular
	// expressions that no engine has.
	UncheckedTools []wire.UncheckedTool
	// SkippedLines is how many lines of output were no messages.
	SkippedLines int
	// ListedAt is when that was; nil if it never was.
	ListedAt *time.Time

	// address is the digest of where calls go, acceptedAddress that of where an
	// administrator accepted that they go.
	address, acceptedAddress []byte
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

// Retry is how the attempts of a tool are spaced: exponentially longer from
// Base to Cap, each wait spread by the part Jitter of itself to either side.
type Retry struct {
	Base, Cap time.Duration
	Jitter    float64
}

// A webhook's receiver may be away for a day, so its messages are tried for
// about two days, at growing intervals.
const webhookAttempts = 60

// extendRetries gives a tool that delivers webhooks more attempts than other
// tools, as far as no operator bounded or spaced them.
func (t *Tool) extendRetries(bounded bool) {
	if !bounded {
		t.MaxAttempts = webhookAttempts
	}
	if t.Retry == (Retry{}) {
		t.Retry = Retry{Base: 5 * time.Second, Cap: time.Hour, Jitter: 0.2}
	}
}

// SnapshotRule is a read that shows how things stand, made right before and right
// after every call of a tool.
type SnapshotRule struct {
	// Tool is the read's name at the tool's own source.
	Tool string `json:"tool"`
	// Args is the template of its arguments, in the language of verifying
	// reads; empty stands for {}.
	Args json.RawMessage `json:"args,omitempty"`
	// Required says that a call is not made unless the read before it worked.
	Required bool `json:"required,omitzero"`
}

// SnapshotRule returns the read that belongs to a tool. Few tools have one.
func (c *Catalog) SnapshotRule(key policy.Key) (SnapshotRule, bool) {
	read, ok := c.snapshotRules[key]
	return read, ok
}

// Resolve finds the tool that a proposal means: by source and name, or by
// Composio app and name. Without either the name may be source:name, the full
// name module.entity.action, or the bare name. The first of these always means
// that tool, since no source can take another one's id; of the others exactly
// one tool must have the name, whichever way. Tools in quarantine stand in
// nobody's way. Within are the patterns of the tools that there are for whoever
// asks; nil is all. All other names have one error, whether there is such a tool.
func (c *Catalog) Resolve(named envelope.Tool, within []string) (*Tool, error) {
	found, err := c.resolve(named, func(t *Tool) bool { return c.sources[t.Key.Source].Enabled && t.Within(within) })
	if broken, ok := errors.AsType[*envelope.InvalidError](err); ok && within != nil && broken.Fields[0].Rule != envelope.RuleRequired {
		err = errUnknownTool()
	}
	return found, err
}

// The rules of the errors of Resolve for unknown names.
const (
	ruleUnknownTool   = "unknown_tool"
	ruleUnknownSource = "unknown_source"
)

// Unknown reports whether a field is of an error of Resolve for an unknown tool or
// source.
func Unknown(f envelope.FieldError) bool {
	return f.Rule == ruleUnknownTool || f.Rule == ruleUnknownSource
}

// errUnknownTool returns the error for a tool that does not exist for whoever asks.
func errUnknownTool() error {
	return check.Invalid("/tool/name", ruleUnknownTool, "no such tool; list the tools to see the ones there are")
}

// Within reports whether one of some patterns covers the tool; nil is all tools.
func (t *Tool) Within(patterns []string) bool {
	return patterns == nil || policy.Covers(patterns, t.Key)
}

func (c *Catalog) resolve(named envelope.Tool, exists func(*Tool) bool) (*Tool, error) {
	if source := cmp.Or(named.Source, named.ComposioApp); source != "" {
		if t, ok := c.tools[policy.Key{Source: source, Action: named.Name}]; ok && exists(t) {
			return t, nil
		}
		if src, ok := c.sources[source]; !ok || !src.Enabled {
			return nil, check.Invalid("/tool/source", ruleUnknownSource, "no such source; list the tools to see the ones there are")
		}
		return nil, check.Invalid("/tool/name", ruleUnknownTool, "the source has no such tool; list the tools to see the ones there are")
	}
	if id, action, found := strings.Cut(named.Name, ":"); found {
		if t, ok := c.tools[policy.Key{Source: id, Action: action}]; ok && exists(t) {
			return t, nil
		}
	}
	found := slices.DeleteFunc(slices.Clone(c.named[named.Name]), func(t *Tool) bool { return !exists(t) })
	slices.SortFunc(found, compareKeys)
	found = slices.Compact(found)
	if usable := slices.DeleteFunc(slices.Clone(found), func(t *Tool) bool { return t.Quarantined }); len(usable) > 0 {
		found = usable
	}
	switch len(found) {
	case 0:
		return nil, check.Invalid("/tool/name", ruleUnknownTool, "no source has such a tool; list the tools to see the ones there are")
	case 1:
		return found[0], nil
	}
	keys := make([]string, min(len(found), maxListedKeys))
	for i := range keys {
		keys[i] = found[i].Key.String()
	}
	return nil, check.Invalid("/tool/source", "required", "several tools have this name; say which by its source: %s", strings.Join(keys, ", "))
}

// maxListedKeys bounds the tools that an error lists.
const maxListedKeys = 20

// Definition is what a source says a tool is, beside its name: all that an
// agent reads of it and all that a call depends on.
type Definition struct {
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema"`
	Hints        source.Hints    `json:"hints"`
}

// definitionOf is the definition in what a source listed.
func definitionOf(t source.Tool) Definition {
	return Definition{Title: t.Title, Description: t.Description, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Hints: t.Hints}
}

// parseDefinition reads a definition as it is stored; nil for none.
func parseDefinition(raw []byte) (*Definition, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var d Definition
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	if string(d.OutputSchema) == "null" {
		d.OutputSchema = nil
	}
	return &d, nil
}
