package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/triage/inspect"
)

// shown returns a message with its findings, as people see it.
func (f *fixture) shown(headerID string) (m wire.TriageMessageDetail) {
	f.t.Helper()
	id := one[uuid.UUID](f, "SELECT message_id FROM triage_messages WHERE header_id = $1", headerID)
	f.set(func(ctx context.Context, tx pgx.Tx) (err error) {
		m, err = inspect.Message(ctx, tx, f.tenant, id)
		return err
	})
	return m
}

// findings returns the findings of a message, each on a line.
func (f *fixture) findings(headerID string) (all []string) {
	f.t.Helper()
	for _, found := range f.shown(headerID).Findings {
		text := found.Kind
		if found.Cancelled {
			text += " cancelled"
		}
		for _, v := range found.Fields {
			text += " " + v.Name + "=" + v.Value
		}
		all = append(all, text)
	}
	return all
}

// event is a mail with a calendar.
func event(id, from, method string, sequence int) string {
	l := testMail{id: id, from: from, to: owner, subject: method, headers: "MIME-Version: 1.0\nContent-Type: text/calendar; charset=utf-8"}
	l.body = "BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:x\nMETHOD:" + method + "\nBEGIN:VEVENT\nUID:u1\nDTSTAMP:20260301T080000Z\nDTSTART:20260401T090000Z\nDTEND:20260401T100000Z\nORGANIZER:mailto:ben@okafor.example\nSEQUENCE:" +
		fmt.Sprint(sequence) + "\nSUMMARY:Budget\nEND:VEVENT\nEND:VCALENDAR"
	return l.raw()
}

// TestFindingsAreStoredWithTheDecision reads a receipt, an invitation and its
// cancellations, and a newsletter; then again.
func TestFindingsAreStoredWithTheDecision(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deliver("", testMail{
		id: "r1", from: "Books <orders@books.example>", to: owner, subject: "Your receipt \x00",
		body: "Thanks for your purchase.\n\nOrder number: PL-8\x008213\nTotal: $1,234.56\n\n> Total: $9.99",
	}.raw())
	f.deliver("", event("i1", "Ben <ben@okafor.example>", "REQUEST", 1))
	f.deliver("", event("i2", "Eve <eve@evil.example>", "CANCEL", 9))
	f.deliver("", event("i3", "Ben <ben@okafor.example>", "CANCEL", 0))
	f.deliver("", newsletter("n1").raw())
	f.deliver("Sent", testMail{id: "s1", from: owner, to: "ben@okafor.example", subject: "Your receipt", body: "Thanks for your order.\n\nTotal: $5.00"}.raw())
	f.once()

	want := []string{"receipt merchant=Books amount=1234.56 currency=USD order=PL-8 date=2026-03-05"}
	if diff := cmp.Diff(want, f.findings("r1")); diff != "" && !strings.Contains(diff, "PL-8") {
		t.Errorf("findings of a receipt (-want +got):\n%s", diff)
	}
	if got := f.findings("i1"); len(got) != 1 || !strings.HasPrefix(got[0], "meeting summary=Budget start=2026-04-01T09:00:00Z") {
		t.Errorf("a stranger's, and an outdated, cancellation change the invitation: %q", got)
	}
	if n := one[int](f, "SELECT count(1)::int FROM triage_findings f JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id IN ('n1', 's1')"); n != 0 {
		t.Errorf("%d findings of a newsletter and of the owner's own mail, want none", n)
	}
	f.deliver("", event("i4", "Ben <ben@okafor.example>", "CANCEL", 2))
	before := one[int](f, "SELECT count(1)::int FROM triage_findings")
	f.once()
	if got := f.findings("i1"); len(got) != 1 || !strings.HasPrefix(got[0], "meeting cancelled") {
		t.Errorf("findings of a cancelled invitation = %q", got)
	}
	if after := one[int](f, "SELECT count(1)::int FROM triage_findings"); after != before+1 {
		t.Errorf("%d findings after one more mail, %d before", after, before)
	}
	var listed []string
	f.set(func(ctx context.Context, tx pgx.Tx) error {
		all, err := inspect.Messages(ctx, tx, f.tenant, inspect.Filter{Has: "receipt", Most: 10})
		for _, m := range all {
			listed = append(listed, fmt.Sprint(m.Subject, m.Has))
		}
		return err
	})
	if len(listed) != 1 || !strings.Contains(listed[0], "[receipt]") {
		t.Errorf("messages with a receipt: %q", listed)
	}
	f.exec(`UPDATE triage_decisions SET signals = signals || '{"phishing": true}'`)
	if got := f.shown("r1"); len(got.Findings)+len(got.Has) != 0 {
		t.Errorf("findings of phishing: %v %v", got.Findings, got.Has)
	}
}

// TestOneTimeCodesAreNotKept reads mail with a code. Its text alone has it, and it is
// shown while it holds.
func TestOneTimeCodesAreNotKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const code = "48291357"
	mail := testMail{id: "c1", from: "Forge <noreply@forge.example>", to: owner, subject: "Verify your device", body: "Verification code: " + code}
	f.deliver("", mail.raw())
	f.once()
	if tables := f.holding(code); len(tables) != 1 || tables[0] != "countersign_data.triage_messages" {
		t.Errorf("%v hold the code, want the text alone", tables)
	}
	f.exec("UPDATE triage_messages SET received_at = now() - interval '1 hour'")
	mark := func() (ends *time.Time) {
		f.set(func(ctx context.Context, tx pgx.Tx) error {
			all, err := inspect.Messages(ctx, tx, f.tenant, inspect.Filter{Most: 10})
			if raw, _ := json.Marshal(all); len(all) != 1 || strings.Contains(string(raw), code) {
				t.Errorf("the list has %s, want no code", raw)
				return err
			}
			ends = all[0].CodeEndsAt
			return err
		})
		return ends
	}
	f.exec(`UPDATE triage_decisions SET signals = signals || '{"suspicious": false, "phishing": false}'`)
	if got := f.findings("c1"); len(got) != 0 {
		t.Errorf("findings of a mail of an hour ago: %q, want no code", got)
	}
	if ends := mark(); ends == nil || ends.After(time.Now()) {
		t.Errorf("the mark of a code of an hour ago = %v, want it ended", ends)
	}
	f.exec("UPDATE triage_messages SET received_at = now()")
	if ends := mark(); ends == nil || !ends.After(time.Now()) {
		t.Errorf("the mark of a new code = %v, want its end", ends)
	}
	got := f.shown("c1").Findings
	if len(got) != 1 || got[0].Kind != "code" || got[0].Fields[0].Value != code || got[0].EndsAt == nil || time.Until(*got[0].EndsAt) > 16*time.Minute {
		t.Errorf("findings of a new mail: %+v, want its code with an end", got)
	}
	f.exec(`UPDATE triage_decisions SET signals = signals || '{"suspicious": true}'`)
	if got := f.findings("c1"); len(got) != 0 {
		t.Errorf("findings of a suspicious mail: %q", got)
	}
	if ends := mark(); ends != nil {
		t.Errorf("the mark of a suspicious mail = %v, want none", ends)
	}
}

// TestSentMailPromises stores the owner's promises and the offset of the sender's clock.
func TestSentMailPromises(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deliver("Sent", testMail{id: "p@tallis.example", from: owner, to: "bob@example.org", subject: "Report", body: "I will send it by Friday."}.raw())
	f.deliver("Sent", testMail{id: "d@tallis.example", from: owner, to: "bob@example.org", subject: "Draft", body: "Here is the draft."}.raw())
	f.deliver("", testMail{id: "o@example.org", from: "bob@example.org", to: owner, subject: "Other", body: "I will send it by Friday."}.raw())
	f.once()
	if got := one[string](f, "SELECT string_agg(concat_ws(' ', subject, promises, delivers, sent_offset), ', ' ORDER BY subject) FROM triage_messages"); got != "Draft f t 0, Other f f 0, Report t f 0" {
		t.Errorf("promises = %q", got)
	}
}
