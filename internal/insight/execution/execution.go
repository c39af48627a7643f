// Package execution is the log of executions: the inputs and outputs of each,
// its caller and origin, the decisions about it, and its related executions. An
// execution is an action or a dry run. The package redacts inputs unless they
// are shown to their proposer. It decides nothing and calls no tool.
package execution

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Status is the state of an execution, in one word.
type Status string

// The statuses.
const (
	// StatusSuccess: the call succeeded, or its effect existed already.
	StatusSuccess Status = "success"
	// StatusError: the call failed for good and had no effect.
	StatusError Status = "error"
	// StatusDenied: policy or a person denied the action.
	StatusDenied Status = "denied"
	// StatusExpired: nobody approved the action in time.
	StatusExpired Status = "expired"
	// StatusSkipped: the action was unscheduled before its first attempt.
	StatusSkipped Status = "skipped"
	// StatusUnknown: the call was sent, and its outcome is unknown.
	StatusUnknown Status = "unknown"
	// StatusPending: the action waits for approval or until it is due.
	StatusPending Status = "pending"
	// StatusExecuting: a worker has the action.
	StatusExecuting Status = "executing"
	// StatusDryRun: the execution is a dry run.
	StatusDryRun Status = "dry_run"
)

// Valid reports whether s is one of the constants.
func (s Status) Valid() bool {
	switch s {
	case StatusSuccess, StatusError, StatusDenied, StatusExpired, StatusSkipped, StatusUnknown, StatusPending, StatusExecuting, StatusDryRun:
		return true
	}
	return false
}

// StatusOf returns the status of an action; "" if its approval or status is
// not valid.
func StatusOf(a envelope.Approval, s envelope.Status) Status {
	switch a {
	case envelope.ApprovalDenied:
		return StatusDenied
	case envelope.ApprovalExpired:
		return StatusExpired
	case envelope.ApprovalRequired, envelope.ApprovalGranted, envelope.ApprovalAuto:
	}
	switch s {
	case envelope.StatusSent, envelope.StatusConflict:
		return StatusSuccess
	case envelope.StatusFailed:
		return StatusError
	case envelope.StatusSkipped:
		return StatusSkipped
	case envelope.StatusUnknown:
		return StatusUnknown
	case envelope.StatusPending:
		return StatusPending
	case envelope.StatusSending:
		return StatusExecuting
	}
	return ""
}

// means returns the approvals and statuses of the actions that have status s;
// an empty list is any.
func (s Status) means() (approvals []envelope.Approval, statuses []envelope.Status) {
	live := []envelope.Approval{envelope.ApprovalAuto, envelope.ApprovalGranted, envelope.ApprovalRequired}
	switch s {
	case StatusSuccess:
		return live, []envelope.Status{envelope.StatusSent, envelope.StatusConflict}
	case StatusError:
		return live, []envelope.Status{envelope.StatusFailed}
	case StatusDenied:
		return []envelope.Approval{envelope.ApprovalDenied}, nil
	case StatusExpired:
		return []envelope.Approval{envelope.ApprovalExpired}, nil
	case StatusSkipped:
		return live, []envelope.Status{envelope.StatusSkipped}
	case StatusUnknown:
		return live, []envelope.Status{envelope.StatusUnknown}
	case StatusPending:
		return live, []envelope.Status{envelope.StatusPending}
	case StatusExecuting:
		return live, []envelope.Status{envelope.StatusSending}
	case StatusDryRun:
	}
	return nil, nil
}

// Execution is an execution as lists show it.
type Execution struct {
	// ID is that of the action, or the dry run's own.
	ID     envelope.ActionID `json:"execution_id"`
	Tenant envelope.TenantID `json:"tenant_id"`
	Status Status            `json:"status"`
	// Phase is empty for a dry run.
	Phase envelope.Phase `json:"phase,omitzero"`
	Tool  policy.Key     `json:"tool"`
	// Inputs are the effective arguments. Redacted reports whether values that
	// look like credentials were removed from Inputs or Proposed.
	Inputs   json.RawMessage `json:"inputs"`
	Redacted bool            `json:"inputs_redacted"`
	// Proposed are the arguments as they were proposed, if somebody edited them
	// before approving, and EditedBy is who did.
	Proposed json.RawMessage `json:"proposed_inputs,omitempty"`
	EditedBy envelope.Actor  `json:"edited_by,omitzero"`
	// Outputs are the result of source.Outputs, redacted and truncated.
	Outputs json.RawMessage   `json:"outputs"`
	Error   *envelope.Failure `json:"error"`
	// ProviderID is the source's own name for what was made.
	ProviderID *string `json:"provider_id"`
	Attempts   int     `json:"attempts"`
	// StartedAt, FinishedAt and DurationMS are those of the last attempt; nil
	// without one.
	ProposedAt time.Time       `json:"proposed_at"`
	StartedAt  *time.Time      `json:"started_at"`
	FinishedAt *time.Time      `json:"finished_at"`
	DurationMS *int64          `json:"duration_ms"`
	Risk       envelope.Risk   `json:"risk"`
	Effect     envelope.Effect `json:"effect"`
	// User is the token of the proposer; nil for Countersign itself.
	User       *User                `json:"user"`
	Employee   *envelope.EmployeeID `json:"employee_id"`
	Session    string               `json:"session_id,omitzero"`
	Automation string               `json:"automation_id,omitzero"`
	ExternalID string               `json:"external_id,omitzero"`
	Workflow   *uuid.UUID           `json:"workflow_id"`
	// Context is the request that proposed it; nil if none is recorded.
	Context *Origin        `json:"context"`
	Policy  PolicyDecision `json:"policy"`
	// Decision is a person's, or the end of the wait for one.
	Decision *Decision `json:"decision"`
	// Preview is what a dry run found; nil for an action.
	Preview json.RawMessage `json:"preview,omitempty"`
}

// User is a token and its name.
type User struct {
	Token uuid.UUID `json:"token_id"`
	// Operator is the person whose token it is; nil if nobody said who that is.
	Operator *uuid.UUID `json:"operator_id,omitempty"`
	Name     string     `json:"name"`
}

// PolicyDecision is what policy decided when the action was proposed.
type PolicyDecision struct {
	Mode   envelope.Mode   `json:"mode"`
	Source string          `json:"source"`
	Trace  json.RawMessage `json:"trace"`
}

// Decision is the approval of an action, or its absence.
type Decision struct {
	Approval envelope.Approval `json:"approval"`
	At       *time.Time        `json:"at"`
	By       envelope.Actor    `json:"by"`
	Note     string            `json:"note"`
}

// Related is an execution that is related to another.
type Related struct {
	ID         envelope.ActionID `json:"execution_id"`
	Relation   Relation          `json:"relation"`
	Tool       policy.Key        `json:"tool"`
	ExternalID string            `json:"external_id,omitzero"`
	ProposedAt time.Time         `json:"proposed_at"`
}

// Relation is the kind of a relation between two executions.
type Relation string

// The relations.
const (
	// RelationWorkflow: the related execution is a step of the same workflow.
	RelationWorkflow Relation = "workflow"
	// RelationReversal: the related execution undoes this one.
	RelationReversal Relation = "reversal"
	// RelationReverses: this execution undoes the related one.
	RelationReverses Relation = "reverses"
	// RelationRepeat: the related execution is another call of the same agent
	// with the same content.
	RelationRepeat Relation = "repeat"
	// RelationDryRun: the related execution is a dry run of the same call.
	RelationDryRun Relation = "dry_run"
)

// For returns the execution as the holder of a token may see it: the proposer
// sees the inputs unchanged, others without values that look like credentials.
func (e Execution) For(token uuid.UUID) Execution {
	if e.User == nil || e.User.Token != token {
		inputs, proposed := e.Inputs, e.Proposed
		e.Inputs = redact.JSON(inputs)
		if proposed != nil {
			e.Proposed = redact.JSON(proposed)
		}
		e.Redacted = string(e.Inputs) != string(inputs) || string(e.Proposed) != string(proposed)
	}
	return e
}

// The most rows that one List scans, for filters on the rows of actions and for
// filters on the end of each action.
const (
	lookFar  = 50_000
	lookNear = 10_000
)

// Filter narrows a list; its zero fields do not.
type Filter struct {
	// Tool is the name at its source.
	Tool, Source string
	Status       Status
	Session      string
	Employee     envelope.EmployeeID
	User         uuid.UUID
	// UserName is the name of the token that it was proposed with.
	UserName      string
	Automation    string
	Workflow      uuid.UUID
	Code, Via, IP string
	Since, Until  time.Time
	Before        envelope.ActionID
	Limit         int
}

// narrows reports whether the filter may exclude rows.
func (f *Filter) narrows() bool {
	plain := Filter{Before: f.Before, Limit: f.Limit}
	return *f != plain
}

// look returns how many rows a List may scan.
func (f *Filter) look() int {
	if f.Status != "" || f.Code != "" {
		return lookNear
	}
	return lookFar
}

// actions and dryRuns report whether actions, or dry runs, may match.
func (f *Filter) actions() bool { return f.Status != StatusDryRun }

func (f *Filter) dryRuns() bool {
	return (f.Status == "" || f.Status == StatusDryRun) && f.Code == "" && f.Workflow == uuid.Nil
}

// Via is the interface through which an action was proposed.
type Via string

// The interfaces.
const (
	ViaAPI      Via = "api"
	ViaMCP      Via = "mcp"
	ViaUI       Via = "ui"
	ViaWebhook  Via = "webhook"
	ViaWorkflow Via = "workflow"
	ViaSystem   Via = "system"
)

// Valid reports whether v is one of the constants.
func (v Via) Valid() bool {
	switch v {
	case ViaAPI, ViaMCP, ViaUI, ViaWebhook, ViaWorkflow, ViaSystem:
		return true
	}
	return false
}

// Origin is the request that proposed an action.
type Origin struct {
	// IP is the client's, past the proxies that are trusted.
	IP string `json:"ip,omitzero"`
	// UserAgent is what the client calls itself, cut to MaxAgentBytes.
	UserAgent string `json:"user_agent,omitzero"`
	Via       Via    `json:"via"`
	// RequestID is the one in logs and problems.
	RequestID string `json:"request_id,omitzero"`
}

// MaxAgentBytes bounds Origin.UserAgent.
const MaxAgentBytes = 200

// OriginOf returns the origin of a request. The header X-Forwarded-For counts
// as far as trusted proxies wrote it: the client is its last address that is not
// that of a trusted proxy.
func OriginOf(r *http.Request, via Via, requestID string, trusted []netip.Prefix) Origin {
	return Origin{IP: clientOf(r, trusted), UserAgent: printable(r.UserAgent()), Via: via, RequestID: requestID}
}

// JSON returns the origin in the form in which an action stores it.
func (o Origin) JSON() json.RawMessage {
	text, err := json.Marshal(o)
	if err != nil { // it is made of strings alone
		return nil
	}
	return text
}

// clientOf returns the client's address; "" if there is none, as in a test.
func clientOf(r *http.Request, trusted []netip.Prefix) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	client, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	client = client.Unmap().WithZone("")
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && within(client, trusted); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break // a proxy that writes anything else says nothing
		}
		client = next.Unmap().WithZone("")
	}
	return client.String()
}

func within(addr netip.Addr, prefixes []netip.Prefix) bool {
	for _, p := range prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// printable returns the printable characters of a text, truncated to a length.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, text)
	if len(text) <= MaxAgentBytes {
		return text
	}
	cut := MaxAgentBytes
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}
