package gate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/gate"
)

func TestCheckPasses(t *testing.T) {
	t.Parallel()

	now := at(t, "2026-01-02T23:00:00Z")
	for name, facts := range map[string]gate.Facts{
		"nothing against it":        {},
		"a deadline ahead":          {Now: now, MustRunBefore: now.Add(1)},
		"quiet hours that are over": {Now: now, Quiet: []gate.QuietFact{{Until: now, Level: "tenant"}, {Level: "bucket"}}},
		"urgent, and allowed to":    {Now: now, Quiet: []gate.QuietFact{{Until: now.Add(1), Level: "tenant"}}, UrgentAsked: true, UrgentAllowed: true},
		"a breaker that may probe":  {Now: now, BreakerUntil: now},
		"a kill of nothing":         {Pause: gate.Pause{Kill: true}},
	} {
		if got := gate.Check(facts); got != (gate.Answer{Verdict: gate.Pass}) {
			t.Errorf("%s: Check = %+v, want pass", name, got)
		}
	}
}

// TestCheckOrder holds every pair of gates against each other: the one that
// stands first wins.
func TestCheckOrder(t *testing.T) {
	t.Parallel()

	now := at(t, "2026-01-02T23:00:00Z")
	gates := []struct {
		code    string
		verdict gate.Verdict
		close   func(*gate.Facts)
	}{
		{gate.CodeKilled, gate.Skip, func(f *gate.Facts) { f.Pause = gate.Pause{Scope: "tenant", Since: now, Kill: true} }},
		{gate.CodeDeadline, gate.Skip, func(f *gate.Facts) { f.MustRunBefore = f.Now.Add(-time.Second) }},
		{gate.CodeDoNotContact, gate.Skip, func(f *gate.Facts) { f.DoNotContact = gate.Match{Kind: gate.ContactEmail} }},
		{gate.CodePaused, gate.Wait, func(f *gate.Facts) {
			if f.Pause.Scope == "" {
				f.Pause = gate.Pause{Scope: "bucket", Since: now}
			}
		}},
		{gate.CodeQuietHours, gate.Wait, func(f *gate.Facts) {
			f.Quiet = []gate.QuietFact{{Until: now.Add(time.Hour), Level: "employee"}}
		}},
		{gate.CodeBreakerOpen, gate.Wait, func(f *gate.Facts) { f.BreakerUntil = now.Add(time.Minute) }},
	}
	for i, first := range gates {
		for _, second := range gates[i:] {
			f := gate.Facts{Now: now}
			first.close(&f)
			second.close(&f)

			got := gate.Check(f)

			if got.Verdict != first.verdict || got.Code != first.code || got.Message == "" {
				t.Errorf("Check(%s and %s) = %+v, want %s %s with a reason", first.code, second.code, got, first.verdict, first.code)
			}
			if got.Verdict == gate.Skip && !got.Until.IsZero() {
				t.Errorf("Check(%s and %s) is to be looked at again at %s, though it ends", first.code, second.code, got.Until)
			}
		}
	}
}

func TestCheckQuietHours(t *testing.T) {
	t.Parallel()

	now := at(t, "2026-01-02T23:00:00Z")
	six, seven := at(t, "2026-01-03T06:00:00Z"), at(t, "2026-01-03T07:00:00Z")
	both := []gate.QuietFact{
		{Until: six, Level: "tenant", Spread: 3 * time.Hour},
		{Until: seven, Level: "recipient", Spread: 2 * time.Minute},
		{Until: now, Level: "bucket"},
		{Until: six, Level: "recipient"},
	}
	const until = "quiet hours (tenant, recipient) last until 2026-01-03T07:00:00Z"
	const lacks = "; it asks to be sent as urgent, but its employee lacks the scope quiet_hours:override"
	for name, test := range map[string]struct {
		facts gate.Facts
		want  gate.Answer
	}{
		"waits for the last, and its share of the spread": {
			gate.Facts{Now: now, Quiet: both},
			gate.Answer{Verdict: gate.Wait, Code: "quiet_hours", Message: until, Until: seven.Add(2 * time.Minute)},
		},
		"says what scope is missing": {
			gate.Facts{Now: now, Quiet: both, UrgentAsked: true},
			gate.Answer{Verdict: gate.Wait, Code: "quiet_hours", Message: until + lacks, Until: seven.Add(2 * time.Minute)},
		},
		"allowed but not asked": {
			gate.Facts{Now: now, Quiet: both, UrgentAllowed: true},
			gate.Answer{Verdict: gate.Wait, Code: "quiet_hours", Message: until, Until: seven.Add(2 * time.Minute)},
		},
		"a deadline at the end is missed": {
			gate.Facts{Now: now, Quiet: both, MustRunBefore: seven},
			gate.Answer{Verdict: gate.Skip, Code: "quiet_hours", Message: until + ", and must_run_before comes no later"},
		},
		"a deadline before the end is missed": {
			gate.Facts{Now: now, Quiet: both, MustRunBefore: six, UrgentAsked: true},
			gate.Answer{Verdict: gate.Skip, Code: "quiet_hours", Message: until + ", and must_run_before comes no later" + lacks},
		},
		"a deadline within the spread leaves it out": {
			gate.Facts{Now: now, Quiet: both, MustRunBefore: seven.Add(2 * time.Minute)},
			gate.Answer{Verdict: gate.Wait, Code: "quiet_hours", Message: until, Until: seven},
		},
		"a deadline after the spread": {
			gate.Facts{Now: now, Quiet: both, MustRunBefore: seven.Add(2*time.Minute + 1)},
			gate.Answer{Verdict: gate.Wait, Code: "quiet_hours", Message: until, Until: seven.Add(2 * time.Minute)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(test.want, gate.Check(test.facts)); diff != "" {
				t.Errorf("Check (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckMessages(t *testing.T) {
	t.Parallel()

	now := at(t, "2026-01-02T23:00:00Z")
	for name, test := range map[string]struct {
		facts gate.Facts
		want  string
	}{
		"killed":         {gate.Facts{Pause: gate.Pause{Scope: "everything", Since: now, Kill: true}}, "an operator used the kill switch on everything at 2026-01-02T23:00:00Z"},
		"paused":         {gate.Facts{Pause: gate.Pause{Scope: "source"}}, "an operator paused its source"},
		"breaker":        {gate.Facts{BreakerUntil: now}, "its source failed too often and is left alone until 2026-01-02T23:00:00Z"},
		"a reason alone": {gate.Facts{DoNotContact: gate.Match{Reason: "asked us to stop"}}, "a recipient is on the do-not-contact list: asked us to stop"},
		"kind and reason": {
			gate.Facts{DoNotContact: gate.Match{Kind: gate.ContactDomain, Reason: " opted out\non 2025-11-30\x00 "}},
			"a recipient is on the do-not-contact list (by domain): opted out on 2025-11-30",
		},
		"a reason that names an address": {
			gate.Facts{DoNotContact: gate.Match{Kind: gate.ContactEmail, Reason: "ana\uff20example.org complained"}},
			"a recipient is on the do-not-contact list (by email)",
		},
		"a reason that names a number": {
			gate.Facts{DoNotContact: gate.Match{Kind: gate.ContactPhone, Reason: "call +49 30 123 456"}},
			"a recipient is on the do-not-contact list (by phone)",
		},
		"a reason without end": {
			gate.Facts{DoNotContact: gate.Match{Kind: gate.ContactHandle, Reason: strings.Repeat("so ", 200)}},
			"a recipient is on the do-not-contact list (by handle)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := gate.Check(test.facts).Message; got != test.want {
				t.Errorf("Check says %q, want %q", got, test.want)
			}
		})
	}
}
