package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/decide"
)

const (
	copyProven = "Authentication-Results: mx.example.net; spf=pass smtp.mailfrom=garden-weekly.example; dkim=pass header.d=garden-weekly.example; dmarc=pass header.from=garden-weekly.example\n"
	copyFailed = "Authentication-Results: mx.example.net; dmarc=fail (p=none) header.from=garden-weekly.example\n"
	copyOfList = "List-Id: <weekly.garden-weekly.example>\nList-Unsubscribe: <https://garden-weekly.example/u>\nPrecedence: bulk\nAuto-Submitted: auto-generated\n"
)

// copyOf returns a copy of a mail from a known sender to the owner.
func copyOf(id, headers string) string {
	return testMail{
		id: id, from: "Ada <news@garden-weekly.example>", to: owner, subject: "The beds behind the house", headers: headers,
		body: "We are done with the beds, the hedge comes next.",
	}.raw()
}

// decided returns the last decision about a message.
func (f *fixture) decided(headerID string) (d decide.Decision) {
	f.t.Helper()
	raw := one[[]byte](f, "SELECT d.decision FROM triage_decisions d JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id = $1", headerID)
	if err := json.Unmarshal(raw, &d); err != nil {
		f.t.Fatal(err)
	}
	return d
}

// TestCopiesThatDifferAreJudged delivers a mail, a forged copy that looks like
// one of a list, and one whose authentication failed, in every order: in
// separate passes and in one.
func TestCopiesThatDifferAreJudged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.known()
	f.put("work", func(a *account.Account) {
		a.Settings.Levels = map[decide.Cohort]decide.Level{decide.CrossOrg: decide.L2}
	})
	copies := []string{copyProven, copyOfList + copyProven, copyFailed}
	for i, headers := range copies {
		f.deliver("", copyOf(fmt.Sprintf("alone%d@x", i), headers))
	}
	f.once()
	genuine, forged, failed := f.decided("alone0@x"), f.decided("alone1@x"), f.decided("alone2@x")
	if genuine.Bucket == decide.Archived || forged.Bucket != decide.Archived || genuine.Allowed >= forged.Allowed || failed.Allowed >= genuine.Allowed {
		t.Fatalf("the genuine mail is %s at %v, the forged copy %s at %v, the failed copy %s at %v: the test proves nothing",
			genuine.Bucket, genuine.Allowed, forged.Bucket, forged.Allowed, failed.Bucket, failed.Allowed)
	}
	want := decide.Join(decide.Join(genuine, forged), failed)

	orders := [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}
	for n := range copies {
		for i, order := range orders {
			f.deliver("", copyOf(fmt.Sprintf("passes%d@x", i), copies[order[n]]))
		}
		f.once()
	}
	for i, order := range orders {
		for _, n := range order {
			f.deliver("", copyOf(fmt.Sprintf("pass%d@x", i), copies[n]))
		}
	}
	f.once()
	same := []cmp.Option{cmpopts.IgnoreFields(decide.Decision{}, "Trace"), cmpopts.EquateEmpty()}
	check := func(id string) {
		t.Helper()
		if diff := cmp.Diff(want, f.decided(id), same...); diff != "" {
			t.Errorf("%s: decided by order, not by all copies:\n%s", id, diff)
		}
		if reason, traced := f.why(id, "copies of the message differ"); reason != "copied" || !traced {
			t.Errorf("%s: decided because of %q, the trace names the copies: %v", id, reason, traced)
		}
	}
	for i := range orders {
		check(fmt.Sprintf("passes%d@x", i))
		check(fmt.Sprintf("pass%d@x", i))
	}

	// Deliver the same copies again, and decide one of them for another reason.
	f.exec("UPDATE triage_decisions SET decided_at = '2026-01-01'")
	f.deliver("", copyOf("passes0@x", "X-Spam-Status: No\n"+copies[1]))
	f.once()
	if one[bool](f, "SELECT bool_or(decided_at > '2026-01-01') FROM triage_decisions") {
		t.Error("decided again for a copy that differs in nothing that counts")
	}
	f.exec("UPDATE triage_decisions SET again = 'corrected' WHERE cardinality(judged) = 3")
	f.once()
	for i := range orders {
		for _, id := range []string{fmt.Sprintf("passes%d@x", i), fmt.Sprintf("pass%d@x", i)} {
			if diff := cmp.Diff(want, f.decided(id), same...); diff != "" {
				t.Errorf("%s: decided again by one copy:\n%s", id, diff)
			}
		}
	}
}

// TestCopyNarrowsProposals proposes about a forged copy that arrives first.
// The pending proposals are withdrawn when the genuine mail is read, and
// nothing is proposed about that.
func TestCopyNarrowsProposals(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.known()
	f.deliver("", copyOf("n@x", copyOfList+copyProven))
	f.once()
	if n := one[int](f, "SELECT count(1) FROM triage_proposals WHERE withdraw_at IS NULL"); n != 1 {
		t.Fatalf("%d proposals about the forged copy, want 1", n)
	}
	f.deliver("", copyOf("n@x", copyProven))
	f.once()
	if n := one[int](f, "SELECT count(1) FROM triage_proposals WHERE withdraw_at IS NULL"); n != 0 {
		t.Errorf("%d proposals wait about a mail of which a copy allows less", n)
	}
	if d := f.decided("n@x"); slices.ContainsFunc(d.Wants, func(w decide.Want) bool { return w.Action == decide.Archive }) || d.Bucket == decide.Archived {
		t.Errorf("the genuine mail is %s and wants %v", d.Bucket, d.Wants)
	}
}
