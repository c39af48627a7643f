package decide

import (
	"slices"

	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// Move reports whether a message may be moved without a person.
type Move bool

// HeaderFacts holds the facts from the header of a message, its history and
// authentication. No field can hold text, which a test checks.
type HeaderFacts struct {
	// Alike reports bulk mail, and Machine automated mail, by the header.
	Alike, Machine bool
	// Known reports whether the sender or the list is known, and Proven whether
	// authentication proves the sender.
	Known, Proven bool
	// Against reports whether people refused or corrected more proposals about
	// the sender or the list than they approved.
	Against bool
	// Addressed reports whether the message is addressed to its owner in
	// particular.
	Addressed bool
	// Level is the level allowed by the header alone.
	Level Level
}

// Allow returns whether the header of a message, its history and authentication
// permit a move. It receives no text.
func Allow(h HeaderFacts) Move {
	return Move((h.Alike || h.Machine) && h.Known && h.Proven && !h.Against && !h.Addressed && h.Level >= rowOf(Archive).alone)
}

// Text holds the facts about a message's text that veto a move.
type Text struct {
	Keeps signal.Keeps
	// Flagged reports whether it is suspicious, phishing or contains
	// instructions.
	Flagged bool
	// Shown reports whether a language model considers it worth showing.
	Shown bool
}

// Veto reports whether the text of a message prevents its move. It can do
// nothing else.
func Veto(t Text) bool { return t.Keeps != signal.KeepsNothing || t.Flagged || t.Shown }

// headerSymbols are the symbols of rules that read no text.
func headerSymbols() []string {
	return []string{signal.ListID, signal.Social, signal.AutoSubmitted, signal.NoReplySender, signal.ReplyToMine}
}

// byHeader returns the facts without any that depend on text.
func byHeader(f Facts) Facts {
	var header []signal.Symbol
	for _, s := range f.Signals.Symbols {
		if slices.Contains(headerSymbols(), s.Name) {
			header = append(header, signal.Symbol{Name: s.Name})
		}
	}
	return Facts{
		Headers: f.Headers, Folder: f.Folder, Flags: f.Flags, Authentication: f.Authentication, Signals: signal.Result{Symbols: header},
		Sender: f.Sender, List: f.List, Earlier: f.Earlier, Built: f.Built, Settings: f.Settings, Travelling: f.Travelling,
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

// textOf returns the facts about a message's text. A change only counts in mail
// for the owner alone.
func textOf(f Facts, h HeaderFacts, bucket Bucket) Text {
	t := Text{Keeps: f.Signals.Keeps, Flagged: f.Signals.Suspicious || f.Signals.Phishing || f.Signals.Injection, Shown: f.Answered && bucket != Archived}
	if t.Keeps == signal.KeepsChange && h.Alike {
		t.Keeps = signal.KeepsNothing
	}
	return t
}

// chooseMove decides whether the message is moved without a person. If the
// header permits the move, the text can only veto it: the models'
// classification could be changed by more text.
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
		s.put(Archived, "move", "its header permits the move, and nothing in its text vetoes it")
	}
}
