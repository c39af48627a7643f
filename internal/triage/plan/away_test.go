package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/plan"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// absent returns a configuration with an answer for ten days in Berlin.
func absent() plan.Config {
	c := config()
	since := time.Date(2026, 3, 24, 9, 0, 0, 0, time.UTC) // the clocks change on the 29th
	c.Away = &plan.Away{
		Subject: "Out of office", Text: "Back on Monday.\nAna", Since: since, Until: since.Add(10 * 24 * time.Hour), Zone: "Europe/Berlin",
		Cohorts: []decide.Cohort{decide.IntraOrg, decide.VIP}, MostADay: 3,
	}
	return c
}

// letter returns a message of a sender to ana@example.org.
func letter(from string, fields ...string) plan.Target {
	raw := "Return-Path: <" + from + ">\nFrom: " + from + "\nTo: ana@example.org\nMessage-ID: <1@example.org>\nSubject: Hello\n" + strings.Join(fields, "\n") + "\n\nHello\n"
	if len(fields) == 0 {
		raw = strings.Replace(raw, "Hello\n\n\n", "Hello\n\n", 1)
	}
	return plan.Target{At: mailbox.State{Location: mailbox.Location{Folder: "INBOX", Key: "1:1"}, Flags: []string{mailbox.FlagSeen}}, Message: message.Parse([]byte(raw))}
}

// certain returns the facts and the decision about a message whose sender gets an answer.
func certain(on plan.Target) (decide.Facts, decide.Decision) {
	return decide.Facts{
		Folder: mailbox.UseInbox, Authentication: authenticate.Result{Aligned: true, DMARC: authenticate.Pass}, Headers: decide.HeadersOf(on.Message),
		Settings: decide.Settings{Addresses: []string{"ana@example.org"}},
	}, decide.Decision{Cohort: decide.IntraOrg, Allowed: decide.L2}
}

func answer(on plan.Target, c plan.Config, observed bool, now time.Time) (plan.Proposal, error) {
	f, d := certain(on)
	f.Settings.ObserveOnly = observed
	return plan.Absent(f, d, on, c, &plan.Absence{}, now)
}

func TestAbsent(t *testing.T) {
	t.Parallel()
	c := absent()

	p, err := answer(letter("bob@example.org"), c, false, c.Away.Since.Add(time.Hour))

	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Envelope()
	if err != nil {
		t.Fatal(err)
	}
	var args map[string]any
	if err := json.Unmarshal(e.Args, &args); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"account": "ana", "to": "bob@example.org", "subject": "Out of office", "text": "Back on Monday.\nAna", "since": "2026-03-24T09:00:00Z", "until": "2026-04-03T09:00:00Z",
	} {
		if args[name] != want {
			t.Errorf("%s = %v, want %v", name, args[name], want)
		}
	}
	if _, expects := args["expected"]; expects || e.Approval == envelope.ApprovalRequired {
		t.Errorf("envelope = %s, approval %q", e.Args, e.Approval)
	}
	if want := time.Date(2026, 3, 24, 23, 0, 0, 0, time.UTC); !e.Constraints.MustRunBefore.Equal(want) {
		t.Errorf("must run before %v, want %v", e.Constraints.MustRunBefore, want)
	}
	if observed, err := answer(letter("bob@example.org"), c, true, c.Away.Since); err != nil || !observed.Confirm || observed.ExternalID != p.ExternalID {
		t.Errorf("Absent() = %+v, %v, want the same proposal for a person", observed, err)
	}
	c.Away = nil
	if _, err := answer(letter("bob@example.org"), c, false, time.Now()); err == nil {
		t.Error("Absent() answers without an answer")
	}
	built := letter("bob@example.org")
	built.Built = true
	if _, err := answer(built, absent(), false, absent().Away.Since); err == nil {
		t.Error("Absent() answers a message whose original is not known")
	}
}

func TestCheckAway(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*plan.Away){
		"no subject":            func(a *plan.Away) { a.Subject = "" },
		"a line in the subject": func(a *plan.Away) { a.Subject = "a\nBcc: b@example.org" },
		"a long subject":        func(a *plan.Away) { a.Subject = strings.Repeat("a", 801) },
		"no text":               func(a *plan.Away) { a.Text = "" },
		"a long text":           func(a *plan.Away) { a.Text = strings.Repeat("a", 10_001) },
		"a control character":   func(a *plan.Away) { a.Text = "a\rb" },
		"no begin":              func(a *plan.Away) { a.Since = time.Time{} },
		"an end before it":      func(a *plan.Away) { a.Until = a.Since },
		"half a second":         func(a *plan.Away) { a.Since = a.Since.Add(time.Second / 2) },
		"a year":                func(a *plan.Away) { a.Until = a.Since.AddDate(1, 0, 0) },
		"an unknown zone":       func(a *plan.Away) { a.Zone = "Mars" },
		"a zone of the machine": func(a *plan.Away) { a.Zone = "Local" },
		"no cohort":             func(a *plan.Away) { a.Cohorts = nil },
		"an unknown cohort":     func(a *plan.Away) { a.Cohorts = []decide.Cohort{"everybody"} },
		"none a day":            func(a *plan.Away) { a.MostADay = 0 },
		"thousands a day":       func(a *plan.Away) { a.MostADay = 501 },
	} {
		c := absent()
		if err := c.Check(); err != nil {
			t.Fatal(err)
		}
		change(c.Away)
		if err := c.Check(); err == nil {
			t.Errorf("%s: Check() = nil", name)
		}
		if _, err := answer(letter("bob@example.org"), c, false, absent().Away.Since); err == nil {
			t.Errorf("%s: Absent() answers", name)
		}
	}
}

// TestAnswersInAbsence sends random mail over weeks: no sender has two answers in an
// absence, no day more than the most, and nobody has one out of the period, after the
// answer was taken away, or who is excluded. Stored answers count after a restart.
func TestAnswersInAbsence(t *testing.T) {
	t.Parallel()
	excluded := map[string]func(*decide.Facts, *decide.Decision, *plan.Target){
		"":               nil,
		"unproven":       func(f *decide.Facts, _ *decide.Decision, _ *plan.Target) { f.Authentication.Aligned = false },
		"failed":         func(f *decide.Facts, _ *decide.Decision, _ *plan.Target) { f.Authentication.DMARC = authenticate.Fail },
		"suspicious":     func(f *decide.Facts, _ *decide.Decision, _ *plan.Target) { f.Signals.Suspicious = true },
		"phishing":       func(f *decide.Facts, _ *decide.Decision, _ *plan.Target) { f.Signals.Phishing = true },
		"injection":      func(f *decide.Facts, _ *decide.Decision, _ *plan.Target) { f.Signals.Injection = true },
		"spam":           func(f *decide.Facts, _ *decide.Decision, _ *plan.Target) { f.Flags = []string{"$Junk"} },
		"junk":           func(f *decide.Facts, _ *decide.Decision, _ *plan.Target) { f.Folder = mailbox.UseJunk },
		"answered":       func(f *decide.Facts, _ *decide.Decision, _ *plan.Target) { f.Flags = []string{mailbox.FlagAnswered} },
		"silent":         func(_ *decide.Facts, d *decide.Decision, _ *plan.Target) { d.Allowed = decide.L0 },
		"another cohort": func(_ *decide.Facts, d *decide.Decision, _ *plan.Target) { d.Cohort = decide.CrossOrg },
		"a machine": func(f *decide.Facts, _ *decide.Decision, _ *plan.Target) {
			f.Signals.Symbols = []signal.Symbol{{Name: signal.AutoSubmitted}}
		},
	}
	for _, field := range []string{"List-Id: <a.example.org>", "Precedence: bulk", "Auto-Submitted: auto-replied", "Return-Path: <>", "X-Loop: a"} {
		excluded[field] = func(_ *decide.Facts, _ *decide.Decision, on *plan.Target) {
			*on = letter(on.Message.From[0].Addr, field)
		}
	}
	kinds := make([]string, 0, len(excluded))
	for kind := range excluded {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)

	answered := 0
	rapid.Check(t, func(t *rapid.T) {
		c := absent()
		c.Away.MostADay = rapid.IntRange(1, 4).Draw(t, "most")
		zone, _ := time.LoadLocation(c.Away.Zone)
		now := c.Away.Since.Add(-time.Hour)
		var stored, sofar plan.Absence
		days, senders := map[string]int{}, map[string]int{}
		for range rapid.IntRange(1, 120).Draw(t, "mails") {
			now = now.Add(time.Duration(rapid.IntRange(0, 8*60).Draw(t, "minutes")) * time.Minute)
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				sofar = plan.Absence{}
				for name := range stored.Named {
					sofar.Answered(name, time.Time{})
				}
				sofar.Deadlines = slices.Clone(stored.Deadlines)
			}
			ended := rapid.IntRange(0, 19).Draw(t, "ended") == 0
			of := c
			if ended {
				of.Away = nil
			}
			from := fmt.Sprintf("%s%d@example.org", rapid.SampledFrom([]string{"bob", "Bob"}).Draw(t, "case"), rapid.IntRange(1, 12).Draw(t, "sender"))
			kind := rapid.SampledFrom(append(slices.Repeat([]string{""}, len(kinds)), kinds...)).Draw(t, "kind")
			on := letter(from)
			f, d := certain(on)
			if change := excluded[kind]; change != nil {
				change(&f, &d, &on)
			}
			p, err := plan.Absent(f, d, on, of, &sofar, now)
			if err != nil {
				continue
			}
			stored.Answered(p.ExternalID, p.Deadline)
			answered++
			day := now.In(zone).Format(time.DateOnly)
			days[day]++
			senders[strings.ToLower(from)]++
			switch {
			case kind != "" || ended:
				t.Fatalf("%q has an answer (ended: %t)", kind, ended)
			case now.Before(c.Away.Since) || !now.Before(c.Away.Until):
				t.Fatalf("an answer at %v", now)
			case senders[strings.ToLower(from)] > 1:
				t.Fatalf("%s has two answers", from)
			case days[day] > c.Away.MostADay:
				t.Fatalf("%d answers on %s", days[day], day)
			case p.Deadline.After(c.Away.Until) || p.Deadline.Add(-time.Second).In(zone).Format(time.DateOnly) != day:
				t.Fatalf("an answer of %s may be sent until %v", day, p.Deadline)
			}
		}
	})
	if answered == 0 {
		t.Error("no mail was answered: the test proves nothing")
	}
}
