package decide_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

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
func moved(d decide.Decision) bool { return putsAway(d) == 2 }

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

// mutedNews returns bulk mail of a muted sender, with an event and a signed way to
// unsubscribe, in an account that snoozes and trashes.
func mutedNews() decide.Facts {
	f := newsletter()
	f.Signals.Symbols = []signal.Symbol{{Name: signal.OneClick, Axis: signal.Bulk, Weight: 1}}
	f.Authentication.UnsubscribeSigned = true
	f.Settings.Muted = []string{"shop.example"}
	f.Settings.Snooze, f.Settings.Trash = true, true
	f.Return = time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC)
	return f
}

// TestToolsThatNeedASetting removes the reasons for a snooze, the trash and the end
// of a subscription in turn.
func TestToolsThatNeedASetting(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(*decide.Facts)
		away    decide.Action
		confirm bool
		ends    bool
	}{
		"an event":     {func(*decide.Facts) {}, decide.Snooze, false, true},
		"no event":     {func(f *decide.Facts) { f.Return = time.Time{} }, decide.Trash, false, true},
		"no setting":   {func(f *decide.Facts) { f.Settings.Snooze, f.Settings.Trash = false, false }, decide.Archive, false, true},
		"not muted":    {func(f *decide.Facts) { f.Settings.Muted, f.Return = nil, time.Time{} }, decide.Archive, false, false},
		"not signed":   {func(f *decide.Facts) { f.Authentication.UnsubscribeSigned = false }, decide.Snooze, false, false},
		"not RFC 8058": {func(f *decide.Facts) { f.Signals.Symbols = nil }, decide.Snooze, false, false},
		"observed":     {func(f *decide.Facts) { f.Settings.ObserveOnly = true }, decide.Snooze, true, true},
		"no event, at L4": {func(f *decide.Facts) {
			f.Return = time.Time{}
			f.Settings.Levels = map[decide.Cohort]decide.Level{decide.Newsletters: decide.L4}
		}, decide.Archive, false, true},
		"of an unproven sender":    {func(f *decide.Facts) { f.Authentication = signal.Authentication{UnsubscribeSigned: true} }, decide.Archive, true, false},
		"its text vetoes the move": {func(f *decide.Facts) { f.Signals.Keeps = signal.KeepsWords }, decide.Archive, true, true},
		"suspicious":               {func(f *decide.Facts) { f.Signals.Suspicious = true }, "", false, false},
		"the owner reversed it":    {func(f *decide.Facts) { f.Earlier.Undone = []decide.Action{decide.Snooze} }, "", false, true},
		"starred":                  {func(f *decide.Facts) { f.Flags = []string{"\\Flagged"} }, "", false, true},
		"of a person": {func(f *decide.Facts) {
			f.Headers.ListUnsubscribe, f.Headers.From, f.Settings.Muted = false, []string{"bo@example.org"}, []string{"bo@example.org"}
		}, "", false, false},
		"urgent, of a person": {func(f *decide.Facts) {
			f.Headers.ListUnsubscribe, f.Prediction.Priority, f.Prediction.Attention = false, classify.Urgent, 0.99
		}, "", false, false},
		"of a list that answers its owner": {func(f *decide.Facts) {
			f.Signals.Symbols = append(f.Signals.Symbols, signal.Symbol{Name: signal.ReplyToMine, Axis: signal.Need, Weight: 3})
		}, "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := mutedNews()
			test.change(&f)

			d := decide.Decide(f)

			for _, action := range []decide.Action{decide.Archive, decide.Snooze, decide.Trash} {
				if got := wanted(d, action); got != (action == test.away) {
					t.Errorf("%s is wanted: %v, want %q", action, got, test.away)
				}
			}
			if got := effort(d, test.away) == 1; test.away != "" && got != test.confirm {
				t.Errorf("a person approves %s: %v", test.away, got)
			}
			if got := effort(d, decide.Unsubscribe); got != map[bool]int{true: 1}[test.ends] {
				t.Errorf("unsubscribing has the effort %d, and is wanted: %v", got, test.ends)
			}
		})
	}
}

// TestNoTextLeadsToATool draws every text of a message: only messages whose header
// permits it are snoozed, trashed, or proposed for the end of a subscription.
func TestNoTextLeadsToATool(t *testing.T) {
	t.Parallel()
	seen := map[decide.Action]int{}
	check := rapid.MakeCheck(func(t *rapid.T) {
		facts := drawFacts(t)
		if yes(t, "of the list") {
			text := facts
			facts = mutedNews()
			facts.Prediction, facts.Signals, facts.Answered, facts.Amends = text.Prediction, text.Signals, text.Answered, text.Amends
			facts.Return = text.Return
			if yes(t, "one click") {
				facts.Signals.Symbols = append(slices.Clone(facts.Signals.Symbols), signal.Symbol{Name: signal.OneClick, Axis: signal.Bulk, Weight: 1})
			}
		}
		// The same header with no text, and with the event.
		silent := facts
		silent.Prediction = classify.Prediction{Act: classify.FYI, ActConfidence: 1, Category: classify.Primary, CategoryConfidence: 1, Priority: classify.ForInfo}
		silent.Signals, silent.Answered, silent.Amends = signal.Result{}, false, ""
		for _, s := range facts.Signals.Symbols {
			if slices.Contains([]string{signal.ListID, signal.Social, signal.AutoSubmitted, signal.NoReplySender, signal.ReplyToMine, signal.OneClick}, s.Name) {
				silent.Signals.Symbols = append(silent.Signals.Symbols, s)
			}
		}

		with, without := decide.Decide(facts), decide.Decide(silent)

		for _, action := range []decide.Action{decide.Snooze, decide.Trash, decide.Unsubscribe} {
			seen[action] += effort(with, action)
			if effort(with, action) > effort(without, action) {
				t.Errorf("with its text, %s went from %d to %d:\n%v\n%v", action, effort(without, action), effort(with, action), without.Trace, with.Trace)
			}
		}
	})
	for range 20 {
		check(t)
	}
	for _, action := range []decide.Action{decide.Snooze, decide.Trash, decide.Unsubscribe} {
		if seen[action] == 0 {
			t.Errorf("%s was never wanted: the test proves nothing about it", action)
		}
	}
}

func TestReturnIsTheMorningBefore(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for event, want := range map[string]string{
		"2026-11-27": "", "2026-11-28": "2026-11-27T06:00:00Z", "2027-09-20": "2027-09-19T06:00:00Z", "2027-11-20": "", "2020-01-01": "",
	} {
		day, err := time.Parse(time.DateOnly, event)
		if err != nil {
			t.Fatal(err)
		}
		got := decide.ReturnOf(day, now)
		if text := got.Format(time.RFC3339); got.IsZero() != (want == "") || want != "" && text != want {
			t.Errorf("ReturnOf(%s) = %s, want %s", event, text, want)
		}
	}
	if !decide.ReturnOf(time.Time{}, now).IsZero() {
		t.Error("a message without an event returns")
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
