package preflight_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
)

func TestCheckPasses(t *testing.T) {
	t.Parallel()

	now := at(t, "2026-01-02T23:00:00Z")
	for name, facts := range map[string]preflight.Facts{
		"nothing against it":        {},
		"a deadline ahead":          {Now: now, MustRunBefore: now.Add(1)},
		"quiet hours that are over": {Now: now, Quiet: []quiethours.Active{{Until: now, Level: "tenant"}, {Level: "bucket"}}},
		"urgent, and allowed to":    {Now: now, Quiet: []quiethours.Active{{Until: now.Add(1), Level: "tenant"}}, UrgentAsked: true, UrgentAllowed: true},
		"a breaker that may probe":  {Now: now, BreakerUntil: now},
		"a kill of nothing":         {Pause: preflight.Pause{Kill: true}},
	} {
		if got := preflight.Check(facts); got != (preflight.Answer{Result: preflight.Pass}) {
			t.Errorf("%s: Check = %+v, want pass", name, got)
		}
	}
}

// TestCheckOrder runs every pair of failing gates: the one listed first wins.
func TestCheckOrder(t *testing.T) {
	t.Parallel()

	now := at(t, "2026-01-02T23:00:00Z")
	gates := []struct {
		code   string
		result preflight.Result
		close  func(*preflight.Facts)
	}{
		{preflight.CodeKilled, preflight.Skip, func(f *preflight.Facts) { f.Pause = preflight.Pause{Scope: "tenant", Since: now, Kill: true} }},
		{preflight.CodeDeadline, preflight.Skip, func(f *preflight.Facts) { f.MustRunBefore = f.Now.Add(-time.Second) }},
		{preflight.CodeDoNotContact, preflight.Skip, func(f *preflight.Facts) { f.DoNotContact = contact.Match{Kind: contact.Email} }},
		{preflight.CodePaused, preflight.Wait, func(f *preflight.Facts) {
			if f.Pause.Scope == "" {
				f.Pause = preflight.Pause{Scope: "bucket", Since: now}
			}
		}},
		{preflight.CodeQuietHours, preflight.Wait, func(f *preflight.Facts) {
			f.Quiet = []quiethours.Active{{Until: now.Add(time.Hour), Level: "employee"}}
		}},
		{preflight.CodeLoginLost, preflight.Wait, func(f *preflight.Facts) { f.LoginLost = true }},
		{preflight.CodeBreakerOpen, preflight.Wait, func(f *preflight.Facts) { f.BreakerUntil = now.Add(time.Minute) }},
	}
	for i, first := range gates {
		for _, second := range gates[i:] {
			f := preflight.Facts{Now: now}
			first.close(&f)
			second.close(&f)

			got := preflight.Check(f)

			if got.Result != first.result || got.Code != first.code || got.Message == "" {
				t.Errorf("Check(%s and %s) = %+v, want %s %s with a reason", first.code, second.code, got, first.result, first.code)
			}
			if got.Result == preflight.Skip && !got.Until.IsZero() {
				t.Errorf("Check(%s and %s) is to be looked at again at %s, though it ends", first.code, second.code, got.Until)
			}
		}
	}
}

func TestCheckQuietHours(t *testing.T) {
	t.Parallel()

	now := at(t, "2026-01-02T23:00:00Z")
	six, seven := at(t, "2026-01-03T06:00:00Z"), at(t, "2026-01-03T07:00:00Z")
	both := []quiethours.Active{
		{Until: six, Level: "tenant", Spread: 3 * time.Hour},
		{Until: seven, Level: "recipient", Spread: 2 * time.Minute},
		{Until: now, Level: "bucket"},
		{Until: six, Level: "recipient"},
	}
	const until = "quiet hours (tenant, recipient) last until 2026-01-03T07:00:00Z"
	const lacks = "; it asks to be sent as urgent, but its employee lacks the scope quiet_hours:override"
	for name, test := range map[string]struct {
		facts preflight.Facts
		want  preflight.Answer
	}{
		"waits for the last, and its share of the spread": {
			preflight.Facts{Now: now, Quiet: both},
			preflight.Answer{Result: preflight.Wait, Code: "quiet_hours", Message: until, Until: seven.Add(2 * time.Minute)},
		},
		"says what scope is missing": {
			preflight.Facts{Now: now, Quiet: both, UrgentAsked: true},
			preflight.Answer{Result: preflight.Wait, Code: "quiet_hours", Message: until + lacks, Until: seven.Add(2 * time.Minute)},
		},
		"allowed but not asked": {
			preflight.Facts{Now: now, Quiet: both, UrgentAllowed: true},
			preflight.Answer{Result: preflight.Wait, Code: "quiet_hours", Message: until, Until: seven.Add(2 * time.Minute)},
		},
		"a deadline at the end is missed": {
			preflight.Facts{Now: now, Quiet: both, MustRunBefore: seven},
			preflight.Answer{Result: preflight.Skip, Code: "quiet_hours", Message: until + ", and must_run_before comes no later"},
		},
		"a deadline before the end is missed": {
			preflight.Facts{Now: now, Quiet: both, MustRunBefore: six, UrgentAsked: true},
			preflight.Answer{Result: preflight.Skip, Code: "quiet_hours", Message: until + ", and must_run_before comes no later" + lacks},
		},
		"a deadline within the spread leaves it out": {
			preflight.Facts{Now: now, Quiet: both, MustRunBefore: seven.Add(2 * time.Minute)},
			preflight.Answer{Result: preflight.Wait, Code: "quiet_hours", Message: until, Until: seven},
		},
		"a deadline after the spread": {
			preflight.Facts{Now: now, Quiet: both, MustRunBefore: seven.Add(2*time.Minute + 1)},
			preflight.Answer{Result: preflight.Wait, Code: "quiet_hours", Message: until, Until: seven.Add(2 * time.Minute)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if diff := cmp.Diff(test.want, preflight.Check(test.facts)); diff != "" {
				t.Errorf("Check (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCheckMessages(t *testing.T) {
	t.Parallel()

	now := at(t, "2026-01-02T23:00:00Z")
	for name, test := range map[string]struct {
		facts preflight.Facts
		want  string
	}{
		"killed":         {preflight.Facts{Pause: preflight.Pause{Scope: "everything", Since: now, Kill: true}}, "an operator used the kill switch on everything at 2026-01-02T23:00:00Z"},
		"paused":         {preflight.Facts{Pause: preflight.Pause{Scope: "source"}}, "an operator paused its source"},
		"breaker":        {preflight.Facts{BreakerUntil: now}, "its source failed too often; its breaker is open until 2026-01-02T23:00:00Z"},
		"a reason alone": {preflight.Facts{DoNotContact: contact.Match{Reason: "asked us to stop"}}, "a recipient is on the do-not-contact list: asked us to stop"},
		"kind and reason": {
			preflight.Facts{DoNotContact: contact.Match{Kind: contact.Domain, Reason: " opted out\non 2025-11-30\x00 "}},
			"a recipient is on the do-not-contact list (by domain): opted out on 2025-11-30",
		},
		"a reason that names an address": {
			preflight.Facts{DoNotContact: contact.Match{Kind: contact.Email, Reason: "ana\uff20example.org complained"}},
			"a recipient is on the do-not-contact list (by email)",
		},
		"a reason that names a number": {
			preflight.Facts{DoNotContact: contact.Match{Kind: contact.Phone, Reason: "call +49 30 123 456"}},
			"a recipient is on the do-not-contact list (by phone)",
		},
		"a reason without end": {
			preflight.Facts{DoNotContact: contact.Match{Kind: contact.Handle, Reason: strings.Repeat("so ", 200)}},
			"a recipient is on the do-not-contact list (by handle)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := preflight.Check(test.facts).Message; got != test.want {
				t.Errorf("Check says %q, want %q", got, test.want)
			}
		})
	}
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}
