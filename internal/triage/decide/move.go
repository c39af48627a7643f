package decide

import (
	"slices"
	"time"

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
	// Muted reports whether its owner muted the sender. OneClick reports whether
	// the subscription can be ended by RFC 8058, with a signature that covers it.
	Muted, OneClick bool
	// Level is the level allowed by the header alone.
	Level Level
}

// Allow returns whether the header of a message, its history and authentication
// permit a move. It receives no text.
func Allow(h HeaderFacts) Move {
	return Move(clears(h) && h.Level >= rowOf(Archive).alone)
}

// clears reports whether a header permits a move at a sufficient level.
func clears(h HeaderFacts) bool {
	return (h.Alike || h.Machine) && h.Known && h.Proven && !h.Against && !h.Addressed
}

// ReturnOf returns the time at which a message about an event would return if it
// were snoozed now: the morning of the day before. It is zero if that is less than
// a day or more than 300 days away.
func ReturnOf(event, now time.Time) time.Time {
	const day = 24 * time.Hour
	if event.IsZero() {
		return time.Time{}
	}
	at := event.UTC().Truncate(day).Add(6*time.Hour - day)
	if wait := at.Sub(now); wait < day || wait > 300*day {
		return time.Time{}
	}
	return at
}

// away returns the action that takes the message out of the inbox. What replaces
// the archive needs a header that permits a move and the owner's setting: no text
// leads to it.
func (s *state) away() Action {
	switch f := s.facts; {
	case !s.clear:
	case f.Settings.Snooze && !f.Return.IsZero():
		return Snooze
	case f.Settings.Trash && s.header.Alike && s.header.Muted && s.decision.Allowed >= rowOf(Trash).propose:
		return Trash
	}
	return Archive
}

// unsubscribes reports whether the owner may want to end the subscription. No text
// leads to it; flags prevent it.
func (s *state) unsubscribes() bool {
	return clears(s.header) && s.header.Alike && s.header.Muted && s.header.OneClick && !s.facts.Signals.Suspicious
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
	return []string{signal.ListID, signal.Social, signal.AutoSubmitted, signal.NoReplySender, signal.ReplyToMine, signal.OneClick}
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
		Muted:   isMuted(f), OneClick: has(f, signal.OneClick) && f.Authentication.UnsubscribeSigned,
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
	veto := Veto(textOf(s.facts, h, s.decision.Bucket))
	s.header, s.clear = h, clears(h) && !veto
	if !Allow(h) {
		return
	}
	if veto {
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
