// Package execution owns the execution log: the inputs and outputs of each
// execution, its caller and origin, the decisions about it, and its related
// executions. An execution is an action or a dry run. The package redacts inputs
// unless they are shown to their proposer. It decides nothing and calls no tool.
package execution

import (
	"net/http"
	"net/netip"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/listen"
	"github.com/countersign-dev/countersign/internal/redact"
)

// StatusOf returns the status of an action; "" if its approval or status is
// invalid.
func StatusOf(a envelope.Approval, s envelope.Status) wire.ExecutionStatus {
	switch a {
	case envelope.ApprovalDenied:
		return wire.ExecutionDenied
	case envelope.ApprovalExpired:
		return wire.ExecutionExpired
	case envelope.ApprovalRequired, envelope.ApprovalGranted, envelope.ApprovalAuto:
	}
	switch s {
	case envelope.StatusSent, envelope.StatusConflict:
		return wire.ExecutionSuccess
	case envelope.StatusFailed:
		return wire.ExecutionError
	case envelope.StatusSkipped:
		return wire.ExecutionSkipped
	case envelope.StatusUnknown:
		return wire.ExecutionUnknown
	case envelope.StatusPending:
		return wire.ExecutionPending
	case envelope.StatusSending:
		return wire.ExecutionExecuting
	}
	return ""
}

// statesOf returns the approvals and statuses of the actions with status s; an
// empty list means any.
func statesOf(s wire.ExecutionStatus) (approvals []envelope.Approval, statuses []envelope.Status) {
	live := []envelope.Approval{envelope.ApprovalAuto, envelope.ApprovalGranted, envelope.ApprovalRequired}
	switch s {
	case wire.ExecutionSuccess:
		return live, []envelope.Status{envelope.StatusSent, envelope.StatusConflict}
	case wire.ExecutionError:
		return live, []envelope.Status{envelope.StatusFailed}
	case wire.ExecutionDenied:
		return []envelope.Approval{envelope.ApprovalDenied}, nil
	case wire.ExecutionExpired:
		return []envelope.Approval{envelope.ApprovalExpired}, nil
	case wire.ExecutionSkipped:
		return live, []envelope.Status{envelope.StatusSkipped}
	case wire.ExecutionUnknown:
		return live, []envelope.Status{envelope.StatusUnknown}
	case wire.ExecutionPending:
		return live, []envelope.Status{envelope.StatusPending}
	case wire.ExecutionExecuting:
		return live, []envelope.Status{envelope.StatusSending}
	case wire.ExecutionDryRun:
	}
	return nil, nil
}

// ViewFor returns the view of an execution for the holder of a token: the
// proposer sees the inputs unchanged, others with redacted credentials, and nobody
// text of mail.
func ViewFor(token uuid.UUID, e wire.Execution) wire.Execution {
	whole := e.Inputs
	e.Inputs, e.Proposed = redact.Mail(e.ExternalID, e.Inputs), redact.Mail(e.ExternalID, e.Proposed)
	e.Redacted = string(whole) != string(e.Inputs)
	if e.User == nil || e.User.ID != token {
		inputs, proposed := e.Inputs, e.Proposed
		e.Inputs = redact.JSON(inputs)
		if proposed != nil {
			e.Proposed = redact.JSON(proposed)
		}
		e.Redacted = e.Redacted || string(e.Inputs) != string(inputs) || string(e.Proposed) != string(proposed)
	}
	return e
}

// Maximum numbers of rows that one List scans: for filters on the rows of
// actions, and for filters on their outcomes.
const (
	lookFar  = 50_000
	lookNear = 10_000
)

// Filter selects executions. Zero fields match all.
type Filter struct {
	// Tool is the tool's name at its source.
	Tool, Source string
	Status       wire.ExecutionStatus
	Session      string
	Employee     envelope.EmployeeID
	User         uuid.UUID
	// UserName is the name of the proposer's token.
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

// look returns the maximum number of rows that a List scans.
func (f *Filter) look() int {
	if f.Status != "" || f.Code != "" {
		return lookNear
	}
	return lookFar
}

// actions and dryRuns report whether actions, or dry runs, may match.
func (f *Filter) actions() bool { return f.Status != wire.ExecutionDryRun }

func (f *Filter) dryRuns() bool {
	return (f.Status == "" || f.Status == wire.ExecutionDryRun) && f.Code == "" && f.Workflow == uuid.Nil
}

// Via is the interface through which an action was proposed.
type Via string

// The interfaces.
const (
	ViaAPI      Via = "api"
	ViaMCP      Via = "mcp"
	ViaUI       Via = "ui"
	ViaWebhook  Via = "webhook"
	ViaSQL      Via = "sql"
	ViaWorkflow Via = "workflow"
	ViaSystem   Via = "system"
)

// MaxAgentBytes bounds wire.Origin.UserAgent.
const MaxAgentBytes = 200

// OriginOf returns the origin of a request. Its address is that of
// listen.ClientOf.
func OriginOf(r *http.Request, via Via, requestID string, trusted []netip.Prefix) wire.Origin {
	of := wire.Origin{UserAgent: printable(r.UserAgent()), Via: string(via), RequestID: requestID}
	if client := listen.ClientOf(r, trusted); client.IsValid() {
		of.IP = client.String()
	}
	return of
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
