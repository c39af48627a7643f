package main

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
)

// workerLost is the code of an unknown outcome whose worker vanished.
const workerLost = "worker_lost"

// storedAction is an envelope as Countersign stores it at the end.
type storedAction struct {
	External string
	Action   uuid.UUID
	Status   string
	Code     string
	// Ends counts the attempts in the ledger that ended the envelope, Repeats the
	// attempts that are recorded twice.
	Ends, Repeats int
	// DeadLetter is the reason of its dead letter; empty if it has none.
	DeadLetter string
}

// evidence is the data that the properties are checked on.
type evidence struct {
	fault      fault
	plan       plan
	injections []*injection
	signs      map[string]int
	// stuck counts the envelopes that ended only after a worker was killed for them.
	stuck     int
	envelopes []storedAction
	server    *journalCounts
	// held are the envelopes that a worker held at an injection.
	held map[uuid.UUID]bool
	// late counts the workers that did not stop when asked to.
	late int
	// crashes counts those that ended by themselves while the database was
	// there.
	crashes int
}

// count says how many injections of a kind there were, and struck how many in all.
func (e evidence) count(kind string) int { return countInjections(e.injections, kind) }
func (e evidence) injected() int         { return len(e.injections) }

// property is something that must hold, and what breaks it.
type property struct {
	text   string
	broken []string
}

// total counts the envelopes of one class.
type total struct {
	class                                     envelope.Effect
	envelopes                                 int
	sent, conflict, dead, unknown, open       int
	effects, lost, doubled, effectsOfUnknowns int
}

// check compares what Countersign stores with the journal of the counting server.
// It returns a total for each class, and the properties with what breaks them.
func (e evidence) check() ([]total, []property) {
	totals := make([]total, len(e.plan.classes))
	p := properties{}
	byNumber := e.byNumber(&p)
	for n := range e.plan.total() {
		t := &totals[n%len(totals)]
		t.class = e.plan.class(n)
		t.envelopes++
		effects := e.server.Effects[n]
		t.effects += effects
		if effects > 1 {
			t.doubled++
			p.breaks(nothingDoubled, fmt.Sprintf("%s took effect %d times", name(n, byNumber), effects))
		}
		f, ok := byNumber[n]
		if !ok {
			t.lost++
			p.breaks(allThere, externalID(n))
			continue
		}
		if e.envelope(t, &p, n, f, effects) {
			t.lost++
		}
	}
	for _, n := range e.server.Mixed {
		p.breaks(oneKey, name(n, byNumber))
	}
	unknown := 0
	for _, t := range totals {
		unknown += t.unknown
	}
	if most := e.fault.most(e); unknown > most {
		p.breaks(fewUnknown, fmt.Sprintf("%d are unknown, and the fault can have hit %d", unknown, most))
	}
	for _, sign := range e.fault.wantSigns {
		if e.signs[sign] == 0 {
			p.breaks(wasFelt, sign+": 0")
		}
	}
	if e.stuck > 0 {
		p.breaks(byItself, fmt.Sprintf("%d envelopes had not ended when we stepped in", e.stuck))
	}
	if e.late > 0 {
		p.breaks(stopsWhenAsked, fmt.Sprintf("%d workers had to be killed after %s", e.late, stopGrace))
	}
	if e.crashes > 0 {
		p.breaks(noCrash, fmt.Sprintf("%d workers did; see their log", e.crashes))
	}
	return totals, p.list()
}

// envelope checks one envelope and reports whether it is lost.
func (e evidence) envelope(t *total, p *properties, n int, f storedAction, effects int) (lost bool) {
	who := fmt.Sprintf("%s (%s)", f.External, f.Action)
	letter := outbox.Reason("")
	switch envelope.Status(f.Status) {
	case envelope.StatusSent, envelope.StatusConflict:
		if f.Status == string(envelope.StatusSent) {
			t.sent++
		} else {
			t.conflict++
		}
		if effects == 0 {
			lost = true
			p.breaks(sentIsDone, who+" is "+f.Status+" and took no effect")
		}
	case envelope.StatusFailed:
		t.dead++
		letter = outbox.Reason(f.DeadLetter)
		if letter == "" {
			p.breaks(letters, who+" failed and is no dead letter")
		}
		if effects > 0 {
			p.breaks(failedIsNot, who+" failed and took effect")
		}
	case envelope.StatusUnknown:
		t.unknown++
		letter = outbox.Unknown
		t.effectsOfUnknowns += effects
		if !e.mayBeUnknown(n, f) {
			p.breaks(unknownByFault, who+" is unknown by "+f.Code)
		}
	case envelope.StatusPending, envelope.StatusSending, envelope.StatusSkipped:
		t.open++
		lost = true
		p.breaks(allEnded, who+" is "+f.Status)
	}
	if f.DeadLetter != string(letter) {
		p.breaks(letters, fmt.Sprintf("%s is %s and its dead letter says %q", who, f.Status, f.DeadLetter))
	}
	if f.Ends != 1 && !lost || f.Repeats != 0 {
		p.breaks(ledgerOnce, fmt.Sprintf("%s has %d ends and %d attempts written twice", who, f.Ends, f.Repeats))
	}
	if t.class == envelope.EffectKeyed && f.Status != string(envelope.StatusSent) {
		p.breaks(allSent, who+" is "+f.Status)
	}
	return lost
}

// mayBeUnknown reports whether the fault explains an unknown outcome: a lost worker
// held the envelope, the tool sent a faulty response, or the network to the tool
// was disturbed.
func (e evidence) mayBeUnknown(n int, f storedAction) bool {
	switch {
	case !slices.Contains(e.fault.codes, f.Code):
		return false
	case f.Code == workerLost:
		return e.held[f.Action]
	case e.fault.line == placeTool || e.signs[feltDeaths] > 0: // those that were open are not counted anywhere
		return true
	}
	return e.server.Spoiled[n] > 0
}

// byNumber finds the envelopes by the number they were submitted under.
func (e evidence) byNumber(p *properties) map[int]storedAction {
	all := make(map[int]storedAction, len(e.envelopes))
	for _, f := range e.envelopes {
		var n int
		if _, err := fmt.Sscanf(f.External, "n-%d", &n); err != nil {
			p.breaks(allThere, f.Action.String()+" was not submitted")
			continue
		}
		if _, twice := all[n]; twice || n < 0 || n >= e.plan.total() {
			p.breaks(allThere, f.External+" is there twice, or was not submitted")
		}
		all[n] = f
	}
	return all
}

func name(n int, all map[int]storedAction) string {
	if f, ok := all[n]; ok {
		return fmt.Sprintf("%s (%s)", f.External, f.Action)
	}
	return externalID(n)
}

// The properties, in the order in which they are printed.
const (
	allThere = iota
	allEnded
	allSent
	nothingDoubled
	sentIsDone
	failedIsNot
	oneKey
	unknownByFault
	fewUnknown
	letters
	ledgerOnce
	stopsWhenAsked
	noCrash
	byItself
	wasFelt
	propertyCount
)

func propertyText(i int) string {
	return [propertyCount]string{
		allThere:       "every envelope that was submitted is there, once",
		allEnded:       "every envelope has ended",
		allSent:        "every envelope of class keyed is sent",
		nothingDoubled: "no effect happened twice",
		sentIsDone:     "what is sent, or there already, took effect",
		failedIsNot:    "what failed took no effect",
		oneKey:         "every call of an envelope carried the same key",
		unknownByFault: "what is unknown was hit by the fault",
		fewUnknown:     "no more is unknown than the fault can have hit",
		letters:        "what failed or is unknown is a dead letter, and nothing else is",
		ledgerOnce:     "the ledger has every attempt and every end once",
		stopsWhenAsked: "workers stop when they are asked to",
		noCrash:        "no worker ends by itself while the database is there",
		byItself:       "everything recovers without hands",
		wasFelt:        "the fault was felt",
	}[i]
}

// properties collects what breaks each property.
type properties [propertyCount][]string

func (p *properties) breaks(i int, what string) { p[i] = append(p[i], what) }

// list returns the properties with their texts.
func (p *properties) list() []property {
	all := make([]property, 0, propertyCount)
	for i, broken := range p {
		slices.Sort(broken)
		all = append(all, property{propertyText(i), broken})
	}
	return all
}
