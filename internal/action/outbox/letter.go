package outbox

import (
	"net/url"
	"time"

	"github.com/countersign-dev/countersign/envelope"
)

// Valid says that r is one of the constants.
func (r Reason) Valid() bool {
	switch r {
	case Refused, Exhausted, Unknown:
		return true
	}
	return false
}

// Letter is a dead letter.
type Letter struct {
	Action        envelope.ActionID
	ExternalID    string
	Source, Tool  string
	Reason        Reason
	Attempt       int
	Code, Message string
	At            time.Time
	Verify        Verifying
}

// Verifying is how far verifying reads have got with a letter of unknown
// outcome.
type Verifying struct {
	// Tries counts those that were begun; Said is what the last one came to,
	// in one word.
	Tries int
	Said  string
	// Next is when the next one is due; nil when none is.
	Next *time.Time
}

// LetterFilter narrows a choice of dead letters; its zero fields do not.
type LetterFilter struct {
	Reason             Reason
	Source, Tool, Code string
	// Since and Until bound when the letters were made: from Since on, before
	// Until.
	Since, Until time.Time
	// Before is the last id of the page before this one, and Most how many a
	// page holds: they concern Letters alone.
	Before envelope.ActionID
	Most   int
}

// Validate says which fields no letter can fit. The error is an
// *envelope.InvalidError.
func (f LetterFilter) Validate() error {
	var fields []envelope.FieldError
	if f.Reason != "" && !f.Reason.Valid() {
		fields = append(fields, envelope.FieldError{Pointer: "/reason", Rule: envelope.RuleEnum, Message: "must be refused or exhausted or unknown"})
	}
	if !f.Until.IsZero() && !f.Since.Before(f.Until) {
		fields = append(fields, envelope.FieldError{Pointer: "/until", Rule: "order", Message: "must be later than since"})
	}
	if len(fields) == 0 {
		return nil
	}
	return &envelope.InvalidError{Fields: fields}
}

// name says in one line which letters fit, whenever they were made: a run that
// is taken up again names the same.
func (f LetterFilter) name() string {
	return url.Values{"reason": {string(f.Reason)}, "source": {f.Source}, "tool": {f.Tool}, "code": {f.Code}}.Encode()
}

// Lot is a change of dead letters that a person asks for. It is done to those
// whose envelopes are the oldest.
type Lot struct {
	// IDs are those that it is about; nil is every one that the filter fits.
	IDs    []envelope.ActionID
	Filter LetterFilter
	// Most bounds how many it is done to. It must be positive.
	Most int
	// DryRun changes nothing.
	DryRun bool
	// Actor is who asks, and Note why, for the record.
	Actor, Note string
}

// Pace says how a lot is replayed.
type Pace struct {
	// Doubling also replays what may have had its effect already.
	Doubling bool
	// PerSecond spreads the envelopes over time, so many a second; zero makes
	// them due at once. Lots of the same filter share one schedule, in which
	// each goes on where the last one ended.
	PerSecond float64
}

// Tally is how many dead letters there are of a tool and a reason.
type Tally struct {
	Source, Tool string
	Reason       Reason
	Letters      int
}

// LotDone is what came of a lot.
type LotDone struct {
	// Actions are those that it was done to or, of a dry run, would be.
	Actions []envelope.ActionID
	// Left counts the letters that fit and are still there. LeftOut counts
	// those among them that nobody knows the outcome of, if they are left out
	// on purpose; Left does not count these.
	Left, LeftOut int
	// Tallies counts what Left and LeftOut count, by tool and reason.
	Tallies []Tally
	// AsOf is the database's time. Letters made from then on are not counted;
	// as the filter's Until it keeps later lots of the same run from taking
	// those that failed again meanwhile.
	AsOf time.Time
	// Ahead is how far the schedule of a paced replay reaches beyond AsOf.
	Ahead time.Duration
}

// gap is the time between two envelopes of a pace.
func (p Pace) gap() time.Duration {
	if p.PerSecond <= 0 {
		return 0
	}
	return time.Duration(float64(time.Second) / p.PerSecond)
}

// Resolution is what somebody found out about an envelope whose call nobody
// heard the end of.
type Resolution struct {
	// Happened says that the call had its effect. If it had not, the envelope
	// is to run again, or, with GiveUp, ends as failed.
	Happened, GiveUp bool
	// Actor is who says so, and Note how they know, for the record.
	Actor, Note string
	// Look is the number of the verifying read that found it, which must still
	// be the last one; zero for a person.
	Look int
}

// event is what the resolution does to an unknown envelope.
func (r Resolution) event() envelope.Event {
	switch {
	case r.Happened:
		return envelope.EventResolveSent
	case r.GiveUp:
		return envelope.EventResolveFailed
	}
	return envelope.EventResolvePending
}

// CodeResolved is the code of a row of the ledger that tells what somebody
// found out, not what a call came to.
const CodeResolved = "resolved"

// due spreads n moments over time.
func due(from time.Time, gap time.Duration, n int) []time.Time {
	all := make([]time.Time, n)
	for i := range all {
		all[i] = from.Add(time.Duration(i) * gap)
	}
	return all
}
