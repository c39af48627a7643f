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

// TestPromises has the owner's promises as follow-ups until a later mail has the promised
// thing or the owner closes them, with days by the sender's clock.
func TestPromises(t *testing.T) {
	t.Parallel()
	f := newFixture(t) // Friday 27 November, 08:00 UTC
	report, offer, call := uuid.New(), uuid.New(), uuid.New()
	f.message(report, 30*time.Hour, "request", "actionable", "asked", "Please send the report.")
	mine := f.message(report, 29*time.Hour, "", "", "report", "I will send it by Monday.")
	f.exec("UPDATE triage_messages SET promises = true, sent_at = received_at, sent_offset = 3600 WHERE tenant_id = $1 AND message_id = $2", mine)
	asked := f.message(offer, 10*time.Hour, "request", "urgent", "offer", "Can we have it until tomorrow? See you on 20 December.")
	// Thursday 22:00 UTC is Friday 08:00 in Brisbane: tomorrow is Saturday there.
	f.exec("UPDATE triage_messages SET sent_at = received_at, sent_offset = 36000 WHERE tenant_id = $1 AND message_id = $2", asked)
	lies := f.message(call, 10*time.Hour, "request", "urgent", "lies", "Answer by Monday.")
	f.exec("UPDATE triage_messages SET sent_at = received_at + interval '30 days', sent_offset = 0 WHERE tenant_id = $1 AND message_id = $2", lies)

	var got []string
	for _, o := range f.followUps(false, false) {
		text := o.OwedBy + " " + o.Because + " " + o.Subject
		if o.Due != nil {
			text += " " + o.DueText + " " + o.Due.Format(time.DateTime)
		}
		got = append(got, text)
	}
	want := []string{"me request offer until tomorrow 2026-11-28 22:59:59", "me commit report by Monday 2026-11-30 22:59:59", "me request lies"}
	if !slices.Equal(got, want) {
		t.Errorf("owed = %q, want %q", got, want)
	}
	f.message(report, 5*time.Hour, "", "", "thanks", "Thanks for waiting.")
	f.message(report, 4*time.Hour, "fyi", "informational", "waits", "Fine.")
	if got := f.owed(false, false); !slices.Equal(got, []string{"me offer", "me report", "me lies"}) {
		t.Errorf("owed after another mail = %q", got)
	}
	if err := f.change(mine, wire.TriageFollowUpChange{Done: new(true)}); err != nil {
		t.Fatal(err)
	}
	if got := f.owed(false, false); !slices.Equal(got, []string{"me offer", "me lies"}) {
		t.Errorf("owed after the owner closed it = %q", got)
	}
	if err := f.change(mine, wire.TriageFollowUpChange{Done: new(false)}); err != nil {
		t.Fatal(err)
	}
	done := f.message(report, 3*time.Hour, "", "", "here", "Here is the report.")
	f.exec("UPDATE triage_messages SET delivers = true WHERE tenant_id = $1 AND message_id = $2", done)
	if got := f.owed(true, false); !slices.Equal(got, []string{"me offer", "me lies"}) {
		t.Errorf("owed after the promised thing = %q", got)
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

// read makes a brief of the last 24 hours.
func (f *fixture) read(settings *brief.Settings) (b wire.TriageBrief) {
	f.t.Helper()
	f.in(func(tx pgx.Tx) error {
		about, err := brief.Of(f.t.Context(), tx, f.tenant, f.account, settings, time.Time{}, f.now)
		if err != nil {
			return err
		}
		about.Name = "work"
		b, err = brief.Read(f.t.Context(), tx, about)
		return err
	})
	return b
}

// finding stores a finding in a message.
func (f *fixture) finding(message uuid.UUID, kind, key string, sequence int, cancels bool, starts, ends, fields string) {
	f.t.Helper()
	f.exec(`INSERT INTO triage_findings (tenant_id, message_id, finding_no, account_id, kind, key, sequence, cancels, starts_at, ends_at, fields)
		SELECT $1, $2, 1 + count(1), $3, $4, $5, $6, $7, nullif($8, '')::timestamptz, nullif($9, '')::timestamptz, $10::jsonb FROM triage_findings WHERE tenant_id = $1 AND message_id = $2`,
		message, f.account, kind, key, sequence, cancels, starts, ends, fields)
}

// TestFindings has findings of the time and of the next two days in briefs, without
// those that are over, cancelled, moved or fraudulent, and without sentences of mail.
func TestFindings(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	field := func(name, value, part string) string {
		return `{"name":"` + name + `","value":"` + value + `","part":"` + part + `"}`
	}
	event := func(title string) string { return "[" + field("summary", title, "icalendar") + "]" }
	mail := func(ago time.Duration) uuid.UUID {
		return f.message(uuid.New(), ago, "fyi", "informational", "Contract", "")
	}
	f.finding(mail(time.Hour), "receipt", "", 0, false, "2026-11-01T00:00:00Z", "", "["+field("merchant", "Bike Shop", "header")+","+field("amount", "45.00", "body")+","+field("currency", "EUR", "body")+","+field("date", "2026-11-01", "body")+"]")
	f.finding(mail(30*time.Hour), "receipt", "", 0, false, "2026-11-27T00:00:00Z", "", "["+field("merchant", "Yesterday", "header")+"]")
	f.finding(mail(time.Hour), "task", "", 0, false, "2026-12-03T23:00:00Z", "", "["+field("summary", "Please send SECRETBODY", "body")+","+field("due", "2026-12-04", "body")+"]")
	f.finding(mail(time.Hour), "contact", "", 0, false, "", "", "["+field("name", "NOBODY", "body")+"]")
	f.finding(mail(40*24*time.Hour), "travel", "", 0, false, "2026-11-28T09:00:00Z", "2026-11-28T11:00:00Z", "["+field("mode", "flight", "body")+","+field("number", "LH123", "body")+","+field("from", "FRA", "body")+","+field("to", "JFK", "body")+"]")
	f.finding(mail(40*24*time.Hour), "travel", "", 0, false, "2026-11-30T09:00:00Z", "", "["+field("mode", "LATER", "body")+"]")
	// Meetings: one today, one that is over, one moved to today, one moved away from
	// today, and one that is cancelled.
	f.finding(mail(50*time.Hour), "meeting", "a", 0, false, "2026-11-27T09:00:00Z", "2026-11-27T10:00:00Z", event("Standup"))
	f.finding(mail(50*time.Hour), "meeting", "b", 0, false, "2026-11-27T06:00:00Z", "2026-11-27T07:00:00Z", event("OVER"))
	f.finding(mail(50*time.Hour), "meeting", "c", 0, false, "2026-11-27T10:00:00Z", "2026-11-27T11:00:00Z", event("MOVED"))
	f.finding(mail(49*time.Hour), "meeting", "c", 1, false, "2026-11-27T12:00:00Z", "2026-11-27T13:00:00Z", event("Review"))
	f.finding(mail(50*time.Hour), "meeting", "d", 0, false, "2026-11-27T10:00:00Z", "2026-11-27T11:00:00Z", event("AWAY"))
	f.finding(mail(49*time.Hour), "meeting", "d", 1, false, "2027-01-27T10:00:00Z", "2027-01-27T11:00:00Z", event("FAR"))
	f.finding(mail(50*time.Hour), "meeting", "e", 0, false, "2026-11-27T10:00:00Z", "2026-11-27T11:00:00Z", event("DROPPED"))
	f.finding(mail(49*time.Hour), "meeting", "e", 0, true, "2026-11-27T10:00:00Z", "2026-11-27T11:00:00Z", event("DROPPED"))
	// Somebody else's cancellation cancels nothing, and a fraud shows nothing.
	other := mail(48 * time.Hour)
	f.finding(other, "meeting", "a", 9, true, "2026-11-27T09:00:00Z", "", event("EVE"))
	f.exec("UPDATE triage_messages SET sender = 'eve@evil.example' WHERE tenant_id = $1 AND message_id = $2", other)
	fraud := mail(time.Hour)
	f.finding(fraud, "receipt", "", 0, false, "", "", "["+field("merchant", "FRAUD", "header")+"]")
	f.exec(`UPDATE triage_decisions SET signals = '{"phishing": true}' WHERE tenant_id = $1 AND message_id = $2`, fraud)

	b := f.read(&brief.Settings{Zone: "America/New_York", ShowMail: true})

	var got []string
	for _, it := range b.Found.Items {
		got = append(got, it.Kind+" "+it.Text)
	}
	want := []string{"receipt Bike Shop, 45.00 EUR", "meeting Standup", "meeting Review", "travel flight LH123 from FRA to JFK", "task Tom: Contract"}
	if !slices.Equal(got, want) || b.Found.Total != 5 {
		t.Errorf("found %d = %q, want %q", b.Found.Total, got, want)
	}
	text := brief.Text(b)
	for _, part := range []string{"Bike Shop, 45.00 EUR, 1 November\n", "Standup, 27 November 04:00\n", "Tom: Contract, 4 December\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	without := f.read(&brief.Settings{Zone: "America/New_York"})
	if len(without.Found.Items) != 0 || without.Found.Total != 5 || len(without.Found.Kinds) != 4 || without.Found.Kinds[0] != (wire.TriageBriefCount{Name: "meeting", Count: 2}) {
		t.Errorf("without mail: %+v", without.Found)
	}
}

// TestCalendar has the events of the day of the account's zone in briefs, unless they
// were not read for an hour, or from another source or for another zone.
func TestCalendar(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	settings := brief.Settings{Zone: "America/New_York", Calendar: "home", ShowMail: true}
	shows := func(name string, total int, want ...string) {
		t.Helper()
		text := brief.Text(f.read(&settings))
		for _, line := range want {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("%s: no line %q in\n%s", name, line, text)
			}
		}
		if b := f.read(&settings); b.Calendar.Events.Total != total {
			t.Errorf("%s: %d events, want %d", name, b.Calendar.Events.Total, total)
		}
	}
	shows("before the first reading", 0, "  The calendar home is missing: it was not read yet.")
	f.exec(`INSERT INTO triage_calendars (tenant_id, account_id, source_id, zone, tried_at, problem) VALUES ($1, $2, 'home', 'America/New_York', $3, 'the server does not return it (unauthorized)')`, f.account, f.now)
	shows("without a login", 0, "  The calendar home is missing: the server does not return it (unauthorized).")
	f.exec(`UPDATE triage_calendars SET read_at = $2, events = $3 WHERE tenant_id = $1`, f.now.Add(-50*time.Minute), `{"unread":2,"events":[
		{"start":"2026-11-26T05:00:00Z","end":"2026-11-27T05:00:00Z","whole_day":true,"summary":"YESTERDAY"},
		{"start":"2026-11-27T05:00:00Z","end":"2026-11-28T05:00:00Z","whole_day":true,"summary":"SECRET Fair","people":["SECRET@example.org"]},
		{"start":"2026-11-28T04:00:00Z","end":"2026-11-28T06:00:00Z","whole_day":false,"summary":"SECRET Late","location":"Room 4"},
		{"start":"2026-11-28T05:00:00Z","end":"2026-11-28T06:00:00Z","whole_day":false,"summary":"TOMORROW"}]}`)
	shows("with the problem of a later try", 2, "  all day      SECRET Fair", "  23:00–01:00  SECRET Late (Room 4)", "  Events that cannot be read: 2.")
	f.exec("UPDATE triage_calendars SET problem = '' WHERE tenant_id = $1")
	settings.ShowMail = false
	shows("without mail", 2, "  2 events. Events that cannot be read: 2.")
	data, err := json.Marshal(f.read(&settings))
	if err != nil || strings.Contains(string(data), "SECRET") || strings.Contains(brief.Text(f.read(&settings)), "SECRET") {
		t.Errorf("a brief without mail has text of events: %s", data)
	}
	f.now = f.now.Add(20 * time.Minute)
	shows("when no worker runs", 0, "  The calendar home is missing: it was last read on 27 November at 02:10.")
	f.now = f.now.Add(-20 * time.Minute)
	settings.Zone = "UTC"
	shows("in another zone", 0, "  The calendar home is missing: it was not read yet.")
	settings.Zone, settings.Calendar = "America/New_York", "work"
	shows("from another source", 0, "  The calendar work is missing: it was not read yet.")
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

	b := f.read(&brief.Settings{Zone: "Asia/Tokyo", ShowMail: true})
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
	// All follow-ups that are overdue count, not the first ones alone.
	f.now = f.now.AddDate(0, 0, 5)
	if late := f.read(nil); late.Owed.Overdue != 12 || late.Awaited.Overdue != 0 || !strings.Contains(brief.Text(late), "12 answers wait, 12 overdue.") {
		t.Errorf("%d overdue in\n%s", late.Owed.Overdue, brief.Text(late))
	}
	f.now = f.now.AddDate(0, 0, -5)
	if b.Kind != "evening" || b.Zone != "Asia/Tokyo" {
		t.Errorf("a brief at 17:00 in Tokyo is of the %s, in %s", b.Kind, b.Zone)
	}
	without := f.read(nil)
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
