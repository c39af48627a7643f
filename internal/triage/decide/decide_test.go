package decide_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

func wanted(d decide.Decision, a decide.Action) bool {
	return slices.ContainsFunc(d.Wants, func(w decide.Want) bool { return w.Action == a })
}

// effort ranks the treatment of an action: not wanted, proposed to a person,
// left to policy.
func effort(d decide.Decision, a decide.Action) int {
	at := slices.IndexFunc(d.Wants, func(w decide.Want) bool { return w.Action == a })
	switch {
	case at < 0:
		return 0
	case d.Wants[at].Confirm:
		return 1
	}
	return 2
}

// putsAway returns the effort of the action that takes a message out of the inbox.
func putsAway(d decide.Decision) int {
	return max(effort(d, decide.Archive), effort(d, decide.Snooze), effort(d, decide.Trash))
}

func allActions() []decide.Action {
	return []decide.Action{
		decide.Label, decide.Flag, decide.Archive, decide.Draft, decide.Snooze, decide.Trash, decide.Quarantine,
		decide.Send, decide.Unsubscribe, decide.RSVP, decide.Away,
	}
}

// TestRestrictionsOnlyLower adds risks and vetoes to random facts. Only
// quarantine may be added, and only with an approval.
func TestRestrictionsOnlyLower(t *testing.T) {
	t.Parallel()

	var against []signal.Rule
	for _, rule := range signal.Rules() {
		if rule.Weight > 0 && (rule.Axis == signal.Risk || rule.Axis == signal.Inject) {
			against = append(against, rule)
		}
	}
	restrict := map[string]func(*rapid.T, *decide.Facts){
		"symbols of risk and injection": func(t *rapid.T, f *decide.Facts) {
			f.Signals = withSymbols(f.Signals, rapid.SliceOfN(rapid.SampledFrom(against), 1, 6).Draw(t, "against")...)
		},
		"suspicious":    func(_ *rapid.T, f *decide.Facts) { f.Signals.Suspicious = true },
		"phishing":      func(_ *rapid.T, f *decide.Facts) { f.Signals.Phishing = true },
		"injection":     func(_ *rapid.T, f *decide.Facts) { f.Signals.Injection = true },
		"important":     func(_ *rapid.T, f *decide.Facts) { f.Flags = append(slices.Clone(f.Flags), "$Important") },
		"star":          func(_ *rapid.T, f *decide.Facts) { f.Flags = append(slices.Clone(f.Flags), "\\Flagged") },
		"task label":    func(_ *rapid.T, f *decide.Facts) { f.Flags = append(slices.Clone(f.Flags), "ACTION") },
		"owner replied": func(_ *rapid.T, f *decide.Facts) { f.OwnerReplied = true },
		"follow-up":     func(_ *rapid.T, f *decide.Facts) { f.FollowUp = true },
		"touched":       func(_ *rapid.T, f *decide.Facts) { f.Earlier.Touched = true },
		"undone":        func(_ *rapid.T, f *decide.Facts) { f.Earlier.Undone = allActions() },
		"no original":   func(_ *rapid.T, f *decide.Facts) { f.Built = true },
		"observed":      func(_ *rapid.T, f *decide.Facts) { f.Settings.ObserveOnly = true },
		"other folder":  func(_ *rapid.T, f *decide.Facts) { f.Folder = mailbox.UseOther },
		"not aligned":   func(_ *rapid.T, f *decide.Facts) { f.Authentication.Aligned = false },
		"DMARC failed":  func(_ *rapid.T, f *decide.Facts) { f.Authentication.DMARC = signal.AuthFail },
	}
	for name, more := range restrict {
		check := rapid.MakeCheck(func(t *rapid.T) {
			facts := drawFacts(t)
			before := decide.Decide(facts)

			more(t, &facts)
			after := decide.Decide(facts)

			moved := before.Cohort != after.Cohort || before.Bucket != after.Bucket || before.Confidence != after.Confidence
			if moved && (name == "not aligned" || name == "DMARC failed") {
				// Another cohort, or the loss of a place on a list of the
				// owner, may lead to another bucket, or to the same one with
				// more confidence of the models. Then the level is at most that
				// of the cohort before.
				if after.Allowed > before.Asked && after.Allowed > decide.L0 {
					t.Errorf("level %v of %s became %v of %s", before.Asked, before.Cohort, after.Allowed, after.Cohort)
				}
				return
			}
			if after.Allowed > before.Allowed {
				t.Errorf("level %v became %v", before.Allowed, after.Allowed)
			}
			// A move may become a lesser one: to the trash, to the archive.
			if putsAway(after) > putsAway(before) {
				t.Errorf("a move went from %d to %d", putsAway(before), putsAway(after))
			}
			for _, action := range allActions() {
				if action == decide.Archive && max(effort(before, decide.Snooze), effort(before, decide.Trash)) > 0 {
					continue
				}
				quarantined := action == decide.Quarantine && effort(after, action) == 1
				if effort(after, action) > effort(before, action) && !quarantined {
					t.Errorf("%s went from %d to %d", action, effort(before, action), effort(after, action))
				}
			}
		})
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 10 {
				check(t)
			}
		})
	}
}

// TestAVetoAddsNoFlag has urgent words in a newsletter that its header archives, with
// and without an answer of its owner in the thread.
func TestAVetoAddsNoFlag(t *testing.T) {
	t.Parallel()
	facts := newsletter()
	facts.Sender = approvedSender()
	facts.Signals.Named = true
	facts.Prediction.Act, facts.Prediction.Priority, facts.Prediction.Attention = classify.Request, classify.Urgent, 1

	archived := decide.Decide(facts)
	facts.OwnerReplied = true
	kept := decide.Decide(facts)

	if archived.Bucket != decide.Archived || kept.Bucket != decide.Urgent || effort(kept, decide.Flag) != 0 {
		t.Errorf("without an answer it is %s, with one %s, and wants %v; want archived, urgent, and no flag", archived.Bucket, kept.Bucket, kept.Wants)
	}
}

func TestDecidesEveryCase(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		facts := drawFacts(t)

		d := decide.Decide(facts)

		if !slices.Contains(allActs(), d.Act) || !slices.Contains(allCategories(), d.Category) ||
			!slices.Contains(allPriorities(), d.Priority) || !slices.Contains(allCohorts(), d.Cohort) {
			t.Errorf("act %q, category %q, priority %q, cohort %q: each has to be one of its list", d.Act, d.Category, d.Priority, d.Cohort)
		}
		if d.Allowed < decide.L0 || d.Allowed > decide.L5 || !(d.Confidence >= 0 && d.Confidence <= 1) {
			t.Errorf("level %v with confidence %v", d.Allowed, d.Confidence)
		}
		for _, want := range d.Wants {
			if d.Allowed < decide.L2 && want.Action != decide.Quarantine {
				t.Errorf("%s is wanted at %v", want.Action, d.Allowed)
			}
			if d.Allowed < decide.L4 && !want.Confirm {
				t.Errorf("%s is left to policy at %v", want.Action, d.Allowed)
			}
			if decide.AlwaysConfirmed(want.Action) && !want.Confirm {
				t.Errorf("%s is not confirmed", want.Action)
			}
		}
		if facts.Signals.Injection && len(d.Wants) > 0 {
			t.Errorf("a message with instructions has %v", d.Wants)
		}
		if facts.Signals.Phishing && (d.Bucket == decide.Urgent || d.Bucket == decide.Actionable || d.Bucket == decide.Archived) {
			t.Errorf("phishing is in %s", d.Bucket)
		}
		if len(d.Wants) == 0 && d.Trace[len(d.Trace)-1].Rule != "result" {
			t.Errorf("nothing is proposed, and the trace ends in %v", d.Trace[len(d.Trace)-1])
		}
		if away := putsAway(d) > 0; away && (d.Bucket != decide.Archived || len(d.Vetoes) > 0) {
			t.Errorf("bucket %s with vetoes %v is to be archived", d.Bucket, d.Vetoes)
		}
	})
}

// TestEveryRowAndLevel walks act × cohort × level and checks which actions
// require a person.
func TestEveryRowAndLevel(t *testing.T) {
	t.Parallel()

	for _, act := range allActs() {
		for cohort, facts := range oneOfEach() {
			for level := decide.L0; level <= decide.L6; level++ {
				facts.Settings.Levels = map[decide.Cohort]decide.Level{cohort: level}
				facts.Prediction.Act = act

				d := decide.Decide(facts)

				if d.Cohort != cohort || d.Asked != level || d.Allowed != min(level, decide.L5) {
					t.Fatalf("%s in %s at %v: cohort %s, asked %v, allowed %v", act, cohort, level, d.Cohort, d.Asked, d.Allowed)
				}
				machine := cohort == decide.Newsletters || cohort == decide.Social || cohort == decide.Transactional
				if got, want := wanted(d, decide.Label), machine && level >= decide.L2; got != want {
					t.Errorf("%s in %s at %v: label is %v, want %v", act, cohort, level, got, want)
				}
				if got, want := wanted(d, decide.Archive), level >= decide.L2 && d.Bucket == decide.Archived; got != want {
					t.Errorf("%s in %s at %v: archive is %v, want %v", act, cohort, level, got, want)
				}
				for _, want := range d.Wants {
					alone := level >= decide.L4 && !(act == classify.Request && (cohort == decide.CrossOrg || cohort == decide.FirstContact))
					if want.Confirm == alone {
						t.Errorf("%s in %s at %v: %s asks a person is %v", act, cohort, level, want.Action, want.Confirm)
					}
				}
			}
		}
	}
}

// oneOfEach returns facts by their cohort, with a trustworthy sender.
func oneOfEach() map[decide.Cohort]decide.Facts {
	news, colleague := newsletter(), colleague()
	colleague.Prediction.Priority, colleague.Prediction.Attention = classify.ForInfo, 0.1
	with := func(f decide.Facts, change func(*decide.Facts)) decide.Facts {
		f.Prediction.Priority = classify.ForInfo
		change(&f)
		return f
	}
	return map[decide.Cohort]decide.Facts{
		decide.Newsletters:  news,
		decide.VIP:          with(colleague, func(f *decide.Facts) { f.Sender.VIP = true }),
		decide.FirstContact: with(colleague, func(f *decide.Facts) { f.Sender = signal.Sender{} }),
		decide.Social: with(news, func(f *decide.Facts) {
			f.Headers.ListUnsubscribe = false
			f.Settings.Social = []string{"shop.example"}
		}),
		decide.Transactional: with(news, func(f *decide.Facts) {
			f.Headers.ListUnsubscribe = false
			f.Headers.From = []string{"orders@shop.example"}
		}),
		decide.IntraOrg: colleague,
		decide.CrossOrg: with(colleague, func(f *decide.Facts) { f.Headers.Cc = []string{"eve@foreign.example"} }),
		decide.Default:  with(colleague, func(f *decide.Facts) { f.Settings.Domains, f.Headers.From = nil, []string{"bo@friend.example"} }),
	}
}

// TestHeadersAloneGiveNoLevel lets a sender write every header, while the owner
// allows everything.
func TestHeadersAloneGiveNoLevel(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		facts := drawFacts(t)
		facts.Settings.Levels = map[decide.Cohort]decide.Level{}
		for _, cohort := range allCohorts() {
			facts.Settings.Levels[cohort] = decide.L5
		}
		facts.Authentication = signal.Authentication{SPF: signal.AuthUnknown, DKIM: signal.AuthUnknown, DMARC: signal.AuthUnknown}
		known := yes(t, "a known sender, and a failure")
		if known {
			facts.Sender, facts.Authentication.DMARC = signal.Sender{Received: 9}, signal.AuthFail
		} else {
			facts.Sender, facts.List = signal.Sender{}, signal.Sender{}
		}

		d := decide.Decide(facts)

		if d.Allowed > decide.L2 {
			t.Errorf("cohort %s is allowed %v", d.Cohort, d.Allowed)
		}
	})
}

func TestVIPMakesNothingUrgent(t *testing.T) {
	t.Parallel()

	rapid.Check(t, func(t *rapid.T) {
		facts := drawFacts(t)
		facts.Sender.VIP, facts.Sender.Replied, facts.Settings.VIP = false, 0, nil
		before := decide.Decide(facts)

		facts.Sender.VIP = true
		after := decide.Decide(facts)

		if after.Bucket == decide.Urgent && before.Bucket != decide.Urgent {
			t.Errorf("the VIP made urgent what was %s", before.Bucket)
		}
	})
}

func TestDecide(t *testing.T) {
	t.Parallel()

	type result struct {
		Cohort  decide.Cohort
		Bucket  decide.Bucket
		Allowed decide.Level
		Wants   []decide.Want
	}
	alone := func(actions ...decide.Action) []decide.Want {
		var wants []decide.Want
		for _, a := range actions {
			wants = append(wants, decide.Want{Action: a})
		}
		return wants
	}
	asked := func(actions ...decide.Action) []decide.Want {
		wants := alone(actions...)
		for i := range wants {
			wants[i].Confirm = true
		}
		return wants
	}
	tests := map[string]struct {
		facts  decide.Facts
		change func(*decide.Facts)
		want   result
	}{
		"a newsletter is put away": {newsletter(), func(*decide.Facts) {},
			result{decide.Newsletters, decide.Archived, decide.L5, alone(decide.Label, decide.Archive)}},
		"a newsletter of an observed account waits for a person": {newsletter(), func(f *decide.Facts) { f.Settings.ObserveOnly = true },
			result{decide.Newsletters, decide.Archived, decide.L3, asked(decide.Label, decide.Archive)}},
		"a starred newsletter stays": {newsletter(), func(f *decide.Facts) { f.Flags = []string{"\\Flagged"} },
			result{decide.Newsletters, decide.Informational, decide.L5, alone(decide.Label)}},
		"a newsletter that was put back stays": {newsletter(), func(f *decide.Facts) { f.Earlier.Undone = []decide.Action{decide.Archive} },
			result{decide.Newsletters, decide.Informational, decide.L5, alone(decide.Label)}},
		"a newsletter with little confidence falls a level": {newsletter(), func(f *decide.Facts) { f.Prediction.Attention, f.Signals.Keeps = 0.4, signal.KeepsWords },
			result{decide.Newsletters, decide.Archived, decide.L4, []decide.Want{{Action: decide.Label}, {Action: decide.Archive, Confirm: true}}}},
		"a text that asks has a person approve a move": {newsletter(), func(f *decide.Facts) { f.Signals.Keeps = signal.KeepsWords },
			result{decide.Newsletters, decide.Archived, decide.L5, []decide.Want{{Action: decide.Label}, {Action: decide.Archive, Confirm: true}}}},
		"a classification does not keep a message": {newsletter(), func(f *decide.Facts) {
			f.Prediction.Act, f.Prediction.Priority, f.Prediction.NeedsAttention, f.Prediction.Attention = classify.Request, classify.Urgent, true, 0.9
		}, result{decide.Newsletters, decide.Archived, decide.L5, alone(decide.Label, decide.Archive)}},
		"an answer of a language model keeps a message": {newsletter(), func(f *decide.Facts) {
			f.Prediction.NeedsAttention, f.Answered = true, true
		}, result{decide.Newsletters, decide.Informational, decide.L5, alone(decide.Label)}},
		"a change keeps automated mail": {newsletter(), func(f *decide.Facts) {
			f.Headers.ListUnsubscribe, f.Headers.From, f.Signals.Keeps = false, []string{"orders@shop.example"}, signal.KeepsChange
		}, result{decide.Transactional, decide.Archived, decide.L4, []decide.Want{{Action: decide.Label}, {Action: decide.Archive, Confirm: true}}}},
		"a change keeps no newsletter": {newsletter(), func(f *decide.Facts) { f.Signals.Keeps = signal.KeepsChange },
			result{decide.Newsletters, decide.Archived, decide.L5, alone(decide.Label, decide.Archive)}},
		"a sender with more refusals than approvals needs a person": {newsletter(), func(f *decide.Facts) { f.Sender.Corrected = 1 },
			result{decide.Newsletters, decide.Archived, decide.L5, []decide.Want{{Action: decide.Label}, {Action: decide.Archive, Confirm: true}}}},
		"an approval speaks for a sender again": {newsletter(), func(f *decide.Facts) { f.Sender.Corrected, f.Sender.Accepted = 1, 1 },
			result{decide.Newsletters, decide.Archived, decide.L5, alone(decide.Label, decide.Archive)}},
		"a language that the models did not learn is a question": {newsletter(), func(f *decide.Facts) {
			f.Signals.Unfamiliar, f.Signals.Keeps = true, signal.KeepsLanguage
		}, result{decide.Newsletters, decide.Informational, decide.L4, asked(decide.Label)}},
		"a request to a group that names its owner waits for them": {newsletter(), func(f *decide.Facts) {
			f.Headers.Group, f.Signals.Named, f.Signals.Keeps = true, true, signal.KeepsWords
			f.Prediction.Act, f.Prediction.Priority, f.Prediction.NeedsAttention, f.Prediction.Attention = classify.Request, classify.NeedsResponse, true, 0.9
		}, result{decide.Newsletters, decide.Actionable, decide.L5, asked(decide.Label)}},
		"a request by bulk mail that names its owner waits for them": {newsletter(), func(f *decide.Facts) {
			f.Signals.Named, f.Signals.Keeps = true, signal.KeepsWords
			f.Prediction.Act, f.Prediction.Priority, f.Prediction.NeedsAttention, f.Prediction.Attention = classify.Request, classify.NeedsResponse, true, 0.9
		}, result{decide.Newsletters, decide.Actionable, decide.L5, asked(decide.Label)}},
		"a request by bulk mail of a sender whom its owner answers waits": {newsletter(), func(f *decide.Facts) {
			f.Sender.Replied, f.Signals.Keeps = 2, signal.KeepsWords
			f.Prediction.Act, f.Prediction.Priority, f.Prediction.NeedsAttention, f.Prediction.Attention = classify.Request, classify.NeedsResponse, true, 0.9
		}, result{decide.Newsletters, decide.Actionable, decide.L5, asked(decide.Label)}},
		"a request by other bulk mail is shown": {newsletter(), func(f *decide.Facts) {
			f.Signals.Keeps = signal.KeepsWords
			f.Prediction.Act, f.Prediction.Priority, f.Prediction.NeedsAttention, f.Prediction.Attention = classify.Request, classify.NeedsResponse, true, 0.9
		}, result{decide.Newsletters, decide.Informational, decide.L4, asked(decide.Label)}},
		"a request to a group of colleagues with its owner in To waits": {colleague(), func(f *decide.Facts) {
			f.Headers.Group, f.Headers.ListUnsubscribe, f.Headers.To = true, true, []string{"team@example.org", "ana@example.org"}
		}, result{decide.Newsletters, decide.Actionable, decide.L5, alone(decide.Label, decide.Draft)}},
		"a request to a group is shown": {colleague(), func(f *decide.Facts) {
			f.Headers.Group, f.Headers.ListUnsubscribe, f.Headers.To, f.Signals.Keeps = true, true, []string{"team@example.org"}, signal.KeepsWords
		}, result{decide.Newsletters, decide.Informational, decide.L4, asked(decide.Label)}},
		"a guess is a question": {newsletter(), func(f *decide.Facts) { f.Prediction.Attention, f.Signals.Keeps = 0.6, signal.KeepsWords },
			result{decide.Newsletters, decide.Informational, decide.L4, asked(decide.Label)}},
		"a newsletter that may need its owner is not put away": {newsletter(), func(f *decide.Facts) { f.Prediction.NeedsAttention, f.Signals.Keeps = true, signal.KeepsWords },
			result{decide.Newsletters, decide.Informational, decide.L5, alone(decide.Label)}},
		"an offer of a shop that the owner knows is put away": {newsletter(), func(f *decide.Facts) {
			f.Prediction.Act, f.Prediction.Priority = classify.Propose, classify.Promotional
		}, result{decide.Newsletters, decide.Archived, decide.L5, alone(decide.Label, decide.Archive)}},
		"a notice of a social network is social": {newsletter(), func(f *decide.Facts) {
			f.Signals.Symbols = []signal.Symbol{{Name: signal.Social, Axis: signal.Kind}}
		}, result{decide.Social, decide.Archived, decide.L5, alone(decide.Label, decide.Archive)}},
		"a receipt with a code stays": {newsletter(), func(f *decide.Facts) {
			f.Headers.ListUnsubscribe, f.Headers.From = false, []string{"orders@shop.example"}
			f.Signals.Symbols = []signal.Symbol{{Name: signal.OneTimeCode, Axis: signal.Kind}}
		}, result{decide.Transactional, decide.Informational, decide.L4, alone(decide.Label)}},
		"words of a receipt raise no level": {newsletter(), func(f *decide.Facts) {
			f.Headers.ListUnsubscribe = false
			f.Signals.Symbols = []signal.Symbol{{Name: signal.Receipt, Axis: signal.Kind}}
		}, result{decide.Transactional, decide.Archived, decide.L1, nil}},
		"words of a receipt do not count between correspondents": {newsletter(), func(f *decide.Facts) {
			f.Headers.ListUnsubscribe, f.Sender.Sent = false, 1
			f.Signals.Symbols = []signal.Symbol{{Name: signal.Receipt, Axis: signal.Kind}}
		}, result{decide.CrossOrg, decide.Informational, decide.L1, nil}},
		"a machine's notice is put away": {newsletter(), func(f *decide.Facts) {
			f.Headers.ListUnsubscribe = false
			f.Signals.Symbols = []signal.Symbol{{Name: signal.NoReplySender, Axis: signal.Bulk}}
		}, result{decide.Transactional, decide.Archived, decide.L4, alone(decide.Label, decide.Archive)}},
		"an uncertain category becomes a question": {newsletter(), func(f *decide.Facts) { f.Prediction.CategoryConfidence = 0.4 },
			result{decide.Newsletters, decide.Archived, decide.L5, []decide.Want{{Action: decide.Label, Confirm: true}, {Action: decide.Archive}}}},
		"a newsletter that asks for something is shown": {newsletter(), func(f *decide.Facts) { f.Prediction.Act, f.Signals.Keeps = classify.Request, signal.KeepsWords },
			result{decide.Newsletters, decide.Informational, decide.L5, alone(decide.Label)}},
		"an urgent newsletter is only shown": {newsletter(), func(f *decide.Facts) { f.Prediction.Priority, f.Signals.Keeps = classify.Urgent, signal.KeepsWords },
			result{decide.Newsletters, decide.Informational, decide.L5, alone(decide.Label)}},
		"an urgent answer over a list is urgent": {newsletter(), func(f *decide.Facts) {
			f.Prediction.Priority, f.Prediction.Attention = classify.Urgent, 0.9
			f.Signals.Symbols = []signal.Symbol{{Name: signal.ReplyToMine, Axis: signal.Need, Weight: 3}}
		}, result{decide.Newsletters, decide.Urgent, decide.L5, alone(decide.Label, decide.Flag)}},
		"a newsletter of a stranger is a first contact": {newsletter(), func(f *decide.Facts) { f.Sender = signal.Sender{} },
			result{decide.FirstContact, decide.Informational, decide.L1, nil}},
		"a newsletter without authentication waits for a person": {newsletter(), func(f *decide.Facts) {
			f.Authentication, f.Sender = signal.Authentication{}, approvedSender()
		}, result{decide.Newsletters, decide.Archived, decide.L2, asked(decide.Label, decide.Archive)}},
		"a list without authentication waits for a person": {newsletter(), func(f *decide.Facts) {
			f.Authentication, f.List = signal.Authentication{}, approvedSender()
		}, result{decide.Newsletters, decide.Archived, decide.L2, asked(decide.Label, decide.Archive)}},
		"a listed name is no proof": {newsletter(), func(f *decide.Facts) {
			f.Authentication, f.Settings.Newsletters = signal.Authentication{DKIM: signal.AuthPass}, []string{"shop.example"}
		}, result{decide.FirstContact, decide.Informational, decide.L1, nil}},
		"a stranger with the id of a known list is a first contact": {newsletter(), func(f *decide.Facts) {
			f.Sender, f.List = signal.Sender{}, approvedSender()
		}, result{decide.FirstContact, decide.Informational, decide.L1, nil}},
		"a stranger by a known list is of that list": {newsletter(), func(f *decide.Facts) {
			f.Sender, f.List, f.Authentication.ListAligned = signal.Sender{}, approvedSender(), true
		}, result{decide.Newsletters, decide.Archived, decide.L5, alone(decide.Label, decide.Archive)}},
		"a colleague's request is a draft to approve": {colleague(), func(*decide.Facts) {},
			result{decide.IntraOrg, decide.Actionable, decide.L2, asked(decide.Draft)}},
		"a colleague without a pass is a first contact": {colleague(), func(f *decide.Facts) { f.Authentication.Aligned = false },
			result{decide.FirstContact, decide.Actionable, decide.L1, nil}},
		"a VIP with failed authentication is a first contact": {colleague(), func(f *decide.Facts) {
			f.Settings.VIP, f.Authentication = []string{"bo@example.org"}, signal.Authentication{SPF: signal.AuthFail}
		}, result{decide.FirstContact, decide.Actionable, decide.L1, nil}},
		"an act that asks for something calmly does not wait": {colleague(), func(f *decide.Facts) {
			f.Prediction.Priority, f.Prediction.Attention = classify.ForInfo, 0.1
		}, result{decide.IntraOrg, decide.Informational, decide.L2, nil}},
		"a private request waits": {colleague(), func(f *decide.Facts) { f.Prediction.Priority = classify.Personal },
			result{decide.IntraOrg, decide.Actionable, decide.L2, asked(decide.Draft)}},
		"a muted colleague does not wait": {colleague(), func(f *decide.Facts) { f.Sender.Muted = true },
			result{decide.IntraOrg, decide.Informational, decide.L1, nil}},
		"a lure waits for nobody": {colleague(), func(f *decide.Facts) { f.Signals.Phishing = true },
			result{decide.IntraOrg, decide.Informational, decide.L1, nil}},
		"a lure may be quarantined by a person": {newsletter(), func(f *decide.Facts) {
			f.Signals.Phishing, f.Settings.Quarantine = true, true
		}, result{decide.Newsletters, decide.Informational, decide.L1, asked(decide.Quarantine)}},
		"instructions switch everything off": {newsletter(), func(f *decide.Facts) {
			f.Signals.Injection, f.Signals.Phishing, f.Settings.Quarantine = true, true, true
		}, result{decide.Newsletters, decide.Informational, decide.L0, nil}},
		"an action tag is not seen": {newsletter(), func(f *decide.Facts) { f.Flags = []string{"Countersign_do_action"} },
			result{decide.Newsletters, decide.Archived, decide.L5, alone(decide.Label, decide.Archive)}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.change(&tt.facts)

			d := decide.Decide(tt.facts)

			got := result{d.Cohort, d.Bucket, d.Allowed, d.Wants}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("Decide() (-want +got):\n%s\ntrace: %v", diff, d.Trace)
			}
		})
	}
}

// TestCutsChooseTheBucket checks that a message over the cut of urgency is
// urgent, and one with a high need for attention waits, whatever its likeliest
// priority.
func TestCutsChooseTheBucket(t *testing.T) {
	t.Parallel()
	f := decide.Facts{
		Headers: decide.Headers{From: []string{"ana@partner.example"}, To: []string{"owner@example.org"}}, Folder: mailbox.UseInbox,
		Prediction: classify.Prediction{
			Act: classify.FYI, ActConfidence: .9, Category: classify.Primary, CategoryConfidence: .9, Priority: classify.ForInfo,
			Attention: .2, NeedsAttention: true,
		},
		Settings: decide.Settings{Addresses: []string{"owner@example.org"}},
	}
	for _, test := range []struct {
		urgent    bool
		attention float64
		want      decide.Bucket
	}{{false, .2, decide.Informational}, {false, .4, decide.Actionable}, {true, .2, decide.Urgent}} {
		f.Prediction.Urgent, f.Prediction.Attention = test.urgent, test.attention
		if got := decide.Decide(f).Bucket; got != test.want {
			t.Errorf("over the cut of urgency: %v, need for attention %v: the bucket is %s, want %s", test.urgent, test.attention, got, test.want)
		}
	}
}

// TestAColleaguesOfferIsNoAdvertisement checks that words that promote something take a
// message of the owner's organisation out of what waits only if it asks for nothing, or
// if nothing proves where it is from.
func TestAColleaguesOfferIsNoAdvertisement(t *testing.T) {
	t.Parallel()
	colleague := decide.Facts{
		Headers: decide.Headers{From: []string{"sven@example.org"}, To: []string{"owner@example.org"}}, Folder: mailbox.UseInbox,
		Authentication: signal.Authentication{DMARC: signal.AuthPass, Aligned: true},
		Prediction: classify.Prediction{
			Act: classify.Request, ActConfidence: .9, Category: classify.Primary, CategoryConfidence: .9, Priority: classify.Promotional, Attention: .9, NeedsAttention: true,
		},
		Settings: decide.Settings{Addresses: []string{"owner@example.org"}, Domains: []string{"example.org"}},
	}
	for name, test := range map[string]struct {
		change func(*decide.Facts)
		want   decide.Bucket
	}{
		"a colleague":         {func(*decide.Facts) {}, decide.Actionable},
		"an unproven sender":  {func(f *decide.Facts) { f.Authentication = signal.Authentication{} }, decide.Informational},
		"asks for nothing":    {func(f *decide.Facts) { f.Prediction.NeedsAttention = false }, decide.Informational},
		"from somewhere else": {func(f *decide.Facts) { f.Headers.From = []string{"sven@shop.example"} }, decide.Informational},
	} {
		f := colleague
		if test.change(&f); decide.Decide(f).Bucket != test.want {
			t.Errorf("%s: the bucket is %s, want %s", name, decide.Decide(f).Bucket, test.want)
		}
	}
}
