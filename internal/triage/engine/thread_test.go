package engine_test

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/decide"
)

// passed returns the header fields of mail that passed for a domain.
func passed(domain string) string {
	return "Authentication-Results: mx.example.net; spf=pass smtp.mailfrom=" + domain + "; dkim=pass header.d=" + domain + "; dmarc=pass header.from=" + domain +
		"\nReceived: from out." + domain + " ([192.0.2.1]) by mx.example.net; Thu, 05 Mar 2026 16:23:04 +0000\n"
}

// TestStrangerGainsNothingFromListOrThread has a stranger write under the id of a
// known list, answer a question that the owner asked somebody else, and use the
// Message-ID of a message that the owner has answered.
func TestStrangerGainsNothingFromListOrThread(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("work", func(a *account.Account) {
		a.Settings.Levels = map[decide.Cohort]decide.Level{decide.Default: decide.L5}
	})
	at := time.Now().Add(-time.Hour)
	for i, m := range []struct {
		folder string
		mail   testMail
	}{
		{"", newsletter("known@x")},
		{"", testMail{id: "wish@x", from: "help@shop.example", to: owner, subject: "Your wish", body: "What is it?", headers: passed("shop.example")}},
		{"Sent", testMail{id: "ask@x", from: owner, to: "help@shop.example", subject: "Re: Your wish", body: "When will it arrive?", headers: "In-Reply-To: <wish@x>"}},
		{"", testMail{id: "auto@x", from: "noreply@shop.example", to: owner, subject: "Re: Your wish", body: "This is your ticket.",
			headers: passed("shop.example") + "In-Reply-To: <ask@x>\nAuto-Submitted: auto-replied"}},
	} {
		path := f.deliver(m.folder, m.mail.raw())
		if err := os.Chtimes(path, at.Add(time.Duration(i)*time.Minute), at.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	f.once()
	stranger := func(id, headers string) testMail {
		return testMail{id: id, from: strings.TrimSuffix(id, "@x") + "@stranger.example", to: owner, subject: "Ten plants", body: "This week: lavender.", headers: passed("stranger.example") + headers}
	}
	for _, m := range []testMail{
		stranger("list@x", "List-Id: <weekly.garden-weekly.example>\nList-Unsubscribe: <https://stranger.example/u>\nPrecedence: bulk"),
		stranger("answer@x", "In-Reply-To: <ask@x>\nReferences: <wish@x> <ask@x>"),
		stranger("wish@x", ""),
	} {
		f.deliver("", m.raw())
		f.once()
	}

	for _, id := range []string{"list@x", "answer@x", "wish@x"} {
		got := one[string](f, `SELECT d.cohort || ' at L' || d.level FROM triage_decisions d JOIN triage_messages m USING (tenant_id, message_id)
			WHERE m.header_id = $1 AND m.sender LIKE '%@stranger.example'`, id)
		if got != "first_contact at L1" {
			t.Errorf("%s of a stranger is %s, want first_contact at L1", id, got)
		}
	}
	if counts := one[[]int](f, "SELECT ARRAY[received, sent, replied] FROM triage_senders WHERE address = 'wish@stranger.example'"); !slices.Equal(counts, []int{1, 0, 0}) {
		t.Errorf("received, sent, replied = %v, want 1, 0, 0", counts)
	}
	if !one[bool](f, "SELECT awaits FROM triage_messages WHERE header_id = 'ask@x'") {
		t.Error("a stranger's answer ended what the owner waits for")
	}
	if got := one[string](f, "SELECT d.signals::text FROM triage_decisions d JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id = 'answer@x'"); strings.Contains(got, "REPLY_TO_MINE") {
		t.Errorf("a stranger's answer has REPLY_TO_MINE: %s", got)
	}
	f.deliver("", testMail{id: "real@x", from: "sales@shop.example", to: owner, subject: "Re: Your wish", body: "On Friday.", headers: passed("shop.example") + "In-Reply-To: <ask@x>"}.raw())
	f.once()
	if one[bool](f, "SELECT awaits FROM triage_messages WHERE header_id = 'ask@x'") {
		t.Error("the answer of those whom the owner asked did not end the waiting")
	}
}
