package decide

import (
	"slices"

	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// Move is whether a message may be moved without a person.
type Move bool

// HeaderFacts is what the header of a message, history and authentication tell.
// None of its fields can hold text, which a test walks.
type HeaderFacts struct {
	// Alike is one of many alike, and Machine one that no person wrote, by the header.
	Alike, Machine bool
	// Known is a sender or a list that was seen before, and Proven a sender whom
	// authentication proves.
	Known, Proven bool
	// Against says that people refused or corrected more about the sender or the list
	// than they approved.
	Against bool
	// Addressed says that the message is for its owner rather than for all.
	Addressed bool
	// Level is what is allowed by the header alone.
	Level Level
}

// Allow returns whether the header of a message, history and authentication would
// have it moved. It receives no text.
func Allow(h HeaderFacts) Move {
	return Move((h.Alike || h.Machine) && h.Known && h.Proven && !h.Against && !h.Addressed && h.Level >= rowOf(Archive).alone)
}

// Text is what the text of a message has that keeps it.
type Text struct {
	Keeps signal.Keeps
	// Flagged says that it is suspicious, a lure or has instructions.
	Flagged bool
	// Shown says that a language model takes it to be worth showing.
	Shown bool
}

// Veto reports whether the text of a message keeps it where it is. It can do
// nothing else.
func Veto(t Text) bool { return t.Keeps != signal.KeepsNothing || t.Flagged || t.Shown }

// headerSymbols are the symbols of rules that read no text.
func headerSymbols() []string {
	return []string{signal.ListID, signal.Social, signal.AutoSubmitted, signal.NoReplySender, signal.ReplyToMine}
}

// byHeader returns the facts without anything that depends on a text.
func byHeader(f Facts) Facts {
	var header []signal.Symbol
	for _, s := range f.Signals.Symbols {
		if slices.Contains(headerSymbols(), s.Name) {
			header = append(header, signal.Symbol{Name: s.Name})
		}
	}
	return Facts{
		Headers: f.Headers, Folder: f.Folder, Flags: f.Flags, Authentication: f.Authentication, Signals: signal.Result{Symbols: header},
		Sender: f.Sender, List: f.List, Earlier: f.Earlier, Built: f.Built, Settings: f.Settings,
	}
}

func headerFacts(f Facts) HeaderFacts {
	f = byHeader(f)
	sender, list := counted(f)
	d := Decision{Cohort: cohortOf(f).cohort, Confidence: 1}
	d.Allowed = levelOf(f, d.Cohort)
	for _, row := range lowerings() {
		d.Allowed = row.to(f, d)
	}
	return HeaderFacts{
		Alike: groupOf(d.Cohort) == groupBulk, Machine: groupOf(d.Cohort) == groupTransactional,
		Known: sender.Known() || list.Known(), Proven: aligned(f), Addressed: addressed(f),
		Against: f.Sender.Corrected > f.Sender.Accepted || f.List.Corrected > f.List.Accepted,
		Level:   d.Allowed,
	}
}

// textOf returns what the text of a message has. Changes are of interest where
// they are the owner's alone.
func textOf(f Facts, h HeaderFacts, bucket Bucket) Text {
	t := Text{Keeps: f.Signals.Keeps, Flagged: f.Signals.Suspicious || f.Signals.Phishing || f.Signals.Injection, Shown: f.Answered && bucket != Archived}
	if t.Keeps == signal.KeepsChange && h.Alike {
		t.Keeps = signal.KeepsNothing
	}
	return t
}

// chooseMove finds out whether the message is moved without a person. Where the
// header would have it moved, the text has a veto, and no other say: what the
// models make of it could be changed by more text.
func (s *state) chooseMove() {
	h := headerFacts(s.facts)
	if !Allow(h) {
		return
	}
	if t := textOf(s.facts, h, s.decision.Bucket); Veto(t) {
		s.kept = "its text may ask for its owner: a person approves that it is moved"
		return
	}
	if slices.ContainsFunc(vetoes(), func(row vetoRow) bool { return row.holds(s.facts) }) {
		return
	}
	s.moves = true
	if s.decision.Bucket != Archived {
		s.put(Archived, "move", "its header alone would have it moved, and nothing in its text keeps it")
	}
}
