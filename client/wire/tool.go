package wire

import (
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Tool is a tool that can be called.
type Tool struct {
	// Tool is source:name.
	Tool string `json:"tool"`
	// FullName is module.entity.action; two tools may share one.
	FullName     string          `json:"full_name"`
	Module       string          `json:"module"`
	Entity       string          `json:"entity"`
	Action       string          `json:"action"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Risk         string          `json:"risk"`
	Effect       envelope.Effect `json:"effect"`
	SideEffects  []string        `json:"side_effects"`
	Reversible   bool            `json:"reversible"`
	// Reversal is the declared reversal, or nil.
	Reversal         *Reversal     `json:"reversal,omitempty"`
	MaxAttempts      int           `json:"max_attempts"`
	Mode             envelope.Mode `json:"mode"`
	RequiresApproval bool          `json:"requires_approval"`
	Enabled          bool          `json:"enabled"`
	Drifted          bool          `json:"drifted"`
	// Drift is none, text or interface.
	Drift       string `json:"drift"`
	Quarantined bool   `json:"quarantined"`
	Digest      string `json:"digest"`
	// Recipients are JSON Pointers to the recipients in the arguments, inferred
	// unless RecipientsConfirmed.
	Recipients          []string `json:"recipients"`
	RecipientsConfirmed bool     `json:"recipients_confirmed"`
	// Headline is the template of one line about a call, in which {/pointer} stands for an
	// argument: a suggestion unless HeadlineConfirmed. Empty if no argument is known.
	Headline          string `json:"headline"`
	HeadlineConfirmed bool   `json:"headline_confirmed"`
	// Scopes are those that an employee needs to use it.
	Scopes []string `json:"scopes"`
	// Retry is as an operator set it; the rest has the defaults.
	Retry Retry `json:"retry"`
	// Timeout is the time that a call may take without an answer or progress, as set
	// by an operator; zero means the source's default.
	Timeout envelope.Duration `json:"timeout,omitzero"`
	// Configured has the overrides and the description by operators, without
	// inferred parts.
	Configured ToolConfigured `json:"configured"`
	ETag       string         `json:"etag"`
}

// ToolConfigured has the fields of a tool that operators set; omitted fields are inferred, or
// those of its source.
type ToolConfigured struct {
	Overrides
	ToolDescription
}

// Reversal is a call that reverts another.
type Reversal struct {
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args,omitempty"`
}

// ToolList is the result of a search for tools.
type ToolList struct {
	Items      []Tool       `json:"items"`
	NextCursor *string      `json:"next_cursor"`
	Sources    []ToolSource `json:"sources"`
}

// ToolSource is the state of a source of tools.
type ToolSource struct {
	ID      string `json:"source_id"`
	Enabled bool   `json:"enabled"`
	// Error is the reason why its tools could not be listed; nil if they could.
	Error *string `json:"error"`
}

// ToolDiff is the change of a tool's definition since it was accepted, with
// invisible characters written as escapes.
type ToolDiff struct {
	Tool             string           `json:"tool"`
	Drift            string           `json:"drift"`
	Drifted          bool             `json:"drifted"`
	Quarantined      bool             `json:"quarantined"`
	Digest           string           `json:"digest"`
	InterfaceDigest  string           `json:"interface_digest"`
	AcceptedDigest   *string          `json:"accepted_digest"`
	AcceptedKnown    bool             `json:"accepted_known"`
	HiddenCharacters bool             `json:"hidden_characters"`
	Changes          []ToolDifference `json:"changes"`
}

// ToolDifference is one difference between two definitions. Was and Now are
// nil where the member was, or is, absent.
type ToolDifference struct {
	Pointer          string          `json:"pointer"`
	Was              json.RawMessage `json:"was,omitempty"`
	Now              json.RawMessage `json:"now,omitempty"`
	Strength         string          `json:"strength"`
	HiddenCharacters bool            `json:"hidden_characters"`
}

// Overrides replace properties of a tool that its source gives.
type Overrides struct {
	Risk        string          `json:"risk,omitzero"`
	Effect      envelope.Effect `json:"effect,omitzero"`
	MaxAttempts int             `json:"max_attempts,omitzero"`
}

// ToolDescription is an operator's description of a tool; omitted fields are
// inferred.
type ToolDescription struct {
	Module string `json:"module,omitzero"`
	Entity string `json:"entity,omitzero"`
	Action string `json:"action,omitzero"`
	// SideEffects are the effects of a call; nil leaves them to a guess.
	SideEffects *[]string `json:"side_effects,omitempty"`
	Reversal    *Reversal `json:"reversal,omitempty"`
	// Headline is a template, as Tool.Headline. A change of the tool's definition ends it.
	Headline string `json:"headline,omitzero"`
}

// ReconcileRule is the read that finds out whether a call of a tool happened.
type ReconcileRule struct {
	// Tool is the tool whose calls are reconciled. It is not sent.
	Tool string `json:"tool,omitzero"`
	// Read is a tool of the same source that only reads.
	Read string `json:"read"`
	// Args is the template of its arguments.
	Args json.RawMessage `json:"args,omitempty"`
	// Happened is a JSON Pointer into its answer.
	Happened string `json:"happened"`
	// Resend also runs calls of class once again that did not happen.
	Resend bool   `json:"resend,omitzero"`
	ETag   string `json:"etag,omitzero"`
}

// Source is a source of tools, without its credentials.
type Source struct {
	ID             string          `json:"source_id"`
	Kind           string          `json:"kind"`
	Config         json.RawMessage `json:"config"`
	HasCredentials bool            `json:"has_credentials"`
	DefaultRisk    string          `json:"default_risk,omitzero"`
	Enabled        bool            `json:"enabled"`
	// DriftGuard is full or interface.
	DriftGuard string     `json:"drift_guard"`
	Quarantine bool       `json:"quarantine"`
	ListedAt   *time.Time `json:"listed_at"`
	ListError  *string    `json:"list_error"`
	// LeftOut is the number of tools that its last listing left out, and
	// LeftOutTools the first few of them.
	LeftOut      int           `json:"left_out"`
	LeftOutTools []LeftOutTool `json:"left_out_tools"`
	// UncheckedTools are the first of its tools whose input schema has regular
	// expressions that are not supported.
	UncheckedTools []UncheckedTool `json:"unchecked_tools"`
	// Tools is the number of tools that it offers now. Denied are those that
	// are denied for being dangerous, or nil.
	Tools  int          `json:"tools"`
	Denied *DeniedTools `json:"denied"`
	// SkippedLines counts lines of its program's output that were no messages.
	SkippedLines int `json:"skipped_lines"`
	// AddressAccepted reports whether an administrator accepted the source's
	// address, QuarantinedTools counts the new tools to accept.
	AddressAccepted  bool `json:"address_accepted"`
	QuarantinedTools int  `json:"quarantined_tools"`
	// Quarantined reports whether all its tools are in quarantine, because nobody
	// with policy:write has accepted its address.
	Quarantined bool `json:"quarantined"`
	// OnLostLogin is wait or fail.
	OnLostLogin string `json:"on_lost_login"`
	// Login is its login towards an authorization server; nil if it has none.
	Login *SourceLogin `json:"login"`
	// ETag identifies the settings, for If-Match.
	ETag string `json:"etag,omitzero"`
}

// SourceLogin is the login of a source towards an authorization server.
type SourceLogin struct {
	Issuer  string    `json:"issuer"`
	Scope   string    `json:"scope"`
	LoginBy string    `json:"login_by"`
	LoginAt time.Time `json:"login_at"`
	// ExpiresAt is the end of the current token, which is renewed before.
	ExpiresAt *time.Time `json:"expires_at"`
	// LostAt is set if somebody has to log in again, and LostReason why.
	LostAt     *time.Time `json:"lost_at"`
	LostReason *string    `json:"lost_reason"`
	// NeededScopes are scopes that the source demands and the login lacks, and
	// NeededTools the tools whose calls need them; empty for all tools.
	NeededScopes []string `json:"needed_scopes"`
	NeededTools  []string `json:"needed_tools"`
}

// SourceLoginInput begins a login of a source.
type SourceLoginInput struct {
	// Device logs in without a browser.
	Device bool `json:"device,omitzero"`
	// Page leads the browser back to the operator's page.
	Page bool `json:"page,omitzero"`
	// Scopes are those to ask for; without any, those that the source names, and those
	// that its login has and lacks.
	Scopes []string `json:"scopes,omitempty"`
	// ClientID and ClientSecret are those of a client that was registered by hand.
	ClientID     string `json:"client_id,omitzero"`
	ClientSecret string `json:"client_secret,omitzero"`
}

// BegunSourceLogin is a login that waits for a person at URL.
type BegunSourceLogin struct {
	State  string `json:"state"`
	Issuer string `json:"issuer"`
	URL    string `json:"url"`
	// UserCode is the code that the person enters there; nil for a login in a browser.
	UserCode        *string   `json:"user_code"`
	IntervalSeconds float64   `json:"interval_seconds"`
	ExpiresAt       time.Time `json:"expires_at"`
}

// SourceLoginAnswer finishes a login of a source: with the text that the browser
// shows, or for a device with its state.
type SourceLoginAnswer struct {
	Answer string `json:"answer,omitzero"`
	State  string `json:"state,omitzero"`
}

// FinishedSourceLogin reports whether a source is logged in, and the pause before
// the next request.
type FinishedSourceLogin struct {
	Done        bool    `json:"done"`
	WaitSeconds float64 `json:"wait_seconds"`
}

// Results of the revocation of a login's tokens.
const (
	RevocationDone        = "done"
	RevocationUnsupported = "unsupported"
	RevocationFailed      = "failed"
)

// RemovedSourceLogin reports whether the authorization server revoked the tokens of a
// removed login.
type RemovedSourceLogin struct {
	Revocation string `json:"revocation"`
}

// DeniedTools are the tools of a source that are denied because their risk is
// danger and the tenant denies that if no mode is set.
type DeniedTools struct {
	Count int `json:"count"`
	// Tools are the names of the first hundred, as the source wrote them.
	Tools []string `json:"tools"`
	// Message is the reason, and the way to require approval instead.
	Message string `json:"message"`
}

// LeftOutTool is a tool that a listing left out, and why.
type LeftOutTool struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// UncheckedTool is a tool whose input schema has regular expressions that are not
// checked.
type UncheckedTool struct {
	Name     string   `json:"name"`
	Patterns []string `json:"patterns"`
}

// SourceInput is a source of tools to store.
type SourceInput struct {
	Kind   string          `json:"kind"`
	Config json.RawMessage `json:"config"`
	// Credentials are stored encrypted and never shown again.
	Credentials json.RawMessage `json:"credentials,omitempty"`
	// DefaultRisk is read, write or danger, for tools without a risk.
	DefaultRisk string `json:"default_risk,omitzero"`
	// Enabled is true by default; the guard and the quarantine are unchanged.
	Enabled    *bool  `json:"enabled,omitempty"`
	DriftGuard string `json:"drift_guard,omitzero"`
	Quarantine *bool  `json:"quarantine,omitempty"`
	// OnLostLogin is wait or fail; unchanged if empty.
	OnLostLogin string `json:"on_lost_login,omitzero"`
}

// ToolRule is an operator's rule for a tool: its recipients, the scopes
// required to use it, and its retries.
type ToolRule struct {
	// Recipients are JSON Pointers to the recipients in the arguments; nil infers
	// them from the schema, and an empty list means none.
	Recipients *[]string `json:"recipients,omitempty"`
	// Scopes are those that an employee needs to use the tool.
	Scopes []string `json:"scopes,omitempty"`
	Retry  Retry    `json:"retry,omitzero"`
	// Timeout is the time that a call may take without an answer or progress, 1s to
	// 1h; zero means the source's default.
	Timeout envelope.Duration `json:"timeout,omitzero"`
}

// Retry is the retry policy of a tool. Zero fields have the defaults.
type Retry struct {
	// MaxAttempts is the number of attempts in all, 1 to 100.
	MaxAttempts int `json:"max_attempts,omitzero"`
	// Base is the first pause before a retry, which doubles with every attempt up
	// to Cap.
	Base envelope.Duration `json:"base,omitzero"`
	Cap  envelope.Duration `json:"cap,omitzero"`
	// Jitter is the share of a pause that is left to chance, 0 to 1.
	Jitter *float64 `json:"jitter,omitempty"`
}

// ToolAcceptance accepts the definition of a tool that has a digest.
type ToolAcceptance struct {
	Digest string `json:"digest"`
}

// SnapshotRule is the read before and after every call of a tool.
type SnapshotRule struct {
	// Tool is the tool around whose calls the snapshots are taken. It is not sent.
	Tool string `json:"tool,omitzero"`
	// Read is a tool of the same source that only reads.
	Read string `json:"read"`
	// Args is the template of its arguments; empty stands for {}.
	Args json.RawMessage `json:"args,omitempty"`
	// Required holds the call up until the read before it has worked.
	Required bool   `json:"required,omitzero"`
	ETag     string `json:"etag,omitzero"`
}

// Refresh is the time at which a listing of a source was requested.
type Refresh struct {
	SourceID string    `json:"source_id"`
	AskedAt  time.Time `json:"asked_at"`
}
