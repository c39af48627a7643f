package overview

import (
	"time"

	"github.com/countersign-dev/countersign/internal/telemetry"
)

// others is the name under which buckets are summed up; none can be called so.
const others = "(others)"

// standing is a reading as telemetry wants it. What is counted by kind has
// every kind that is always there, so that a gauge falls to 0 and does not
// vanish.
func (r *reading) standing(buckets []Bucket, uncovered time.Duration, notices map[string]int64) telemetry.Standing {
	t := r.tally
	s := telemetry.Standing{
		Due: t.due, Scheduled: t.scheduled, InFlight: t.inFlight, Overdue: t.overdue, OldestDue: t.oldestDue, Unsealed: uncovered, Notices: notices,
		Waiting: map[string]int64{reasonTurn: 0, "retry": 0, "quiet_hours": 0, reasonPaused: 0, "breaker_open": 0, "bucket": 0, reasonApproval: 0, "not_before": 0},
		Pauses:  map[string]int64{"everything": 0, "tenant": 0, "employee": 0, "source": 0, "bucket": 0, "tool": 0},
		Letters: map[string]int64{"refused": 0, "exhausted": 0, "unknown": 0},
	}
	for _, w := range t.waiting(r.approvals) {
		s.Waiting[w.Reason] = w.Envelopes
	}
	for _, p := range r.pauses {
		s.Pauses[p.Scope]++
	}
	for _, l := range r.letters {
		s.Letters[l.Reason] = l.Count
		if l.Reason == "unknown" {
			s.OldestUnknown = l.Oldest
		}
	}
	for _, b := range t.filled(buckets, r.pauses) {
		s.Buckets = append(s.Buckets, telemetry.BucketStanding{
			Tenant: b.Tenant, Bucket: b.Name, Waiting: b.Waiting, OldestDue: b.OldestDue, Limited: b.Limited, Tokens: b.Tokens,
			InUse: b.InUse, Concurrency: b.Concurrency, OpensIn: b.OpensIn,
		})
	}
	if rest := t.rest(buckets); rest.Waiting > 0 {
		s.Buckets = append(s.Buckets, telemetry.BucketStanding{Tenant: others, Bucket: others, Waiting: rest.Waiting, OldestDue: rest.OldestDue})
	}
	for _, b := range r.breakers {
		s.Breakers = append(s.Breakers, telemetry.BreakerStanding{Tenant: b.Tenant, Source: b.Source, State: b.State})
	}
	for _, k := range r.tables {
		s.Tables = append(s.Tables, telemetry.TableStanding{Name: k.name, Bytes: k.bytes, Live: k.live, Dead: k.dead})
	}
	return s
}
