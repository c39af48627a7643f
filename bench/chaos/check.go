package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/bench/chaos/database"
	"github.com/countersign-dev/countersign/bench/chaos/load"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/source"
)

// workerLost is the code of an unknown outcome whose worker vanished.
const workerLost = "worker_lost"

// evidence is the input of the checks of the properties.
type evidence struct {
	fault      fault
	plan       plan
	injections []*injection
	signs      map[string]int
	actions    []database.Action
	// uneven are the claims whose sum is not their number of rows in the outbox.
	uneven []string
	server *counting.Counts
	// late counts the workers that did not stop in time.
	late int
	// crashes counts the workers that ended by themselves while the database
	// was up.
	crashes int
}

// total counts the actions of one class.
type total struct {
	Class     envelope.Effect `json:"class"`
	Envelopes int             `json:"envelopes"`
	Effects   int             `json:"effects"`
	// Sent includes Conflict: the effect was there already.
	Sent             int `json:"sent"`
	Unknown          int `json:"unknown"`
	EffectsOfUnknown int `json:"effects_of_unknown"`
	Failed           int `json:"failed"`
	Lost             int `json:"lost"`
	Doubled          int `json:"doubled"`
	Conflict         int `json:"-"`
	Open             int `json:"-"`
}

// check compares Countersign's tables with the journal of the counting server. It
// returns a total for each class, and the violations of each property.
func (e evidence) check() ([]total, violations) {
	totals := make([]total, len(e.plan.classes))
	v := violations{}
	byNumber := e.byNumber(v)
	for n := range e.plan.total() {
		t := &totals[n%len(totals)]
		t.Class = e.plan.class(n)
		t.Envelopes++
		effects := e.server.Effects[n]
		t.Effects += effects
		if effects > 1 {
			t.Doubled++
			v.add(nothingDoubled, fmt.Sprintf("%s took effect %d times", name(n, byNumber), effects))
		}
		f, ok := byNumber[n]
		if !ok {
			t.Lost++
			v.add(allStored, load.ExternalID(n))
			continue
		}
		if e.envelope(t, v, n, f, effects) {
			t.Lost++
		}
	}
	for _, claim := range e.uneven {
		v.add(placesFree, claim)
	}
	for _, n := range e.server.Mixed {
		v.add(oneKey, name(n, byNumber))
	}
	unknown := 0
	for _, t := range totals {
		unknown += t.Unknown
	}
	if most := e.fault.most(e); unknown > most {
		v.add(unknownBounded, fmt.Sprintf("%d are unknown, and the fault can have hit %d", unknown, most))
	}
	for _, sign := range e.fault.signs {
		if e.signs[sign] == 0 {
			v.add(hadEffect, sign+": 0")
		}
	}
	if stuck := e.signs[signStuck]; stuck > 0 {
		v.add(recoversAlone, fmt.Sprintf("%d actions had not ended after %s", stuck, openTimeout))
	}
	if e.late > 0 {
		v.add(stopsOnSignal, fmt.Sprintf("%d workers had to be killed after %s", e.late, process.StopGrace))
	}
	if e.crashes > 0 {
		v.add(noCrash, fmt.Sprintf("%d workers did; see their log", e.crashes))
	}
	return totals, v
}

// envelope checks one envelope and reports whether it is lost.
func (e evidence) envelope(t *total, v violations, n int, f database.Action, effects int) (lost bool) {
	who := fmt.Sprintf("%s (%s)", f.ExternalID, f.ID)
	reason := outbox.Reason("")
	switch envelope.Status(f.Status) {
	case envelope.StatusSent, envelope.StatusConflict:
		t.Sent++
		if f.Status == string(envelope.StatusConflict) {
			t.Conflict++
		}
		if effects == 0 {
			lost = true
			v.add(sentTookEffect, who+" is "+f.Status+" and took no effect")
		}
	case envelope.StatusFailed:
		t.Failed++
		reason = outbox.Reason(f.DeadLetter)
		if reason == "" {
			v.add(deadLetters, who+" failed without a dead letter")
		}
		if effects > 0 {
			v.add(failedTookNone, who+" failed and took effect")
		}
	case envelope.StatusUnknown:
		t.Unknown++
		reason = outbox.Unknown
		t.EffectsOfUnknown += effects
		if !e.mayBeUnknown(n, f) {
			v.add(unknownByFault, who+" is unknown by "+f.Code)
		}
	case envelope.StatusPending, envelope.StatusSending, envelope.StatusSkipped:
		if e.fault.loses && f.Code == codeSentBefore && effects == 1 {
			t.Sent++
			return false
		}
		t.Open++
		lost = true
		v.add(allEnded, who+" is "+f.Status)
	}
	if f.DeadLetter != string(reason) {
		v.add(deadLetters, fmt.Sprintf("%s is %s and its dead reason says %q", who, f.Status, f.DeadLetter))
	}
	if f.Ends != 1 && !lost || f.Repeats != 0 {
		v.add(attemptsOnce, fmt.Sprintf("%s has %d ends and %d attempts written twice", who, f.Ends, f.Repeats))
	}
	tooLarge := f.Status == string(envelope.StatusUnknown) && f.Code == source.CodeOversized
	if t.Class == envelope.EffectKeyed && f.Status != string(envelope.StatusSent) && !tooLarge {
		v.add(allSent, who+" is "+f.Status)
	}
	return lost
}

// mayBeUnknown reports whether the fault explains an unknown outcome: a lost worker
// held the envelope, the tool sent a faulty response, or the network to the tool
// was disturbed.
func (e evidence) mayBeUnknown(n int, f database.Action) bool {
	switch {
	case !slices.Contains(e.fault.codes, f.Code):
		return false
	case f.Code == workerLost:
		return e.held(f.ID)
	case f.Code == codeRecovered:
		return true
	case e.fault.proxy == beforeTool || e.signs[signDeaths] > 0: // calls in flight then are not in the journal
		return true
	}
	return e.server.Faulty[n] > 0
}

// held reports whether a worker held the action at an injection.
func (e evidence) held(action uuid.UUID) bool {
	return slices.ContainsFunc(e.injections, func(one *injection) bool { return one.held[action] })
}

// count returns the number of injections of a kind.
func (e evidence) count(kind string) int {
	return len(slices.DeleteFunc(slices.Clone(e.injections), func(one *injection) bool { return one.kind != kind }))
}

// countOrphans returns the number of leases left behind by workers hit by
// injections of a kind.
func (e evidence) countOrphans(kind string) int {
	n := 0
	for _, one := range e.injections {
		if one.kind == kind {
			n += len(one.orphans)
		}
	}
	return n
}

// worst returns the longest recovery: from the end of an injection to the end
// of the last action that was in work then.
func (e evidence) worst() time.Duration {
	var longest time.Duration
	for _, one := range e.injections {
		if !one.settled.IsZero() {
			longest = max(longest, one.settled.Sub(one.end()))
		}
	}
	return longest
}

// outageSlack is the time after an outage of the database in which a worker
// may still exit because of it: it has tried to connect before.
const outageSlack = 2 * time.Second

// unexplained counts the exits of workers that no outage of the database
// explains: a worker that cannot reach it at its start may end.
func (e evidence) unexplained(exits []time.Time) int {
	return len(slices.DeleteFunc(slices.Clone(exits), func(at time.Time) bool {
		return slices.ContainsFunc(e.injections, func(one *injection) bool {
			down := one.kind == byRestart || one.kind == byDisk || one.kind == byFailover
			return down && at.After(one.at) && at.Before(one.end().Add(outageSlack))
		})
	}))
}

// byNumber finds the envelopes by the number they were submitted under.
func (e evidence) byNumber(v violations) map[int]database.Action {
	all := make(map[int]database.Action, len(e.actions))
	for _, f := range e.actions {
		var n int
		if _, err := fmt.Sscanf(f.ExternalID, "n-%d", &n); err != nil {
			v.add(allStored, f.ID.String()+" was not submitted")
			continue
		}
		if _, twice := all[n]; twice || n < 0 || n >= e.plan.total() {
			v.add(allStored, f.ExternalID+" is there twice, or was not submitted")
		}
		all[n] = f
	}
	return all
}

func name(n int, all map[int]database.Action) string {
	if f, ok := all[n]; ok {
		return fmt.Sprintf("%s (%s)", f.ExternalID, f.ID)
	}
	return load.ExternalID(n)
}

// property is a statement that must hold, and its text in the report.
type property string

// The properties.
const (
	allStored      property = "every envelope that was submitted is there, once"
	allEnded       property = "every envelope has ended"
	allSent        property = "every envelope of class keyed is sent, unless its answer was too large"
	nothingDoubled property = "no effect happened twice"
	sentTookEffect property = "what is sent, or there already, took effect"
	failedTookNone property = "what failed took no effect"
	oneKey         property = "every call of an envelope carried the same key"
	unknownByFault property = "what is unknown was hit by the fault"
	unknownBounded property = "no more is unknown than the fault can have hit"
	deadLetters    property = "what failed or is unknown is a dead letter, and nothing else is"
	attemptsOnce   property = "every attempt and every end is recorded once"
	placesFree     property = "ceilings count the claimed actions of the outbox"
	stopsOnSignal  property = "workers stop when they are asked to"
	noCrash        property = "no worker ends by itself while the database is there"
	recoversAlone  property = "everything recovers without hands"
	hadEffect      property = "the fault had an effect"
)

// allProperties lists the properties in the order of the report.
func allProperties() []property {
	return []property{
		allStored, allEnded, allSent, nothingDoubled, sentTookEffect, failedTookNone, oneKey, unknownByFault,
		unknownBounded, deadLetters, attemptsOnce, placesFree, stopsOnSignal, noCrash, recoversAlone, hadEffect,
	}
}

// violations holds the violations of each property.
type violations map[property][]string

func (v violations) add(p property, what string) { v[p] = append(v[p], what) }
