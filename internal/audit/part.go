package audit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Part is a share of a tenant's actions, number No of Of: actions are compared in
// parts, so that memory is bounded and a comparison can be continued.
type Part struct{ No, Of int }

// maxParts bounds Part.Of: 250 thousand million actions.
const maxParts = 1_000_000

// String returns a part as people continue with it: 2/5.
func (p Part) String() string { return fmt.Sprintf("%d/%d", p.No, p.Of) }

// ParsePart parses the output of String.
func ParsePart(text string) (Part, error) {
	no, of, _ := strings.Cut(text, "/")
	var p Part
	var errNo, errOf error
	p.No, errNo = strconv.Atoi(no)
	p.Of, errOf = strconv.Atoi(of)
	if errNo != nil || errOf != nil || p.No < 1 || p.No > p.Of || p.Of > maxParts {
		return Part{}, errors.New("a part is two numbers with a / between, such as 2/5")
	}
	return p, nil
}

// mine reports whether an action is of the part.
func (p Part) mine(id envelope.ActionID) bool {
	// The last bytes of an id are random.
	n := uint32(id[12])<<24 | uint32(id[13])<<16 | uint32(id[14])<<8 | uint32(id[15])
	return int(n%uint32(p.Of)) == p.No-1
}

// RowsOptions select what VerifyRows compares.
type RowsOptions struct {
	// Since leaves out actions that were proposed earlier. Zero is all.
	Since time.Time
	// Part is the part to compare; zero is the first.
	Part Part
	// Progress, if set, is called from time to time with the progress.
	Progress func(RowsReport)
	// atOnce is about how many actions are held in memory; zero is actionsAtOnce.
	atOnce int
}

// actionsAtOnce bounds how many actions are held in memory, with about 300 bytes
// each.
const actionsAtOnce = 250_000

// RowsReport is the result of comparing rows with events.
type RowsReport struct {
	Findings []Finding `json:"findings"`
	Omitted  int64     `json:"findings_omitted"`
	// Actions, Votes, Attempts and Decisions are how many rows were compared, and
	// Pruned how many actions retention deleted, as its events say.
	Actions   int64 `json:"actions"`
	Votes     int64 `json:"votes"`
	Attempts  int64 `json:"attempts"`
	Decisions int64 `json:"decisions"`
	Pruned    int64 `json:"pruned"`
	// Unchecked is how many actions were not compared, because their events are
	// older than Since or were deleted by retention.
	Unchecked int64 `json:"unchecked"`
	// Events is how many events were read; several times, if there are several
	// parts.
	Events int64 `json:"events_read"`
	// Part is the last part that was compared, and Next the one to continue with;
	// zero at the end.
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
