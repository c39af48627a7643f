package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/insight/execution"
)

// Call is a call of a tool.
type Call struct {
	// Inputs are the tool's arguments, a JSON object; empty stands for {}.
	Inputs json.RawMessage `json:"inputs,omitempty"`
	// ExternalID is the caller's own name for the call, which makes it safe to
	// send again.
	ExternalID string `json:"external_id,omitzero"`
	// DryRun asks what would happen.
	DryRun bool `json:"dry_run,omitzero"`
	// Wait is how long to wait for its end. If it is nil, what may run
	// is waited for for half a minute, and what a person has to approve not at
	// all.
	Wait *envelope.Duration `json:"wait,omitempty"`
	// Plan is what a dry run of the same call gave.
	Plan         string                `json:"plan,omitzero"`
	AutomationID string                `json:"automation_id,omitzero"`
	EmployeeID   *envelope.EmployeeID  `json:"employee_id,omitempty"`
	SessionID    string                `json:"session_id,omitzero"`
	Risk         envelope.Risk         `json:"risk,omitzero"`
	Approval     envelope.Approval     `json:"approval,omitzero"`
	Constraints  *envelope.Constraints `json:"constraints,omitempty"`
}

// Invocation is what became of a call.
type Invocation struct {
	ID     envelope.ActionID `json:"execution_id"`
	Status execution.Status  `json:"status"`
	Phase  envelope.Phase    `json:"phase,omitzero"`
	Tool   string            `json:"tool"`
	// Known says that it had been made before, under the same name.
	Known bool `json:"known"`
	// Outputs are what the tool said; nil where it said nothing.
	Outputs    json.RawMessage   `json:"outputs"`
	Error      *envelope.Failure `json:"error"`
	Attempts   int               `json:"attempts"`
	StartedAt  *time.Time        `json:"started_at"`
	FinishedAt *time.Time        `json:"finished_at"`
	DurationMS *int64            `json:"duration_ms"`
	Policy     Verdict           `json:"policy"`
	Decision   *Decision         `json:"decision"`
	Waiting    *Waiting          `json:"waiting"`
	// DryRun is set if the call was one.
	DryRun *DryRun `json:"dry_run,omitempty"`
}

// DryRun is what a call would come to.
type DryRun struct {
	intake.Outlook
	// Call is what would be sent.
	Call WouldSend `json:"call"`
	// KnownID is the action that has this name already, with this content.
	KnownID *envelope.ActionID `json:"known_action_id"`
	// Plan proves, with a call that comes later, that it is this one.
	Plan      string    `json:"plan"`
	PlanUntil time.Time `json:"plan_expires_at"`
}

// WouldSend is what would go to the source.
type WouldSend struct {
	Source     string          `json:"source"`
	Tool       string          `json:"tool"`
	Args       json.RawMessage `json:"args"`
	Effect     envelope.Effect `json:"effect"`
	Repeatable bool            `json:"repeatable"`
}

// Invoke calls a tool, by source:tool, its full name or a name that only one
// source has. A call that was denied, expired, taken back or failed comes back
// with the *Problem that says so.
func (c *Client) Invoke(ctx context.Context, tool string, call Call) (Invocation, error) {
	rq := request{method: http.MethodPost, path: "/api/v1/tools/" + url.PathEscape(tool), in: call, wait: 30 * time.Second}
	if call.Wait != nil {
		rq.wait = time.Duration(*call.Wait)
	}
	var inv Invocation
	_, err := c.do(ctx, rq, &inv)
	if p, ok := errors.AsType[*Problem](err); ok && p.Execution != nil {
		inv = *p.Execution
	}
	return inv, err
}
