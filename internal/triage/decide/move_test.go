package decide_test

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// TestHeaderFactsHoldNoText checks that the input of Allow consists of booleans
// and numbers.
func TestHeaderFactsHoldNoText(t *testing.T) {
	t.Parallel()
	of := reflect.TypeFor[decide.HeaderFacts]()

	for i := range of.NumField() {
		switch f := of.Field(i); f.Type.Kind() {
		case reflect.Bool, reflect.Int:
		default:
			t.Errorf("%s is of type %s, which can hold text", f.Name, f.Type)
		}
	}
	if got := reflect.TypeOf(decide.Veto).Out(0); got.Kind() != reflect.Bool {
		t.Errorf("a veto is of type %s, want bool", got)
	}
}

// moved reports whether a message is moved without a person.
func moved(d decide.Decision) bool { return effort(d, decide.Archive) == 2 }

// TestNoTextMovesAMessage gives a message whose text vetoes the move everything
// else that a text can have: symbols, classifications, answers of language
// models. For a message without a veto, it changes all of these.
func TestNoTextMovesAMessage(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		facts := drawFacts(t)
		other := drawFacts(t)
		kept := facts
		kept.Prediction, kept.Answered, kept.Signals.Named = other.Prediction, other.Answered, other.Signals.Named
		kept.Signals.Keeps = rapid.SampledFrom([]signal.Keeps{signal.KeepsWords, signal.KeepsQuestion, signal.KeepsLanguage, signal.KeepsLength}).Draw(t, "reason")

		if d := decide.Decide(kept); moved(d) {
			t.Errorf("a text that keeps a message had it moved: %v", d.Trace)
		}
		facts.Signals.Keeps, facts.Answered, facts.Signals.Unfamiliar = signal.KeepsNothing, false, false
		without := decide.Decide(facts)
		facts.Prediction, facts.Signals.Named = other.Prediction, other.Signals.Named
		if with := decide.Decide(facts); moved(with) != moved(without) {
			t.Errorf("what the models make of a text changed whether it is moved:\n%v\n%v", without.Trace, with.Trace)
		}
	})
}

// TestMoveNeedsEveryFactOfTheHeader removes each fact in turn.
func TestMoveNeedsEveryFactOfTheHeader(t *testing.T) {
	t.Parallel()
	all := decide.HeaderFacts{Alike: true, Known: true, Proven: true, Level: decide.L4}
	if !decide.Allow(all) {
		t.Fatal("a proven and known newsletter at L4 is not moved")
	}
	machine := all
	machine.Alike, machine.Machine = false, true
	if !decide.Allow(machine) {
		t.Error("what a proven and known machine sent is not moved")
	}
	for name, change := range map[string]func(*decide.HeaderFacts){
		"of a person": func(h *decide.HeaderFacts) { h.Alike = false },
		"unknown":     func(h *decide.HeaderFacts) { h.Known = false },
		"not proven":  func(h *decide.HeaderFacts) { h.Proven = false },
		"refused":     func(h *decide.HeaderFacts) { h.Against = true },
		"addressed":   func(h *decide.HeaderFacts) { h.Addressed = true },
		"at L3":       func(h *decide.HeaderFacts) { h.Level = decide.L3 },
	} {
		h := all
		change(&h)
		if decide.Allow(h) {
			t.Errorf("%s: it is moved", name)
		}
	}
}

// TestMailToTheOwnerIsNotMoved checks that an answer to the owner and mail of a
// group stay, for any classification.
func TestMailToTheOwnerIsNotMoved(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*decide.Facts){
		"an answer": func(f *decide.Facts) {
			f.Signals.Symbols = []signal.Symbol{{Name: signal.ReplyToMine, Axis: signal.Need, Weight: 3}}
		},
		"a group and the owner": func(f *decide.Facts) { f.Headers.Group = true },
	} {
		f := newsletter()
		f.Prediction.Priority = classify.ForInfo
		change(&f)
		if d := decide.Decide(f); moved(d) {
			t.Errorf("%s is moved: %v", name, d.Trace)
		}
	}
}

func TestMailToAGroupIsRecognised(t *testing.T) {
	t.Parallel()
	for fields, want := range map[string]bool{
		"To: ana@example.org\r\nList-Id: <news.shop.example>\r\nList-Unsubscribe: <https://shop.example/u>": false,
		"To: ana@example.org\r\nList-Id: <news.example.org>\r\nList-Post: NO":                               false,
		"To: team@example.org\r\nList-Id: Team <team.example.org>":                                          true,
		"To: ana@example.org\r\nCc: talk@lists.example\r\nList-Id: <talk.lists.example>":                    true,
		"To: ana@example.org\r\nList-Id: <talk.lists.example>\r\nList-Post: <mailto:talk@lists.example>":    true,
		"To: ana@example.org\r\nList-Post: NO":                                                              false,
		"To: team@example.org":                                                                              false,
	} {
		m := message.Parse([]byte("From: bo@example.org\r\n" + fields + "\r\n\r\nText"))
		if got := decide.HeadersOf(m).Group; got != want {
			t.Errorf("%q went to a group: %v, want %v", fields, got, want)
		}
	}
}
