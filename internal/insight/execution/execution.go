// Package execution owns what can be told afterwards of every execution: what
// went in and what came out, who asked, from where, why it was allowed, how
// things stood before and after, and what it belongs to. An execution is an
// action, or a dry run, which nobody did. The package also owns the reads that
// take snapshots around a call. It refuses to tell what a reader is not to
// know: inputs are redacted unless they are shown to whoever proposed them.
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

// Status is one word for how an execution ended, or stands.
type Status string

// The statuses.
const (
	// StatusSuccess: it was done, or had been done before.
	StatusSuccess Status = "success"
	// StatusError: it was tried, failed for good, and had no effect.
	StatusError Status = "error"
	// StatusDenied: policy or a person refused it.
	StatusDenied Status = "denied"
	// StatusExpired: nobody decided in time.
	StatusExpired Status = "expired"
	// StatusSkipped: it was taken off the schedule before it began.
	StatusSkipped Status = "skipped"
	// StatusUnknown: it was sent, and nobody knows what happened.
	StatusUnknown Status = "unknown"
	// StatusPending: it waits for a person, its time or its turn.
	StatusPending Status = "pending"
	// StatusExecuting: it is being done.
	StatusExecuting Status = "executing"
	// StatusDryRun: somebody asked what would happen.
	StatusDryRun Status = "dry_run"
)

// Valid says that s is one of the constants.
func (s Status) Valid() bool {
	switch s {
	case StatusSuccess, StatusError, StatusDenied, StatusExpired, StatusSkipped, StatusUnknown, StatusPending, StatusExecuting, StatusDryRun:
		return true
	}
	return false
}

// StatusOf is the status of an action. For an approval or a status that is
// not valid it is "".
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

// means lists the approvals and the statuses of the actions that a status is
// of; an empty list is any.
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

// Execution is one of them, as far as a line in a list tells.
type Execution struct {
	// ID is that of the action, or the dry run's own.
	ID     envelope.ActionID `json:"execution_id"`
	Tenant envelope.TenantID `json:"tenant_id"`
	Status Status            `json:"status"`
	// Phase is empty for a dry run.
	Phase envelope.Phase `json:"phase,omitzero"`
	Tool  policy.Key     `json:"tool"`
	// Inputs are the effective arguments. Redacted says that what looks like a
	// credential was taken out of them, or of Proposed.
	Inputs   json.RawMessage `json:"inputs"`
	Redacted bool            `json:"inputs_redacted"`
	// Proposed are the arguments as they were proposed, if somebody edited them
	// before approving, and EditedBy is who did.
	Proposed json.RawMessage `json:"proposed_inputs,omitempty"`
	EditedBy string          `json:"edited_by,omitzero"`
	// Outputs are as executor.Outputs gives them, redacted and cut to size.
	Outputs json.RawMessage   `json:"outputs"`
	Error   *envelope.Failure `json:"error"`
	// ProviderID is the source's own name for what was made.
	ProviderID *string `json:"provider_id"`
	Attempts   int     `json:"attempts"`
	// ProposedAt is when it was asked for. StartedAt, FinishedAt and Duration
	// are of its last call; nil without one.
	ProposedAt time.Time       `json:"proposed_at"`
	StartedAt  *time.Time      `json:"started_at"`
	FinishedAt *time.Time      `json:"finished_at"`
	DurationMS *int64          `json:"duration_ms"`
	Risk       envelope.Risk   `json:"risk"`
	Effect     envelope.Effect `json:"effect"`
	// User is whose token it came with; nil when it came from inside.
	User       *User                `json:"user"`
	Employee   *envelope.EmployeeID `json:"employee_id"`
	Session    string               `json:"session_id,omitzero"`
	Automation string               `json:"automation_id,omitzero"`
	ExternalID string               `json:"external_id,omitzero"`
	Workflow   *uuid.UUID           `json:"workflow_id"`
	// Context is the request that it came with; nil where nobody noted it.
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
	Name  string    `json:"name"`
}

// PolicyDecision is what policy decided when the action was proposed.
type PolicyDecision struct {
	Mode   envelope.Mode   `json:"mode"`
	Source string          `json:"source"`
	Trace  json.RawMessage `json:"trace"`
}

// Decision is what became of the wait for a person.
type Decision struct {
	Approval envelope.Approval `json:"approval"`
	At       *time.Time        `json:"at"`
	By       string            `json:"by"`
	Note     string            `json:"note"`
}

// Related is another execution that one belongs with.
type Related struct {
	ID         envelope.ActionID `json:"execution_id"`
	Relation   Relation          `json:"relation"`
	Tool       policy.Key        `json:"tool"`
	ExternalID string            `json:"external_id,omitzero"`
	ProposedAt time.Time         `json:"proposed_at"`
}

// Relation says how two executions belong together.
type Relation string

// The relations.
const (
	// RelationWorkflow: the other is a step of the same workflow.
	RelationWorkflow Relation = "workflow"
	// RelationReversal: it undoes this one.
	RelationReversal Relation = "reversal"
	// RelationReverses: this one undoes it.
	RelationReverses Relation = "reverses"
	// RelationRepeat: it is the same call of the same agent, made another time.
	RelationRepeat Relation = "repeat"
	// RelationDryRun: it is a dry run of the same call.
	RelationDryRun Relation = "dry_run"
)

// For returns the execution as somebody may see it: whoever proposed it sees
// the inputs as they are, others without what looks like a credential.
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

// How many executions one List goes through at most, for filters that the rows
// of actions answer and for those that take a look at how each one ended.
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

// narrows says that a row may be left out.
func (f *Filter) narrows() bool {
	plain := Filter{Before: f.Before, Limit: f.Limit}
	return *f != plain
}

// look is how many rows may be gone through.
func (f *Filter) look() int {
	if f.Status != "" || f.Code != "" {
		return lookNear
	}
	return lookFar
}

// actions and dryRuns say which of the two may have matches.
func (f *Filter) actions() bool { return f.Status != StatusDryRun }

func (f *Filter) dryRuns() bool {
	return (f.Status == "" || f.Status == StatusDryRun) && f.Code == "" && f.Workflow == uuid.Nil
}

// Via is the way by which a proposal came in.
type Via string

// The ways.
const (
	ViaAPI      Via = "api"
	ViaMCP      Via = "mcp"
	ViaUI       Via = "ui"
	ViaWebhook  Via = "webhook"
	ViaWorkflow Via = "workflow"
	ViaSystem   Via = "system"
)

// Valid says that v is one of the constants.
func (v Via) Valid() bool {
	switch v {
	case ViaAPI, ViaMCP, ViaUI, ViaWebhook, ViaWorkflow, ViaSystem:
		return true
	}
	return false
}

// Origin is the request that a proposal came with.
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

// OriginOf notes where a request comes from. The header X-Forwarded-For counts
// as far as trusted proxies wrote it: the client is the last address in it
// that is none of theirs.
func OriginOf(r *http.Request, via Via, requestID string, trusted []netip.Prefix) Origin {
	return Origin{IP: clientOf(r, trusted), UserAgent: printable(r.UserAgent()), Via: via, RequestID: requestID}
}

// JSON is the origin as an action keeps it.
func (o Origin) JSON() json.RawMessage {
	text, err := json.Marshal(o)
	if err != nil { // it is made of strings alone
		return nil
	}
	return text
}

// clientOf finds the client's address; "" if there is none, as in a test.
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

// printable keeps what a line of a log can show, as much of it as there is
// room for.
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
