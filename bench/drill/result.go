package main

import (
	"fmt"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/bench/chaos/database"
	"github.com/countersign-dev/countersign/bench/chaos/load"
	"github.com/countersign-dev/countersign/envelope"
)

// result compares the restored database with the count of the server outside.
type result struct {
	// submitted counts the actions, calls the calls that arrived.
	submitted, calls int
	// unknown and asks count the actions that a person must look at: those whose outcome
	// is unknown, and those that may repeat a lost one. sent counts these of both that
	// had been sent.
	unknown, asks, sent int
	// wentOn counts the actions that were sent after the recovery.
	wentOn, doubled int
	broken          []string
}

// judge compares the actions with the numbers from first on with the counts. Before is the
// number of actions that were sent before the recovery.
func judge(k kind, first, n int, actions []database.Action, counts *counting.Counts, before int) result {
	v := result{submitted: n}
	found := make(map[string]database.Action, len(actions))
	for _, a := range actions {
		found[a.ExternalID] = a
	}
	sent := 0
	for i := first; i < first+n; i++ {
		id := load.ExternalID(i)
		a, ok := found[id]
		effects := counts.Effects[i]
		v.calls += counts.Arrived[i]
		if effects > 1 {
			v.doubled++
			v.fail("%s took effect %d times", id, effects)
		}
		switch status := envelope.Status(a.Status); {
		case !ok:
			v.fail("%s is lost", id)
		case status == envelope.StatusSent:
			sent++
			if effects == 0 {
				v.fail("%s is sent and took no effect", id)
			}
		case status == envelope.StatusUnknown || status == envelope.StatusPending:
			if status == envelope.StatusUnknown {
				v.unknown++
			} else {
				v.asks++ // nothing is due any more
			}
			v.sent += effects
		default:
			v.fail("%s is %s (%s)", id, a.Status, a.Code)
		}
	}
	v.wentOn = sent - before
	if k.planned && v.unknown+v.asks > 0 {
		v.fail("%d actions need a person after a move", v.unknown+v.asks)
	}
	if !k.planned && v.sent == 0 {
		v.fail("no action that the database lost had been sent, so that the drill proves nothing")
	}
	if v.wentOn <= 0 {
		v.fail("no action went on after the recovery")
	}
	return v
}

func (v *result) fail(format string, args ...any) {
	v.broken = append(v.broken, fmt.Sprintf(format, args...))
}

// String returns the figures of a kind.
func (v result) String() string {
	return fmt.Sprintf("%d actions, %d calls, %d doubled; a person looks at %d (%d unknown, %d to approve; %d of them had been sent); %d went on",
		v.submitted, v.calls, v.doubled, v.unknown+v.asks, v.unknown, v.asks, v.sent, v.wentOn)
}
