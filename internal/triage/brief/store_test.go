package brief_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/triage/brief"
	"github.com/countersign-dev/countersign/internal/triage/followup"
)

// fixture is an account with messages.
type fixture struct {
	t       *testing.T
	db      postgres.Begins
	exec    func(sql string, args ...any)
	tenant  envelope.TenantID
	account uuid.UUID
	now     time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	db := dbtest.Tx(t)
	f := &fixture{t: t, db: db, tenant: envelope.TenantID(uuid.Must(uuid.NewV7())), account: uuid.New(), now: time.Date(2026, 11, 27, 8, 0, 0, 0, time.UTC)}
	f.exec = func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql, append([]any{f.tenant.String()}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	f.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1::uuid, 't-' || $1::text)")
	f.exec("INSERT INTO triage_accounts (tenant_id, account_id, name, kind) VALUES ($1, $2, 'work', 'maildir')", f.account)
	return f
}

// message stores a message that was received some time ago. An act of "" means one of
// the owner, and a bucket of "" no decision.
func (f *fixture) message(thread uuid.UUID, ago time.Duration, act, bucket, subject, body string) uuid.UUID {
	f.t.Helper()
	id, at := uuid.Must(uuid.NewV7()), f.now.Add(-ago)
	f.exec(`INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, thread_id, participants, outgoing, sender, sender_name, subject, body, received_at, size)
		VALUES ($1, $2, $3, sha256(convert_to($9, 'UTF8')), $4, '{ann@example.org,tom@example.org}', $5, CASE WHEN $5 THEN 'ann@example.org' ELSE 'tom@example.org' END,
			CASE WHEN $5 THEN 'Ann' ELSE 'Tom' END, $6, $7, $8, 1)`, id, f.account, thread, act == "", subject, body, at, id.String())
	if bucket != "" {
		f.exec(`INSERT INTO triage_decisions (tenant_id, message_id, account_id, run_id, act, category, priority, bucket, cohort, level, confidence, question, decision, signals, prediction, model, received_at)
			VALUES ($1, $2, $3, gen_random_uuid(), $4, 'primary', 'request', $5, 'default', 2, 0.9, false, '{}', '{}', '{}', 'm', $6)`, id, f.account, act, bucket, at)
	}
	return id
}

func (f *fixture) in(do func(tx pgx.Tx) error) {
	f.t.Helper()
	if err := postgres.InTx(f.t.Context(), f.db, postgres.API(f.tenant), do); err != nil {
		f.t.Fatal(err)
	}
}

// owed returns the subjects of the follow-ups, with the side that owes.
func (f *fixture) owed(closed, archiving bool) (subjects []string) {
	f.t.Helper()
	for _, o := range f.followUps(closed, archiving) {
		subjects = append(subjects, o.OwedBy+" "+o.Subject)
	}
	return subjects
}

func (f *fixture) followUps(closed, archiving bool) (all []wire.TriageFollowUp) {
	f.t.Helper()
	f.in(func(tx pgx.Tx) (err error) {
		all, err = followup.List(f.t.Context(), tx, followup.Query{
			Tenant: f.tenant, Account: f.account, Name: "work", Own: []string{"Ann@example.org"}, Zone: brief.Location("Europe/Berlin"), Now: f.now, Closed: closed, ArchivingCloses: archiving,
		})
		return err
	})
	return all
}

func (f *fixture) change(id uuid.UUID, c wire.TriageFollowUpChange) error {
	return postgres.InTx(f.t.Context(), f.db, postgres.API(f.tenant), func(tx pgx.Tx) error {
		return followup.Change(f.t.Context(), tx, f.tenant, id, c, "operator:ann", f.now)
	})
}

// TestFollowUps opens follow-ups in both directions, and closes them in every way.
func TestFollowUps(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	request, promise, question, old := uuid.New(), uuid.New(), uuid.New(), uuid.New()
	asked := f.message(request, 48*time.Hour, "request", "actionable", "offer", "Could you send it by November 30? The last one was of 3 March 2026.")
	f.message(promise, 40*time.Hour, "commit", "informational", "report", "I will send the report on 2 December at 15:00.")
	mine := f.message(question, 30*time.Hour, "", "", "lunch", "Shall we meet?")
	f.exec("UPDATE triage_messages SET awaits = true WHERE tenant_id = $1 AND message_id = $2", mine)
	f.message(old, 100*24*time.Hour, "request", "urgent", "old", "")
	f.message(uuid.New(), time.Hour, "request", "informational", "idle", "")
	f.message(uuid.New(), time.Hour, "fyi", "urgent", "news", "")
	machine := f.message(uuid.New(), time.Hour, "request", "actionable", "machine", "")
	f.exec("UPDATE triage_messages SET automated = true WHERE tenant_id = $1 AND message_id = $2", machine)

	want := []string{"me offer", "them report", "them lunch"}
	if got := f.owed(false, false); !slices.Equal(got, want) {
		t.Fatalf("owed = %q, want %q", got, want)
	}
	all := f.followUps(false, false)
	if o := all[0]; o.DueText != "November 30" || !o.WholeDay || !o.Due.Equal(instant(t, "2026-11-30T22:59:59Z")) || o.With != "tom@example.org" {
		t.Errorf("the request is %+v, due %v", o, o.Due)
	}
	if o := all[1]; o.DueText != "2 December at 15:00" || o.WholeDay || !o.Due.Equal(instant(t, "2026-12-02T14:00:00Z")) {
		t.Errorf("the promise is %+v, due %v", o, o.Due)
	}
	if o := all[2]; o.With != "tom@example.org" || o.Due != nil || o.Because != "question" {
		t.Errorf("the question is %+v", o)
	}

	// The other side writes again: the request stays, the promise is kept.
	f.message(request, 20*time.Hour, "fyi", "informational", "more", "")
	f.message(promise, 20*time.Hour, "deliver", "informational", "here", "")
	if got := f.owed(false, false); !slices.Equal(got, []string{"me offer", "them lunch"}) {
		t.Errorf("owed after mail of others = %q", got)
	}
	// Commands: done, open again, later, and over.
	for _, step := range []struct {
		c    wire.TriageFollowUpChange
		want []string
	}{
		{wire.TriageFollowUpChange{Done: new(true)}, []string{"them lunch"}},
		{wire.TriageFollowUpChange{Done: new(true)}, []string{"them lunch"}},
		{wire.TriageFollowUpChange{Done: new(false)}, []string{"me offer", "them lunch"}},
		{wire.TriageFollowUpChange{LaterUntil: new(f.now.Add(time.Hour))}, []string{"them lunch"}},
	} {
		if err := f.change(asked, step.c); err != nil {
			t.Fatal(err)
		}
		if got := f.owed(false, false); !slices.Equal(got, step.want) {
			t.Errorf("owed after %+v = %q, want %q", step.c, got, step.want)
		}
	}
	if got := f.owed(true, false); !slices.Equal(got, []string{"me offer", "them lunch"}) {
		t.Errorf("owed with those that are put off = %q", got)
	}
	f.now = f.now.Add(2 * time.Hour)
	if got := f.owed(false, false); !slices.Equal(got, []string{"me offer", "them lunch"}) {
		t.Errorf("owed when later is over = %q", got)
	}
	// Archiving closes by choice alone.
	f.exec("UPDATE triage_messages SET left_at = now() WHERE tenant_id = $1 AND message_id = $2", asked)
	if got := f.owed(false, true); !slices.Equal(got, []string{"them lunch"}) {
		t.Errorf("owed after archiving = %q", got)
	}
	// A closed follow-up does not close a later request of the thread.
	if err := f.change(asked, wire.TriageFollowUpChange{Done: new(true)}); err != nil {
		t.Fatal(err)
	}
	f.message(request, time.Hour, "request", "urgent", "again", "")
	if got := f.owed(false, false); !slices.Equal(got, []string{"them lunch", "me again"}) {
		t.Errorf("owed after another request = %q", got)
	}
	// The owner answers.
	f.message(request, 0, "", "", "yes", "")
	if got := f.owed(true, false); !slices.Equal(got, []string{"them lunch"}) {
		t.Errorf("owed after the answer = %q", got)
	}
}

// TestChangesOfFollowUpsAreChecked rejects changes of nothing, of both, of the past,
// and of messages of another tenant.
func TestChangesOfFollowUpsAreChecked(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.message(uuid.New(), time.Hour, "request", "urgent", "offer", "")
	for _, c := range []wire.TriageFollowUpChange{
		{}, {Done: new(true), LaterUntil: new(f.now.Add(time.Hour))}, {LaterUntil: &f.now}, {LaterUntil: new(f.now.AddDate(2, 0, 0))},
	} {
		if err := f.change(id, c); !errors.Is(err, fault.Invalid) {
			t.Errorf("Change(%+v) = %v", c, err)
		}
	}
	if err := f.change(uuid.New(), wire.TriageFollowUpChange{Done: new(true)}); !errors.Is(err, fault.NotFound) {
		t.Errorf("a follow-up of no message: %v", err)
	}
	other := newFixture(t)
	if err := postgres.InTx(t.Context(), f.db, postgres.API(other.tenant), func(tx pgx.Tx) error {
		return followup.Change(t.Context(), tx, other.tenant, id, wire.TriageFollowUpChange{Done: new(true)}, "operator:eve", f.now)
	}); !errors.Is(err, fault.NotFound) {
		t.Errorf("another tenant's change: %v", err)
	}
}

// TestRead makes a brief with and without mail.
func TestRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 12 {
		f.message(uuid.New(), time.Hour, "request", "actionable", "please sign", "SECRETBODY by 30 November")
	}
	f.message(uuid.New(), 2*time.Hour, "fyi", "urgent", "the site is down", "SECRETBODY")
	f.message(uuid.New(), 2*time.Hour, "fyi", "archived", "bulk", "SECRETBODY")
	f.message(uuid.New(), 2*time.Hour, "fyi", "", "undecided", "SECRETBODY")
	f.message(uuid.New(), 30*time.Hour, "fyi", "urgent", "yesterday", "SECRETBODY")
	moved := f.message(uuid.New(), 50*time.Hour, "fyi", "archived", "moved", "SECRETBODY")
	f.exec("UPDATE triage_messages SET left_at = $3 WHERE tenant_id = $1 AND message_id = $2", moved, f.now.Add(-time.Minute))
	f.exec("INSERT INTO triage_folders (tenant_id, account_id, folder, use) VALUES ($1, $2, 'Archive', 'archive')", f.account)
	f.exec("INSERT INTO triage_locations (tenant_id, account_id, folder, key, message_id) VALUES ($1, $2, 'Archive', '1', $3)", f.account, moved)

	read := func(settings *brief.Settings) (b wire.TriageBrief) {
		f.in(func(tx pgx.Tx) error {
			about, err := brief.Of(t.Context(), tx, f.tenant, f.account, settings, time.Time{}, f.now)
			if err != nil {
				return err
			}
			about.Name = "work"
			b, err = brief.Read(t.Context(), tx, about)
			return err
		})
		return b
	}
	b := read(&brief.Settings{Zone: "Asia/Tokyo", ShowMail: true})
	if b.Total != 15 || b.Attention.Total != 13 || len(b.Attention.Items) != 10 || b.Attention.Items[0].Subject != "the site is down" || b.Owed.Total != 12 || len(b.Owed.Items) != 10 {
		t.Errorf("the brief has %d messages, attention %d/%d, owed %d/%d", b.Total, len(b.Attention.Items), b.Attention.Total, len(b.Owed.Items), b.Owed.Total)
	}
	sum := 0
	for _, c := range b.Buckets {
		sum += c.Count
	}
	if sum != b.Total || b.Buckets[4].Name != "undecided" || len(b.Moved) != 1 || b.Moved[0] != (wire.TriageBriefCount{Name: "archived", Count: 1}) {
		t.Errorf("buckets %+v of %d, moved %+v", b.Buckets, b.Total, b.Moved)
	}
	if b.Kind != "evening" || b.Zone != "Asia/Tokyo" {
		t.Errorf("a brief at 17:00 in Tokyo is of the %s, in %s", b.Kind, b.Zone)
	}
	without := read(nil)
	if without.Kind != "morning" || without.Zone != "UTC" || without.Attention.Total != 13 {
		t.Errorf("a brief of a tenant in UTC is of the %s, in %s, with %d", without.Kind, without.Zone, without.Attention.Total)
	}
	for _, b := range []wire.TriageBrief{b, without} {
		data, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data) + brief.Text(b)
		if strings.Contains(text, "SECRETBODY") || !b.ShowsMail && (strings.Contains(text, "sign") || strings.Contains(text, "tom@")) {
			t.Errorf("text of mail shows:\n%s", text)
		}
	}
}
