package engine_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/retention"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/inspect"
	"github.com/countersign-dev/countersign/internal/triage/tag"
)

// tagFixture is a fixture whose Maildir has keywords, with the tools of a source dav.
type tagFixture struct{ *fixture }

func newTagFixture(t *testing.T) tagFixture {
	t.Helper()
	f := tagFixture{newFixture(t)}
	keywords := "0 countersign_do_add-contact\n1 Countersign_Do_create-reminder\n2 countersign_do_unheard-of\n"
	if err := os.WriteFile(filepath.Join(f.dir, "dovecot-keywords"), []byte(keywords), 0o600); err != nil {
		t.Fatal(err)
	}
	f.exec("INSERT INTO sources (tenant_id, source_id, kind) VALUES ($1, 'dav', 'dav')", f.tenant.String())
	f.tool("create-reminder", `{"properties":{"summary":{"type":"string"},"start":{"type":"string"},"end":{"type":"string"},"calendar":{"type":"string"},"as":{"enum":["event"]}},"required":["summary","start","end"]}`)
	f.tool("add-contact", `{"properties":{"formatted_name":{"type":"string"},"emails":{"type":"array","items":{"type":"string"}},"phones":{"type":"array","items":{"type":"string"}},
		"organization":{"type":"string"},"title":{"type":"string"}},"required":["formatted_name","emails"]}`)
	return f
}

func (f tagFixture) tool(name, schema string) {
	f.t.Helper()
	f.exec("INSERT INTO tools (tenant_id, source_id, name, input_schema, digest) VALUES ($1, 'dav', $2, $3, 'x')", f.tenant.String(), name, schema)
}

// invoice is a mail that names a person and a date.
func invoice(id string) testMail {
	return testMail{
		id: id, from: "Jane Doe <jane@newcompany.example>", to: owner, subject: "Invoice 1234",
		body: "Dear Mara,\n\nthe payment is due by February 15, 2027.\n\nBest regards,\nJane Doe, CTO at NewCompany\n+49 30 1234567\n\nOn Monday Mara wrote:\n> call me: +1 555 010 9999\n",
	}
}

// tag sets keywords on a delivered message, and removes others.
func (f tagFixture) tag(path, letters string) string {
	f.t.Helper()
	base, _, _ := strings.Cut(path, ":2,")
	if err := os.Rename(path, base+":2,"+letters); err != nil {
		f.t.Fatal(err)
	}
	return base + ":2," + letters
}

// tags returns the tags of a message as action, state, number of the try and
// failures.
func (f tagFixture) tags(headerID string) []string {
	f.t.Helper()
	rows, err := f.db.Query(f.t.Context(), `SELECT format('%s %s %s %s', t.action, t.state, t.try, t.failures) FROM triage_tags t JOIN triage_messages m USING (tenant_id, message_id)
		WHERE m.header_id = $1 ORDER BY t.action`, headerID)
	if err != nil {
		f.t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// wants compares the tags of a message.
func (f tagFixture) wants(headerID string, want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.tags(headerID), cmpopts.EquateEmpty()); diff != "" {
		f.t.Errorf("tags of %s (-want +got):\n%s", headerID, diff)
	}
}

// logged returns the log as action, status and error, oldest first.
func (f tagFixture) logged() (all []string) {
	f.t.Helper()
	rows, err := f.db.Query(f.t.Context(), "SELECT action || ' ' || status || ' ' || error FROM triage_tag_log ORDER BY processed_at, log_id")
	if err == nil {
		all, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// externals returns the names of the open tries, in the order of their messages.
func (f tagFixture) externals() []string {
	f.t.Helper()
	return one[[]string](f.fixture, "SELECT array_agg(t.external_id ORDER BY m.header_id) FROM triage_tags t JOIN triage_messages m USING (tenant_id, message_id) WHERE t.external_id IS NOT NULL")
}

// ended ends the open try of an action, as workers do.
func (f tagFixture) ended(action, status, code string) {
	f.t.Helper()
	f.end(one[string](f.fixture, "SELECT external_id FROM triage_tags WHERE action = $1 AND external_id IS NOT NULL", action), status, code)
}

// end ends a try.
func (f tagFixture) end(external, status, code string) {
	f.t.Helper()
	id := one[uuid.UUID](f.fixture, "SELECT proposal_id FROM triage_proposals WHERE external_id = $1", external)
	if one[int](f.fixture, "SELECT count(1) FROM actions WHERE external_id = $1", external) == 0 {
		f.action(id, external)
		f.exec("INSERT INTO decisions (tenant_id, decision_id, mode, mode_source, trace) VALUES ($1, $2, 'allow', 'default', '[]') ON CONFLICT DO NOTHING", f.tenant.String(), id)
		f.exec("UPDATE actions SET approval_state = 'auto', args = (SELECT envelope -> 'args' FROM triage_proposals WHERE external_id = $1) WHERE external_id = $1", external)
		f.exec("UPDATE proposals SET answered_at = now(), action_id = proposal_id WHERE proposal_id = $1", id)
	}
	f.exec("INSERT INTO tool_executions (tenant_id, action_id, attempt, status, code, finished_at, result) VALUES ($1, $2, 1, $3, nullif($4, ''), clock_timestamp(), '{\"uid\":\"1\"}')",
		f.tenant.String(), id, status, code)
}

// args returns the arguments of the latest proposal of an action.
func (f tagFixture) args(tool string) string {
	f.t.Helper()
	return one[string](f.fixture, "SELECT envelope ->> 'args' FROM triage_proposals WHERE action = 'tag' AND envelope #>> '{tool,name}' = $1 ORDER BY proposed_at DESC LIMIT 1", tool)
}

func TestTagsOfTheMailboxBecomeEnvelopes(t *testing.T) {
	t.Parallel()
	f := newTagFixture(t)
	path := f.deliver("", invoice("1@example.com").raw())
	f.once()
	f.wants("1@example.com")

	f.tag(path, "ab")
	f.once()
	f.once() // the same tries

	f.wants("1@example.com", "add-contact open 1 0", "create-reminder open 1 0")
	if n := one[int](f.fixture, "SELECT count(1) FROM proposals WHERE body::jsonb ->> 'external_id' LIKE 'triage:tag:%'"); n != 2 {
		t.Errorf("%d envelopes, want 2", n)
	}
	for tool, want := range map[string]string{
		"create-reminder": `{"end": "2027-02-15", "start": "2027-02-15", "summary": "Invoice 1234"}`,
		"add-contact":     `{"title": "CTO", "emails": ["jane@newcompany.example"], "phones": ["+49 30 1234567"], "organization": "NewCompany", "formatted_name": "Jane Doe"}`,
	} {
		if got := f.args(tool); got != want {
			t.Errorf("arguments of %s = %s, want %s", tool, got, want)
		}
	}
	if got := one[string](f.fixture, `SELECT string_agg(x ->> 'origin', ' ' ORDER BY x ->> 'pointer') FROM triage_proposals p, jsonb_array_elements(p.fields) x WHERE p.envelope #>> '{tool,name}' = 'add-contact'`); got != "header header span span span" {
		t.Errorf("origins of the contact = %s", got)
	}

	f.ended("add-contact", "sent", "")
	f.ended("create-reminder", "failed", "rejected")
	f.once()

	f.wants("1@example.com", "add-contact gone 2 0", "create-reminder open 2 1")
	if diff := cmp.Diff([]string{"add-contact success ", "create-reminder failed rejected"}, f.logged()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	if got := one[string](f.fixture, "SELECT result ->> 'uid' || ' ' || jsonb_array_length(extracted) || ' ' || source_id || ':' || tool_name FROM triage_tag_log WHERE status = 'success'"); got != "1 5 dav:add-contact" {
		t.Errorf("the log of the contact has %s", got)
	}
}

// TestTryIsOneEnvelope has a try wait, become unknown, and fail three times.
func TestTryIsOneEnvelope(t *testing.T) {
	t.Parallel()
	f := newTagFixture(t)
	path := f.tag(f.deliver("", invoice("1@example.com").raw()), "b")
	f.once()
	f.wants("1@example.com", "create-reminder open 1 0")

	f.ended("create-reminder", "unknown", "lost")
	f.once()
	f.wants("1@example.com", "create-reminder open 1 0")
	f.ended("create-reminder", "failed", "resolved")
	f.once()
	f.wants("1@example.com", "create-reminder open 2 1")
	for range 2 {
		f.ended("create-reminder", "failed", "rejected")
		f.once()
	}
	f.wants("1@example.com", "create-reminder skipped 4 3")
	f.once()
	f.wants("1@example.com", "create-reminder skipped 4 3")

	path = f.tag(path, "")
	f.once()
	f.wants("1@example.com", "create-reminder gone 4 0")
	f.tag(path, "b")
	f.once()
	f.wants("1@example.com", "create-reminder open 4 0")
	f.ended("create-reminder", "skipped", "undone")
	f.once()
	f.wants("1@example.com", "create-reminder skipped 5 0")
}

// change changes the tag of the only message as a person does.
func (f tagFixture) change(event tag.Event) {
	f.t.Helper()
	c := inspect.TagChange{Message: one[uuid.UUID](f.fixture, "SELECT message_id FROM triage_messages"), Action: "create-reminder", Event: event, NamesOperator: true, Actor: "ann"}
	err := postgres.InTx(f.t.Context(), f.db, postgres.API(f.tenant), func(tx pgx.Tx) error {
		_, err := inspect.ChangeTag(f.t.Context(), tx, f.tenant, c)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// TestPeopleAndKeywordsChangeOneTag has a person put a tag back whose keyword was removed,
// and remove one whose keyword stays: neither begins a second try.
func TestPeopleAndKeywordsChangeOneTag(t *testing.T) {
	t.Parallel()
	f := newTagFixture(t)
	path := f.tag(f.deliver("", invoice("1@example.com").raw()), "b")
	f.once()
	for range tag.MaxFailures {
		f.ended("create-reminder", "failed", "rejected")
		f.once()
	}
	f.wants("1@example.com", "create-reminder skipped 4 3")
	path = f.tag(path, "")
	f.once()
	f.wants("1@example.com", "create-reminder gone 4 0")

	f.change(tag.Retried)
	f.wants("1@example.com", "create-reminder due 4 0")
	f.once()
	f.wants("1@example.com", "create-reminder open 4 0")
	f.tag(path, "b")
	f.once()
	f.wants("1@example.com", "create-reminder open 4 0")
	f.change(tag.Untagged)
	f.ended("create-reminder", "sent", "")
	f.once()
	f.once()
	f.wants("1@example.com", "create-reminder gone 5 0")

	f.change(tag.Tagged)
	f.change(tag.Untagged)
	f.once()
	f.wants("1@example.com", "create-reminder gone 5 0")
	if n := one[int](f.fixture, "SELECT count(1) FROM triage_proposals WHERE action = 'tag'"); n != 4 {
		t.Errorf("%d tries, want 4", n)
	}
}

// TestReplayedTryStaysOpen has a round of triage begin while a person replays the
// dead letter of the open try.
func TestReplayedTryStaysOpen(t *testing.T) {
	t.Parallel()
	f := newTagFixture(t)
	f.tag(f.deliver("", invoice("1@example.com").raw()), "b")
	f.once()
	id := one[uuid.UUID](f.fixture, "SELECT proposal_id FROM triage_proposals WHERE action = 'tag'")
	f.ended("create-reminder", "failed", "rejected")
	ended := make(chan error, 1)

	err := postgres.InTx(t.Context(), f.db, postgres.API(f.tenant), func(tx pgx.Tx) error {
		// As package deadletter does.
		_, err := tx.Exec(t.Context(), "SELECT FROM triage_tags WHERE external_id IS NOT NULL FOR SHARE")
		if err == nil {
			_, err = tx.Exec(t.Context(), `INSERT INTO outbox (tenant_id, action_id, bucket_id, next_attempt_at, fence, attempt, max_attempts)
				SELECT tenant_id, action_id, bucket_id, now(), 1, 1, 2 FROM actions WHERE action_id = $1`, id)
		}
		if err != nil {
			return err
		}
		e := f.engine(nil)
		go func() { ended <- e.Once(t.Context()) }()
		f.until("SELECT EXISTS (SELECT FROM pg_stat_activity WHERE usename = $1 AND wait_event_type = 'Lock')", f.login.Config().ConnConfig.User)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}

	f.wants("1@example.com", "create-reminder open 1 0")
}

// TestTagOfAMovedMessageIsNotRepeated moves a message whose tag is done and still a
// keyword.
func TestTagOfAMovedMessageIsNotRepeated(t *testing.T) {
	t.Parallel()
	f := newTagFixture(t)
	path := f.tag(f.deliver("", invoice("1@example.com").raw()), "b")
	f.once()
	f.ended("create-reminder", "conflict", "conflict")
	f.once()
	f.wants("1@example.com", "create-reminder gone 2 0")
	f.put("work", func(a *account.Account) { a.Connection.Folders = []string{"INBOX", "Archive"} })
	if err := os.WriteFile(filepath.Join(f.dir, ".Archive", "dovecot-keywords"), []byte("1 countersign_do_create-reminder\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.once()

	if err := os.Rename(path, filepath.Join(f.dir, ".Archive", "cur", filepath.Base(path))); err != nil {
		t.Fatal(err)
	}
	f.once()
	f.once()

	f.wants("1@example.com", "create-reminder gone 2 0")
}

// TestSendersCannotTag delivers headers that would be tags, to the kinds of
// account in which a sender writes keywords.
func TestSendersCannotTag(t *testing.T) {
	t.Parallel()
	f := newTagFixture(t)
	mail := invoice("1@example.com")
	mail.headers = "X-Keywords: countersign_do_create-reminder\nX-Status: F\nKeywords: countersign_do_add-contact\nX-IMAP: 1 2 countersign_do_add-contact\n"
	file := filepath.Join(t.TempDir(), "mbox")
	if err := os.WriteFile(file, []byte("From jane@newcompany.example Thu Mar  5 16:23:00 2026\n"+mail.raw()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.put("box", func(a *account.Account) { a.Kind, a.Connection = account.Mbox, account.Connection{Path: file} })
	f.deliver("", mail.raw())

	f.once()

	if n := one[int](f.fixture, "SELECT count(1) FROM triage_messages"); n != 2 {
		t.Errorf("%d messages, want 2", n)
	}
	if n := one[int](f.fixture, "SELECT count(1) FROM triage_tags"); n != 0 {
		t.Errorf("%d tags of headers, want none", n)
	}
	// A reader that took keywords from headers would tag nothing either.
	const keywords = "UPDATE triage_locations SET tagged = true, flags = '{countersign_do_create-reminder}' WHERE account_id = (SELECT account_id FROM triage_accounts WHERE name = $1)"
	f.exec(keywords, "box")
	f.once()
	if n := one[int](f.fixture, "SELECT count(1) FROM triage_tags"); n != 0 {
		t.Errorf("%d tags of keywords of an mbox, want none", n)
	}
	f.exec(keywords, "work")
	f.once()
	if n := one[int](f.fixture, "SELECT count(1) FROM triage_tags"); n != 1 {
		t.Errorf("%d tags of the Maildir, want 1: else the test shows nothing", n)
	}
}

// TestMissingToolsAndUnreachableSources checks that neither counts as a failure.
func TestMissingToolsAndUnreachableSources(t *testing.T) {
	t.Parallel()
	f := newTagFixture(t)
	f.exec("UPDATE tools SET gone_at = now() WHERE name = 'add-contact'")
	f.tag(f.deliver("", invoice("1@example.com").raw()), "ac")

	f.once()
	f.once()

	f.wants("1@example.com", "add-contact due 1 0", "unheard-of due 1 0")
	want := []string{"add-contact skipped no tool dav:add-contact", "unheard-of skipped no action unheard-of"}
	if diff := cmp.Diff(want, f.logged()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}

	f.exec("UPDATE tools SET gone_at = NULL")
	f.exec("UPDATE sources SET list_failures = 1")
	f.once()
	f.wants("1@example.com", "add-contact due 1 0", "unheard-of due 1 0")
	if n := len(f.logged()); n != 2 {
		t.Errorf("%d rows of the log while the source is unreachable, want 2", n)
	}
	f.exec("UPDATE sources SET list_failures = 0")
	f.once()
	f.wants("1@example.com", "add-contact open 1 0", "unheard-of due 1 0")
}

// TestIncompleteIsAFailure has no date for a reminder.
func TestIncompleteIsAFailure(t *testing.T) {
	t.Parallel()
	f := newTagFixture(t)
	mail := invoice("1@example.com")
	mail.body = "Could you call me, please?"
	f.tag(f.deliver("", mail.raw()), "b")

	for range 5 {
		f.once()
	}

	f.wants("1@example.com", "create-reminder skipped 4 3")
	for _, row := range f.logged() {
		if row != "create-reminder failed the message has no value for end, start" {
			t.Errorf("the log has %s", row)
		}
	}
}

// TestDefaultsWinAndRoundsAreBounded checks the configuration of actions.
func TestDefaultsWinAndRoundsAreBounded(t *testing.T) {
	t.Parallel()
	f := newTagFixture(t)
	f.put("work", func(a *account.Account) {
		a.Proposals.MaxActions = 2
		a.Proposals.Actions = map[string]tag.Action{tag.CreateReminder: {
			Source: "dav", Tool: tag.CreateReminder, DefaultArgs: map[string]json.RawMessage{
				"summary": json.RawMessage(`"Pay"`), "calendar": json.RawMessage(`"Family"`),
				"whole": json.RawMessage(`true`), "alarms": json.RawMessage(`[15, 2.50]`), "style": json.RawMessage(`{"color": "red", "rank": 9007199254740993, "of": [{"a": false}]}`),
			},
		}}
	})
	for i := range 5 {
		mail := invoice(fmt.Sprintf("%d@example.com", i))
		mail.subject = fmt.Sprint("Invoice ", i)
		f.tag(f.deliver("", mail.raw()), "b")
	}

	f.once()

	if n := one[int](f.fixture, "SELECT count(1) FROM triage_tags WHERE state = 'open'"); n != 2 {
		t.Errorf("%d tries in a round, want 2", n)
	}
	if got := f.args("create-reminder"); got != `{"end": "2027-02-15", "start": "2027-02-15", "style": {"of": [{"a": false}], "rank": 9007199254740993, "color": "red"}, "whole": true, "alarms": [15, 2.50], "summary": "Pay", "calendar": "Family"}` {
		t.Errorf("arguments = %s, want those of the configuration", got)
	}
	f.once()
	f.once()
	if n := one[int](f.fixture, "SELECT count(1) FROM triage_tags WHERE state = 'open'"); n != 5 {
		t.Errorf("%d tries after three rounds, want 5", n)
	}
}

// TestModelsChooseAndWriteNothing has a model answer with a part of the message and
// with a text of its own.
func TestModelsChooseAndWriteNothing(t *testing.T) {
	t.Parallel()
	f := newTagFixture(t)
	mail := invoice("1@example.com")
	mail.body = "The fair is from March 3, 2027 on. Please pay 100 EUR by May 5, 2027."
	f.tag(f.deliver("", mail.raw()), "b")
	w := &chooser{answers: map[string]string{"summary": "Please pay 100 EUR", "start": "May 5, 2027", "end": "June 7, 2027", "calendar": "evil"}}

	f.withWriter(w)

	if got := f.args("create-reminder"); got != `{"end": "2027-03-03", "start": "2027-05-05", "summary": "Please pay 100 EUR"}` {
		t.Errorf("arguments = %s, want parts of the message alone", got)
	}
}

// argumentPlaces are queries of the places that hold the arguments of tries.
func argumentPlaces() []string {
	return []string{
		"SELECT coalesce(string_agg(args::text, ' '), '') FROM actions", "SELECT coalesce(string_agg(body, ' '), '') FROM proposals WHERE body LIKE '%add-contact%'",
		"SELECT coalesce(string_agg(concat(envelope, fields), ' '), '') FROM triage_proposals WHERE action = 'tag'", "SELECT coalesce(string_agg(extracted::text, ' '), '') FROM triage_tag_log",
	}
}

// erased fails unless the telephone number of the invoice is nowhere among the
// arguments of tries.
func (f tagFixture) erased() {
	f.t.Helper()
	for _, sql := range argumentPlaces() {
		if got := one[string](f.fixture, sql); strings.Contains(got, "1234567") {
			f.t.Errorf("%s = %s, want it erased", sql, got)
		}
	}
}

// sweep deletes old data, as the workers do.
func (f tagFixture) sweep() {
	f.t.Helper()
	if _, err := retention.Sweep(f.t.Context(), f.db, func() bool { return true }); err != nil {
		f.t.Fatal(err)
	}
}

// TestArgumentsAreErased makes the log old, and then switches the account off, with a
// try that ended since.
func TestArgumentsAreErased(t *testing.T) {
	t.Parallel()
	f := newTagFixture(t)
	f.tag(f.deliver("", invoice("1@example.com").raw()), "a")
	f.once()
	f.ended("add-contact", "sent", "")
	f.once()
	for _, sql := range argumentPlaces() {
		if !strings.Contains(one[string](f.fixture, sql), "1234567") {
			t.Errorf("%s has no telephone number, so that the test shows nothing", sql)
		}
	}

	f.put("work", func(a *account.Account) { a.Enabled = false })
	f.exec("UPDATE triage_tag_log SET processed_at = now() - interval '91 days'")
	f.sweep()

	f.erased()
	f.wants("1@example.com", "add-contact gone 2 0")
	f.put("work", func(a *account.Account) { a.Enabled = true })
	f.tag(f.deliver("", invoice("2@example.com").raw()), "a")
	f.tag(f.deliver("", invoice("3@example.com").raw()), "a")
	f.once()
	f.exec("UPDATE triage_proposals SET proposed_at = now() - interval '91 days'")
	f.sweep()
	if n := one[int](f.fixture, "SELECT count(1) FROM triage_proposals WHERE fields::text LIKE '%1234567%'"); n != 2 {
		t.Errorf("the arguments of %d tries are left, want those of 2 that have not ended", n)
	}

	// The account is switched off before triage takes the end of the try.
	f.put("work", func(a *account.Account) { a.Enabled = false })
	for _, external := range f.externals() {
		f.end(external, "failed", "rejected")
	}
	f.sweep()

	f.erased()
	f.put("work", func(a *account.Account) { a.Enabled = true })
	f.once()
	f.wants("2@example.com", "add-contact open 2 1")
}

// TestPurgeErasesArgumentsOfTries purges an account with a try in the record.
func TestPurgeErasesArgumentsOfTries(t *testing.T) {
	t.Parallel()
	f := newTagFixture(t)
	f.tag(f.deliver("", invoice("1@example.com").raw()), "a")
	f.once()
	f.ended("add-contact", "sent", "")
	f.once()
	f.put("work", func(a *account.Account) { a.Enabled = false })

	p, err := f.purge()

	if err != nil || !p.Done || p.Rows.Tags != 1 || p.Rows.Tries != 1 {
		t.Errorf("Purge = %+v, %v, want all, with 1 tag and 1 try", p, err)
	}
	f.erased()
	if n := one[int](f.fixture, "SELECT count(1) FROM actions WHERE args = '{}'"); n != 1 {
		t.Errorf("%d actions without arguments, want the try in the record", n)
	}
}

// TestTriesAreOfTags inserts proposals of tags that nobody set, with the login of triage.
func TestTriesAreOfTags(t *testing.T) {
	t.Parallel()
	f := newTagFixture(t)
	f.tag(f.deliver("", invoice("1@example.com").raw()), "b")
	f.once()
	external := one[string](f.fixture, "SELECT external_id FROM triage_tags")
	f.exec("ALTER TABLE triage_proposals DISABLE TRIGGER triage_proposals_try")
	f.exec("DELETE FROM triage_proposals WHERE action = 'tag'")
	f.exec("ALTER TABLE triage_proposals ENABLE TRIGGER triage_proposals_try")
	for name, test := range map[string]struct {
		external, source, tool, origin string
		ok                             bool
	}{
		"the try":             {external, "dav", "create-reminder", "span", true},
		"another name":        {"triage:tag:" + strings.Repeat("0", 64), "dav", "create-reminder", "span", false},
		"another tool":        {external, "dav", "add-contact", "span", false},
		"another source":      {external, "mail", "create-reminder", "span", false},
		"text of a model":     {external, "dav", "create-reminder", "model_text", false},
		"a text as a number":  {external, "dav", "create-reminder", "literal", false},
		"a name of no tag":    {"triage:" + strings.Repeat("0", 64), "dav", "create-reminder", "span", false},
		"an argument without": {external, "dav", "create-reminder", "", false},
	} {
		fields := `[{"pointer":"/summary","value":"Pay","origin":"` + test.origin + `"}]`
		if test.origin == "" {
			fields = `[]`
		}
		envelope, err := json.Marshal(map[string]any{
			"type": "mcp.exec", "external_id": test.external, "args": map[string]string{"summary": "Pay"}, "tool": map[string]string{"source": test.source, "name": test.tool},
		})
		if err != nil {
			t.Fatal(err)
		}
		tx, err := f.login.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = tx.Exec(t.Context(), "SET LOCAL search_path = pg_catalog, countersign_data, pg_temp")
		if err == nil {
			_, err = tx.Exec(t.Context(), `INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, fields, envelope)
				SELECT tenant_id, $1, account_id, message_id, 'tag', $2, $3 FROM triage_messages`, test.external, fields, string(envelope))
		}
		if _ = tx.Rollback(t.Context()); (err == nil) != test.ok {
			t.Errorf("%s: INSERT = %v, want it to be accepted: %t", name, err, test.ok)
		}
	}
}
