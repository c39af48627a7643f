// Package catalog owns a tenant's sources and tools: the listings of sources,
// the digests and drift of definitions, the settings of tools by operators, the
// lookup of a tool by name or words, and their storage. A Catalog belongs to one
// tenant and is immutable. The package does not call sources (connection) and
// does not decide about calls (settings).
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
	"github.com/countersign-dev/countersign/internal/tenant/headline"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// DefaultMaxAttempts bounds the attempts of an envelope whose tool has no bound
// of its own.
const DefaultMaxAttempts = 5

// Tool is a tool in the catalog.
type Tool struct {
	Key policy.Key
	// Definition is the latest definition listed by the source.
	Definition
	// Digest is the digest of Definition, Accepted that of the accepted
	// definition, or of the first listed one. They may be of different schemes:
	// Is compares them.
	Digest, Accepted []byte
	// Binding is the digest of Definition and of the address of its source.
	// Proposals, approvals, grants and plans refer to a binding, so that they do
	// not apply to a tool of the same name elsewhere.
	Binding []byte
	// Moved is set if the address of its source is not the accepted one.
	Moved bool
	// AcceptedDefinition is the accepted definition, if it is stored and its
	// digest differs from Digest; else nil.
	AcceptedDefinition *Definition
	// Drift is the difference between the definition and the accepted one, and
	// Guard the level of drift that needs a person.
	Drift Drift
	Guard DriftGuard
	// Overrides are those set by operators.
	Overrides Overrides
	// Risk and Effect are derived from overrides, hints and defaults.
	Risk        policy.ToolRisk
	Effect      envelope.Effect
	MaxAttempts int
	// Retry is the spacing of attempts; the zero Retry means the default of the
	// worker.
	Retry Retry
	// Timeout bounds the time of a call without an answer or progress; zero
	// means the default of the source.
	Timeout time.Duration
	// Recipients select the recipients in its arguments. Guessed is set if they
	// were inferred rather than set by an operator.
	Recipients []contact.Pattern
	Guessed    bool
	// Scopes are the scopes that an employee needs to use it.
	Scopes []string
	// Quarantined is set while the tool must not be used: it is a new tool of a
	// source with a quarantine, or its source is Unaccepted.
	Quarantined bool
	// FullName is its name by its function, and SideEffects the changes made by
	// a call.
	FullName    FullName
	SideEffects []string
	// Reversal reverts a call, as set by an operator or else declared by its
	// adapter; nil if neither.
	Reversal *Reversal
	// Described is the description by operators, without inferred parts.
	Described Description

	schema   Schema
	headline *headline.Template
	order    *headline.Order
}

// Check validates arguments against the tool's input schema. The error is an
// *envelope.InvalidError with pointers below /args, fault.Conflict if the schema
// is unusable, or that of ctx.
func (t *Tool) Check(ctx context.Context, args json.RawMessage) error {
	return t.schema.Check(ctx, args)
}

// CheckWithin is Check within a budget shared by the checks of one request.
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
	// KindWebhook delivers messages to an address of the tenant.
	KindWebhook = "webhook"
	// KindMail changes messages in mailboxes.
	KindMail = "mail"
	// KindDAV adds to calendars and address books.
	KindDAV = "dav"
)

// OnLostLogin decides about the calls of a source while its login is lost.
type OnLostLogin string

// The values of OnLostLogin.
const (
	// LostLoginWaits has calls wait until somebody logs in.
	LostLoginWaits OnLostLogin = "wait"
	// LostLoginFails has calls fail.
	LostLoginFails OnLostLogin = "fail"
)

// Login is a login of a source towards an authorization server, without its tokens.
type Login struct {
	Issuer, Scope, By string
	At                time.Time
	// ExpiresAt is the end of the current token, which is renewed before; nil if it
	// has none.
	ExpiresAt *time.Time `json:"-"`
	// LostAt and LostReason are set if somebody has to log in again.
	LostAt     *time.Time
	LostReason string
	// NeededScopes are scopes that the source demands and the login lacks, and
	// NeededTools the tools whose calls need them; empty for all of them.
	NeededScopes, NeededTools []string
}

// WaitsForLogin reports whether calls of a tool of the source wait for a login.
func (s Source) WaitsForLogin(tool string) bool {
	return s.Login != nil && s.OnLostLogin != LostLoginFails && (s.Login.LostAt != nil || s.Login.Lacks(tool))
}

// Lacks reports whether the login lacks scopes for calls of a tool.
func (l *Login) Lacks(tool string) bool {
	return len(l.NeededScopes) > 0 && (len(l.NeededTools) == 0 || slices.Contains(l.NeededTools, tool))
}

// Source is a source in the catalog.
type Source struct {
	ID, Kind string
	Config   json.RawMessage
	// Secret is encrypted; only package connection decrypts it.
	Secret      []byte
	DefaultRisk policy.ToolRisk
	Enabled     bool
	// DriftGuard selects the changes of its tools that need a person; empty
	// means GuardFull. Quarantine keeps newly listed tools from use until they
	// are accepted.
	DriftGuard DriftGuard
	Quarantine bool
	// Unaccepted is set until someone with the right to change policy has
	// accepted the address: all its tools are in quarantine.
	Unaccepted bool
	// Generation changes with each change of Secret; approvals are for one
	// generation.
	Generation uuid.UUID
	// OnLostLogin selects what calls do while the login is lost; empty means
	// LostLoginWaits. Login is the login of the source; nil if it has none.
	OnLostLogin OnLostLogin
	Login       *Login
	// ListError is the reason why the last listing failed; empty if it
	// succeeded.
	ListError string
	// LeftOut is the number of tools that the last successful listing omitted,
	// because an envelope cannot name them or their definition is unusable.
	// LeftOutTools has the first few of them.
	LeftOut      int
	LeftOutTools []wire.LeftOutTool
	// UncheckedTools has the first few tools whose input schema has regular
	// expressions that no engine supports.
	UncheckedTools []wire.UncheckedTool
	// SkippedLines is the number of output lines that were not messages.
	SkippedLines int
	// ListedAt is the time of the last successful listing, or nil.
	ListedAt *time.Time

	// address is the digest of the current address, acceptedAddress that of the
	// accepted one.
	address, acceptedAddress []byte
}

// Catalog holds the sources and tools of one tenant. It is immutable and safe
// for concurrent use.
type Catalog struct {
	sources       map[string]Source
	tools         map[policy.Key]*Tool
	snapshotRules map[policy.Key]SnapshotRule
	// named holds the tools by name and by full name.
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

// Offers reports whether a tool's source is enabled and its last listing
// succeeded. Other tools remain in the catalog for waiting actions: Resolve and
// Tool find them.
func (c *Catalog) Offers(t *Tool) bool {
	src, ok := c.sources[t.Key.Source]
	return ok && src.Enabled && src.ListError == ""
}

// Retry is the spacing of a tool's attempts: the waits grow exponentially from
// Base to Cap, each randomized by the fraction Jitter in both directions.
type Retry struct {
	Base, Cap time.Duration
	Jitter    float64
}

// A webhook's receiver may be unavailable for a day, so messages are retried for
// about two days, at growing intervals.
const webhookAttempts = 60

// extendRetries gives a tool that delivers webhooks more attempts, unless
// operators set their number or spacing.
func (t *Tool) extendRetries(bounded bool) {
	if !bounded {
		t.MaxAttempts = webhookAttempts
	}
	if t.Retry == (Retry{}) {
		t.Retry = Retry{Base: 5 * time.Second, Cap: time.Hour, Jitter: 0.2}
	}
}

// SnapshotRule configures a read of the state before and after every call of a
// tool.
type SnapshotRule struct {
	// Tool is the name of the reading tool at the same source.
	Tool string `json:"tool"`
	// Args is the template of its arguments, in the language of reconciling
	// reads; empty means {}.
	Args json.RawMessage `json:"args,omitempty"`
	// Required is set if a call must not be made unless the read before it
	// succeeded.
	Required bool `json:"required,omitzero"`
}

// SnapshotRule returns the snapshot rule of a tool. Few tools have one.
func (c *Catalog) SnapshotRule(key policy.Key) (SnapshotRule, bool) {
	read, ok := c.snapshotRules[key]
	return read, ok
}

// Resolve finds the tool of a proposal: by source and name, or by Composio app
// and name. Without either the name may be source:name, the full name
// module.entity.action, or the bare name. The form source:name is always
// unambiguous, since source ids are unique; of the other forms exactly one tool
// must match. Tools in quarantine are ignored. within are the patterns of the
// tools that are visible to the caller; nil means all. All other names have the
// same error, whether or not such a tool exists.
func (c *Catalog) Resolve(named envelope.Tool, within []string) (*Tool, error) {
	found, err := c.resolve(named, func(t *Tool) bool { return c.sources[t.Key.Source].Enabled && t.Within(within) })
	if broken, ok := errors.AsType[*envelope.InvalidError](err); ok && within != nil && broken.Fields[0].Rule != envelope.RuleRequired {
		err = check.Invalid("/tool/name", ruleUnknownTool, "no such tool; list the tools to see their names")
	}
	return found, err
}

// Rules of errors of Resolve for unknown names.
const (
	ruleUnknownTool   = "unknown_tool"
	ruleUnknownSource = "unknown_source"
)

// Unknown reports whether a field error of Resolve is about an unknown tool or
// source.
func Unknown(f envelope.FieldError) bool {
	return f.Rule == ruleUnknownTool || f.Rule == ruleUnknownSource
}

// Within reports whether one of the patterns covers the tool; nil covers all
// tools.
func (t *Tool) Within(patterns []string) bool {
	return patterns == nil || policy.Covers(patterns, t.Key)
}

func (c *Catalog) resolve(named envelope.Tool, exists func(*Tool) bool) (*Tool, error) {
	if source := cmp.Or(named.Source, named.ComposioApp); source != "" {
		if t, ok := c.tools[policy.Key{Source: source, Action: named.Name}]; ok && exists(t) {
			return t, nil
		}
		if src, ok := c.sources[source]; !ok || !src.Enabled {
			return nil, check.Invalid("/tool/source", ruleUnknownSource, "no such source; list the sources to see their ids")
		}
		return nil, check.Invalid("/tool/name", ruleUnknownTool, "the source has no such tool; list the tools to see their names")
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
		return nil, check.Invalid("/tool/name", ruleUnknownTool, "no source has such a tool; list the tools to see their names")
	case 1:
		return found[0], nil
	}
	keys := make([]string, min(len(found), maxListedKeys))
	for i := range keys {
		keys[i] = found[i].Key.String()
	}
	return nil, check.Invalid("/tool/source", "required", "several tools have this name; give it as source:name: %s", strings.Join(keys, ", "))
}

// maxListedKeys bounds the tools in an error.
const maxListedKeys = 20

// Definition is the definition of a tool by its source, without its name: the
// texts that an agent reads, and the schemas and hints that a call depends on.
type Definition struct {
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema"`
	Hints        source.Hints    `json:"hints"`
}

// definitionOf returns the definition of a listed tool.
func definitionOf(t source.Tool) Definition {
	return Definition{Title: t.Title, Description: t.Description, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Hints: t.Hints}
}

// parseDefinition decodes a stored definition; it returns nil for NULL.
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
