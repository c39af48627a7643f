package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// ofPerson returns mail of a person that passed authentication.
func ofPerson(id, name, domain string, headers ...string) testMail {
	m := testMail{
		id: id, from: name + "@" + domain, to: owner, subject: "Dates " + id, body: "Hello Mara, how are you?",
		headers: "Authentication-Results: mx.example.net; spf=pass smtp.mailfrom=" + domain + "; dkim=pass header.d=" + domain + "; dmarc=pass header.from=" + domain + "\n" +
			"Return-Path: <" + name + "@" + domain + ">\nReceived: from out." + domain + " ([192.0.2.1]) by mx.example.net; Thu, 05 Mar 2026 16:23:04 +0000",
	}
	for _, h := range headers {
		m.headers += "\n" + h
	}
	return m
}

// TestAnswersInAbsence answers people once each, up to the most a day, and no list,
// machine or unproven sender; and nobody when the answer is taken away.
func TestAnswersInAbsence(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	since := time.Now().UTC().Truncate(time.Second).Add(-time.Hour)
	f.put("work", func(a *account.Account) {
		a.Proposals.Away = &plan.Away{
			Subject: "Away", Text: "Back on Monday.\nMara", Since: since, Until: since.Add(48 * time.Hour),
			Cohorts: []decide.Cohort{decide.FirstContact, decide.CrossOrg, decide.IntraOrg, decide.Newsletters, decide.Transactional}, MostADay: 2,
		}
	})
	unproven := ofPerson("4@x", "eve", "elsewhere.example")
	unproven.headers = "Return-Path: <eve@elsewhere.example>"
	for _, m := range []testMail{
		ofPerson("1@x", "bob", "elsewhere.example"), ofPerson("2@x", "bob", "elsewhere.example"), newsletter("3@x"), unproven,
		ofPerson("5@x", "cy", "elsewhere.example", "Auto-Submitted: auto-replied"),
	} {
		f.deliver("", m.raw())
	}
	f.once()
	answers := func() string {
		return one[string](f, `SELECT coalesce(string_agg(p.envelope #>> '{args,to}', ' ' ORDER BY p.envelope #>> '{args,to}'), '') FROM triage_proposals p WHERE p.action = 'away'`)
	}
	first := answers()
	f.deliver("", ofPerson("6@x", "bob", "elsewhere.example").raw())
	f.deliver("", ofPerson("7@x", "dan", "elsewhere.example").raw())
	f.once()
	f.deliver("", ofPerson("8@x", "fay", "elsewhere.example").raw())
	f.once()
	second := answers()
	why := one[string](f, `SELECT d.skipped::text FROM triage_decisions d JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id = '8@x'`)
	f.put("work", func(a *account.Account) { a.Proposals.Away.MostADay = 500 })
	f.put("work", func(a *account.Account) { a.Proposals.Away = nil })
	f.deliver("", ofPerson("9@x", "gus", "elsewhere.example").raw())
	f.once()

	if diff := cmp.Diff([]string{"bob@elsewhere.example", "bob@elsewhere.example dan@elsewhere.example", second}, []string{first, second, answers()}); diff != "" {
		t.Errorf("answered (-want +got):\n%s", diff)
	}
	if n := one[int](f, "SELECT count(*)::integer FROM proposals WHERE body::jsonb #>> '{tool,name}' = 'message.away' AND body::jsonb #>> '{constraints,must_run_before}' IS NOT NULL"); n != 2 {
		t.Errorf("%d answers are proposed with a deadline, want 2", n)
	}
	if want := "2 answers are proposed for this day already"; !strings.Contains(why, want) {
		t.Errorf("skipped = %s, want %q", why, want)
	}
}
