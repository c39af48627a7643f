package audit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Part is number No of Of equal shares of a tenant's actions. Actions are
// compared in parts, so that memory is bounded and a comparison can be
// continued.
type Part struct{ No, Of int }

// maxParts bounds Part.Of: 250 thousand million actions.
const maxParts = 1_000_000

// String returns the part in the form that ParsePart parses, such as 2/5.
func (p Part) String() string { return fmt.Sprintf("%d/%d", p.No, p.Of) }

// ParsePart parses the output of String.
func ParsePart(text string) (Part, error) {
	no, of, _ := strings.Cut(text, "/")
	var p Part
	var errNo, errOf error
	p.No, errNo = strconv.Atoi(no)
	p.Of, errOf = strconv.Atoi(of)
	if errNo != nil || errOf != nil || p.No < 1 || p.No > p.Of || p.Of > maxParts {
		return Part{}, errors.New("a part must be two numbers with a / between, such as 2/5")
	}
	return p, nil
}

// mine reports whether an action belongs to the part.
func (p Part) mine(id envelope.ActionID) bool {
	// The last bytes of an id are random.
	n := uint32(id[12])<<24 | uint32(id[13])<<16 | uint32(id[14])<<8 | uint32(id[15])
	return int(n%uint32(p.Of)) == p.No-1
}

// RowsOptions select the rows that VerifyRows compares.
type RowsOptions struct {
	// Since skips actions that were proposed earlier. Zero means all.
	Since time.Time
	// Part is the part to compare; zero means the first.
	Part Part
	// Progress, if set, is called from time to time with the progress.
	Progress func(RowsReport)
	// atOnce is the approximate number of actions in memory; zero means
	// actionsAtOnce.
	atOnce int
}

// actionsAtOnce bounds the number of actions in memory, of about 300 bytes each.
const actionsAtOnce = 250_000

// RowsReport is the result of comparing rows with events.
type RowsReport struct {
	Findings []Finding `json:"findings"`
	Omitted  int64     `json:"findings_omitted"`
	// Actions, Votes, Attempts and Decisions are the numbers of compared rows.
	// Pruned is the number of actions that retention deleted, by its events.
	Actions   int64 `json:"actions"`
	Votes     int64 `json:"votes"`
	Attempts  int64 `json:"attempts"`
	Decisions int64 `json:"decisions"`
	Pruned    int64 `json:"pruned"`
	// Unchecked is the number of actions that were not compared, because their
	// events are older than Since or were deleted by retention.
	Unchecked int64 `json:"unchecked"`
	// Events is the number of events that were read, counted once per part.
	Events int64 `json:"events_read"`
	// Part is the last part that was compared, and Next the part to continue
	// with; zero at the end.
	Part Part `json:"-"`
	Next Part `json:"-"`
}

// Join adds the report of the next part.
func (r *RowsReport) Join(rest RowsReport) {
	for _, f := range rest.Findings {
		r.add(f)
	}
	r.Omitted += rest.Omitted
	r.Actions += rest.Actions
	r.Votes += rest.Votes
	r.Attempts += rest.Attempts
	r.Decisions += rest.Decisions
	r.Pruned += rest.Pruned
	r.Unchecked += rest.Unchecked
	r.Events += rest.Events
	r.Part, r.Next = rest.Part, rest.Next
}

func (r *RowsReport) add(f Finding) {
	if len(r.Findings) == maxFindings {
		r.Omitted++
		return
	}
	r.Findings = append(r.Findings, f)
}
