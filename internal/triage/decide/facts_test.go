package decide_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

func allCohorts() []decide.Cohort {
	return []decide.Cohort{
		decide.VIP, decide.FirstContact, decide.Newsletters, decide.Social, decide.Transactional, decide.IntraOrg,
		decide.CrossOrg, decide.Default,
	}
}

func allActs() []classify.Act {
	return []classify.Act{
		classify.Request, classify.Commit, classify.Deliver, classify.Propose, classify.Meet, classify.Amend, classify.FYI,
	}
}

func allPriorities() []classify.Priority {
	return []classify.Priority{
		classify.Urgent, classify.NeedsResponse, classify.ForInfo, classify.Promotional, classify.Personal,
	}
}

func allCategories() []classify.Category {
	return []classify.Category{
		classify.Primary, classify.Newsletters, classify.Notifications, classify.Promotions, classify.Receipts, classify.Social,
	}
}

// newsletter returns an ordinary newsletter of a list that the owner knows.
func newsletter() decide.Facts {
	return decide.Facts{
		Headers:        decide.Headers{From: []string{"news@shop.example"}, To: []string{"ana@example.org"}, ListUnsubscribe: true},
		Folder:         mailbox.UseInbox,
		Authentication: signal.Authentication{DMARC: signal.AuthPass, Aligned: true},
		Prediction: classify.Prediction{
			Act: classify.FYI, ActConfidence: 0.9, Category: classify.Newsletters, CategoryConfidence: 0.9,
			Priority: classify.ForInfo, Attention: 0.05,
		},
		Sender:   signal.Sender{Received: 3},
		Settings: decide.Settings{Addresses: []string{"ana@example.org"}, Domains: []string{"example.org"}},
	}
}

// approvedSender returns a sender of several weeks whose mail a person had
// archived.
func approvedSender() signal.Sender {
	last := time.Date(2026, 3, 5, 0, 0, 0, 0, time.UTC)
	return signal.Sender{Received: 3, Accepted: 1, FirstSeen: last.AddDate(0, 0, -21), LastSeen: last}
}

// colleague returns a request of a colleague of the owner.
func colleague() decide.Facts {
	f := newsletter()
	f.Headers = decide.Headers{From: []string{"bo@example.org"}, To: []string{"ana@example.org"}}
	f.Prediction = classify.Prediction{
		Act: classify.Request, ActConfidence: 0.9, Category: classify.Primary, CategoryConfidence: 0.9,
		Priority: classify.NeedsResponse, Attention: 0.9,
	}
	return f
}

// anyOf draws one of the values, or an unknown value.
func anyOf[T ~string](t *rapid.T, name string, values []T) T {
	return rapid.SampledFrom(append(slices.Clone(values), "", "no such word")).Draw(t, name)
}

func someOf(t *rapid.T, name string, values ...string) []string {
	return rapid.SliceOfNDistinct(rapid.SampledFrom(values), 0, len(values), rapid.ID[string]).Draw(t, name)
}

func yes(t *rapid.T, name string) bool { return rapid.Bool().Draw(t, name) }

func drawFacts(t *rapid.T) decide.Facts {
	addresses := []string{"ana@example.org", "bo@example.org", "eve@foreign.example", "news@shop.example", "x@social.example"}
	confidence := rapid.OneOf(rapid.Float64Range(0, 1), rapid.Float64())
	f := decide.Facts{
		Headers: decide.Headers{
			From: someOf(t, "from", addresses...), To: someOf(t, "to", addresses...), Cc: someOf(t, "cc", addresses...),
			ListUnsubscribe: yes(t, "list-unsubscribe"),
		},
		Folder:         rapid.SampledFrom([]mailbox.Use{mailbox.UseInbox, mailbox.UseInbox, mailbox.UseArchive, mailbox.UseOther}).Draw(t, "folder"),
		Flags:          someOf(t, "flags", "\\Seen", "\\Flagged", "$Important", "ACTION", "Work/To-do", "Countersign_receipts"),
		Authentication: drawAuthentication(t),
		Prediction: classify.Prediction{
			Act: anyOf(t, "act", allActs()), ActConfidence: confidence.Draw(t, "act confidence"),
			Category: anyOf(t, "category", allCategories()), CategoryConfidence: confidence.Draw(t, "category confidence"),
			Priority: anyOf(t, "priority", allPriorities()), Attention: confidence.Draw(t, "attention"),
		},
		Sender: drawSender(t, "sender"), List: drawSender(t, "list"),
		OwnerReplied: yes(t, "owner replied"), FollowUp: yes(t, "follow-up"),
		Amends: rapid.SampledFrom([]decide.Bucket{"", decide.Urgent, decide.Actionable, decide.Informational, decide.Archived}).Draw(t, "amends"),
		Earlier: decide.Earlier{
			Undone:  rapid.SliceOfN(rapid.SampledFrom([]decide.Action{decide.Label, decide.Archive, decide.Flag}), 0, 2).Draw(t, "undone"),
			Touched: rapid.IntRange(0, 4).Draw(t, "touched") == 0,
		},
		Settings: decide.Settings{
			Addresses: []string{"ana@example.org"}, Domains: someOf(t, "domains", "example.org"),
			Levels: map[decide.Cohort]decide.Level{}, VIP: someOf(t, "vip", "bo@example.org", "foreign.example"),
			Muted: someOf(t, "muted", "eve@foreign.example"), Newsletters: someOf(t, "newsletters", "shop.example"),
			Social:      someOf(t, "social", "social.example"),
			ObserveOnly: rapid.IntRange(0, 4).Draw(t, "observe only") == 0, Quarantine: yes(t, "quarantine"),
		},
	}
	for _, cohort := range allCohorts() {
		if yes(t, "level set") {
			f.Settings.Levels[cohort] = decide.Level(rapid.IntRange(-1, 7).Draw(t, "level"))
		}
	}
	f.Signals = withSymbols(signal.Result{}, rapid.SliceOfN(rapid.SampledFrom(signal.Rules()), 0, 3).Draw(t, "symbols")...)
	if yes(t, "code") {
		f.Signals = withSymbols(f.Signals, signal.Rule{Name: signal.OneTimeCode, Axis: signal.Kind})
	}
	f.Headers.Group, f.Signals.Named, f.Signals.Unfamiliar = yes(t, "group"), yes(t, "named"), rapid.IntRange(0, 5).Draw(t, "unfamiliar") == 0
	f.Signals.Keeps = rapid.SampledFrom([]signal.Keeps{signal.KeepsNothing, signal.KeepsNothing, signal.KeepsWords, signal.KeepsChange}).Draw(t, "keeps")
	if yes(t, "event") {
		f.Return = time.Date(2026, 12, 1, 6, 0, 0, 0, time.UTC)
	}
	f.Settings.Snooze, f.Settings.Trash, f.Authentication.UnsubscribeSigned = yes(t, "snooze"), yes(t, "trash"), yes(t, "unsubscribe signed")
	f.Answered = rapid.IntRange(0, 5).Draw(t, "answered") == 0
	return f
}

// drawAuthentication draws results as authenticate returns them: without a
// source every result is unknown.
func drawAuthentication(t *rapid.T) signal.Authentication {
	if rapid.IntRange(0, 3).Draw(t, "authentication") == 0 {
		return signal.Authentication{SPF: signal.AuthUnknown, DKIM: signal.AuthUnknown, DMARC: signal.AuthUnknown, Source: authenticate.FromNone}
	}
	results := rapid.SampledFrom([]signal.Auth{signal.AuthPass, signal.AuthFail, signal.AuthUnknown})
	return signal.Authentication{
		SPF: results.Draw(t, "spf"), DKIM: results.Draw(t, "dkim"), DMARC: results.Draw(t, "dmarc"), Aligned: yes(t, "aligned"),
		ListAligned: yes(t, "list aligned"), Source: authenticate.FromHeader,
	}
}

func drawSender(t *rapid.T, name string) signal.Sender {
	return signal.Sender{
		Received: rapid.IntRange(0, 9).Draw(t, name+" received"), Replied: rapid.IntRange(0, 9).Draw(t, name+" replied"),
		Accepted: max(0, rapid.IntRange(-3, 2).Draw(t, name+" accepted")), LastSeen: time.Unix(int64(rapid.IntRange(0, 1e6).Draw(t, name+" span")), 0),
		FirstSeen: time.Unix(0, 0), Corrected: max(0, rapid.IntRange(-3, 2).Draw(t, name+" corrected")),
		VIP: rapid.IntRange(0, 5).Draw(t, name+" vip") == 0, Muted: rapid.IntRange(0, 5).Draw(t, name+" muted") == 0,
	}
}

// withSymbols returns a result with additional symbols. It only sets flags: by
// the sums of the symbols, and those already set.
func withSymbols(r signal.Result, rules ...signal.Rule) signal.Result {
	next := signal.Result{
		Sums: map[signal.Axis]float64{}, Symbols: slices.Clone(r.Symbols), Code: r.Code, SecurityAlert: r.SecurityAlert,
		Keeps: r.Keeps, Named: r.Named, Unfamiliar: r.Unfamiliar,
	}
	for _, rule := range rules {
		next.Symbols = append(next.Symbols, signal.Symbol{Name: rule.Name, Axis: rule.Axis, Weight: rule.Weight})
	}
	for _, s := range next.Symbols {
		next.Sums[s.Axis] += s.Weight
		next.SecurityAlert = next.SecurityAlert || s.Name == signal.SecurityAlert
	}
	next.Suspicious = r.Suspicious || next.Sums[signal.Risk] >= 4
	next.Phishing = r.Phishing || next.Sums[signal.Risk] >= 6
	next.Injection = r.Injection || next.Sums[signal.Inject] >= 3
	return next
}
