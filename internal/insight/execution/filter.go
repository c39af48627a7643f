package execution

import (
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

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
