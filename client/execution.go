package client

import (
	"context"
	"net/http"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/snapshot"
	"github.com/countersign-dev/countersign/internal/insight/execution"
)

const executionsPath = "/api/v1/executions"

// ExecutionFilter narrows the forensic log; its zero fields do not.
type ExecutionFilter struct {
	Tool, Source   string
	Status         execution.Status
	Session        string
	Employee       string
	User, Workflow string
	Automation     string
	Code, Via, IP  string
	Since, Until   time.Time
	// Limit is how many a page holds; zero means 50.
	Limit int
	// Cursor is the NextCursor of the page before.
	Cursor string
}

// Execution is one with all that is known of it.
type Execution struct {
	execution.Execution
	// Ledger is every attempt, and every end without one, oldest first.
	Ledger    []Attempt           `json:"ledger"`
	Snapshots []snapshot.Snapshot `json:"snapshots"`
	Related   []execution.Related `json:"related"`
}

// Executions reads a page of the forensic log, newest first. A page may be
// short, or empty, and still have a NextCursor: the end is where that is nil.
func (c *Client) Executions(ctx context.Context, f ExecutionFilter) (Page[execution.Execution], error) {
	query := given(
		"tool", f.Tool, "source", f.Source, "status", string(f.Status), "session_id", f.Session, "employee_id", f.Employee, "token_id", f.User,
		"workflow_id", f.Workflow, "automation_id", f.Automation, "code", f.Code, "via", f.Via, "ip", f.IP, "cursor", f.Cursor)
	for name, at := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	limited(query, f.Limit)
	var page Page[execution.Execution]
	_, err := c.do(ctx, request{method: http.MethodGet, path: executionsPath, query: query}, &page)
	return page, err
}

// Execution reads all that is known of an action or a dry run.
func (c *Client) Execution(ctx context.Context, id envelope.ActionID) (Execution, error) {
	var e Execution
	_, err := c.do(ctx, request{method: http.MethodGet, path: executionsPath + "/" + id.String()}, &e)
	return e, err
}
