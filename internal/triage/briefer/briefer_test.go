package briefer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/brief"
	"github.com/countersign-dev/countersign/internal/triage/briefer"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/lease"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// fixture is a tenant with an account whose briefs go to its owner and to Slack.
type fixture struct {
	t       *testing.T
	db      *pgxpool.Pool
	login   *pgxpool.Pool
	tenant  envelope.TenantID
	account uuid.UUID
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, db: dbtest.DB(t), tenant: envelope.TenantID(uuid.Must(uuid.NewV7())), account: uuid.Must(uuid.NewV7())}
	name := "brief_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	f.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", f.tenant.String(), "t-"+f.tenant.String())
	f.exec("CREATE ROLE " + name + " LOGIN PASSWORD '" + name + "' IN ROLE countersign_triage")
	t.Cleanup(func() {
		if _, err := f.db.Exec(context.WithoutCancel(t.Context()), "DROP ROLE "+name); err != nil {
			t.Error(err)
		}
	})
	f.exec("INSERT INTO db_logins (tenant_id, login_id, login) VALUES ($1, $2, $3)", f.tenant.String(), uuid.Must(uuid.NewV7()), name)
	config := f.db.Config()
	config.ConnConfig.User, config.ConnConfig.Password, config.MaxConns = name, name, 6
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	f.login = pool
	f.put(func(*brief.Settings) {})
	return f
}

// put stores the account, whose morning brief was due a minute ago.
func (f *fixture) put(change func(*brief.Settings)) {
	f.t.Helper()
	s := brief.Settings{
		Zone: "UTC", Morning: one[time.Time](f, "SELECT now()").UTC().Add(-time.Minute).Format("15:04"),
		Channels: []brief.Channel{{To: "ann@example.org"}, {Source: "slack", Channel: "C1"}, {Source: "hook"}},
	}
	change(&s)
	if err := postgres.InTx(f.t.Context(), f.db, postgres.API(f.tenant), func(tx pgx.Tx) error {
		return account.Put(f.t.Context(), tx, f.tenant, account.Account{
			ID: f.account, Name: "work", Kind: account.Maildir, Enabled: true, Every: time.Minute, Connection: account.Connection{Path: "/srv/mail"},
			Settings: decide.Settings{Addresses: []string{"ann@example.org"}}, Proposals: plan.Config{Source: "mail", Account: "ann", Brief: &s},
		})
	}); err != nil {
		f.t.Fatal(err)
	}
	f.exec("UPDATE triage_accounts SET updated_at = now() - interval '2 hours'")
}

// urgent stores urgent messages that arrived now.
func (f *fixture) urgent(n int) {
	f.t.Helper()
	for range n {
		id := uuid.Must(uuid.NewV7())
		f.exec(`INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, thread_id, outgoing, sender, subject, body, received_at, size)
			VALUES ($1, $2, $3, sha256(convert_to($4, 'UTF8')), $2, false, 'mila@work.example', 'The site is down', 'SECRETBODY', now(), 1)`, f.tenant.String(), id, f.account, id.String())
		f.exec(`INSERT INTO triage_decisions (tenant_id, message_id, account_id, run_id, act, category, priority, bucket, cohort, level, confidence, question, decision, signals, prediction, model, received_at)
			VALUES ($1, $2, $3, $2, 'fyi', 'primary', 'request', 'urgent', 'vip', 2, 0.9, false, '{}', '{}', '{}', 'm', now())`, f.tenant.String(), id, f.account)
	}
}

func (f *fixture) briefer() *briefer.Briefer {
	f.t.Helper()
	accounts, err := lease.Of(f.t.Context(), f.login, lease.Config{Length: time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.t.Fatal(err)
	}
	return briefer.New(accounts, slog.New(slog.DiscardHandler))
}

func (f *fixture) round() {
	f.t.Helper()
	if err := f.briefer().Round(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.db.Exec(f.t.Context(), sql, args...); err != nil {
		f.t.Fatal(err)
	}
}

func one[T any](f *fixture, sql string, args ...any) (v T) {
	f.t.Helper()
	if err := f.db.QueryRow(f.t.Context(), sql, args...).Scan(&v); err != nil {
		f.t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// proposed returns the texts of the proposals.
func (f *fixture) proposed() (texts []string) {
	f.t.Helper()
	rows, err := f.db.Query(f.t.Context(), "SELECT body FROM proposals ORDER BY proposal_no")
	if err == nil {
		texts, err = pgx.CollectRows(rows, pgx.RowTo[string])
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return texts
}

// TestABriefIsProposedOnce has many processes make a due brief at the same time, and
// again later, with a process that fails between storing and proposing.
func TestABriefIsProposedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.urgent(1)
	f.exec("UPDATE db_logins SET waiting_max = 1")
	if err := f.briefer().Round(t.Context()); err == nil {
		t.Fatal("three messages were proposed where one may wait")
	}
	if n := one[int](f, "SELECT count(*) FROM triage_briefs"); n != 0 {
		t.Fatalf("%d briefs are stored and not proposed", n)
	}
	f.exec("UPDATE db_logins SET waiting_max = 1000")

	var all sync.WaitGroup
	for range 6 {
		b := f.briefer()
		all.Go(func() {
			if err := b.Round(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	f.round()

	texts := f.proposed()
	if len(texts) != 3 || one[int](f, "SELECT count(*) FROM triage_briefs WHERE proposal_id IS NOT NULL") != 3 {
		t.Fatalf("%d messages, want one a channel:\n%s", len(texts), strings.Join(texts, "\n"))
	}
	for i, want := range []string{`"message.brief"`, `"slack.message.send"`, `"slack.webhook.send"`} {
		found := false
		for _, text := range texts {
			found = found || strings.Contains(text, want)
		}
		if !found {
			t.Errorf("no message %d with the tool %s", i, want)
		}
	}
	for _, text := range texts {
		if strings.Contains(text, "SECRETBODY") || strings.Contains(text, "mila") || strings.Contains(text, "site is down") || !strings.Contains(text, "1 message waits") {
			t.Errorf("a brief without mail is\n%s", text)
		}
	}
	var e envelope.Proposal
	if err := json.Unmarshal([]byte(texts[0]), &e); err != nil || e.Constraints.MustRunBefore.IsZero() {
		t.Errorf("the proposal has no deadline: %v", err)
	}
}

// TestABriefAfterAnOutage makes one late brief about three days, and says so.
func TestABriefAfterAnOutage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put(func(s *brief.Settings) {
		s.ShowMail = true
		s.Morning = one[time.Time](f, "SELECT now()").UTC().Add(-time.Hour).Format("15:04")
	})
	f.exec("UPDATE triage_accounts SET updated_at = now() - interval '3 days'")
	f.urgent(1)
	f.round()
	f.round()
	texts := f.proposed()
	if len(texts) != 3 || !strings.Contains(texts[0], "This brief is late") || !strings.Contains(texts[0], "The site is down") || strings.Contains(texts[0], "SECRETBODY") {
		t.Errorf("%d messages after an outage:\n%s", len(texts), strings.Join(texts, "\n"))
	}
}

// TestNoBriefIsMade for an account that is paused, disabled or without due times, or
// that was changed after the time was due.
func TestNoBriefIsMade(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, sql := range map[string]string{
		"disabled": "UPDATE triage_accounts SET enabled = false", "just changed": "UPDATE triage_accounts SET enabled = true, updated_at = now()",
		"without times": `UPDATE triage_accounts SET proposals = proposals #- '{brief,morning}', updated_at = now() - interval '2 days'`,
	} {
		f.put(func(*brief.Settings) {})
		f.exec(sql)
		f.round()
		if texts := f.proposed(); len(texts) != 0 {
			t.Errorf("%s: %d messages", name, len(texts))
		}
	}
}

// TestAlerts sends at most five an hour, then one about the rest.
func TestAlerts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put(func(s *brief.Settings) { s.Morning, s.Alerts = "", true })
	for range 7 {
		f.urgent(1)
		f.round()
		f.round()
	}
	if n := len(f.proposed()); n != 10 {
		t.Fatalf("%d messages, want five to each of two channels", n)
	}
	f.urgent(3)
	f.exec("UPDATE triage_briefs SET due_at = due_at - interval '61 minutes'")
	f.round()
	texts := f.proposed()
	if len(texts) != 12 || !strings.Contains(texts[11], "5 messages wait for you") || strings.Contains(texts[11], "mila") {
		t.Errorf("%d messages; the last is\n%s", len(texts), texts[len(texts)-1])
	}
	// The settings show mail: five are named.
	f.put(func(s *brief.Settings) { s.Morning, s.Alerts, s.ShowMail = "", true, true })
	f.urgent(8)
	f.round()
	texts = f.proposed()
	if last := texts[len(texts)-1]; len(texts) != 14 || !strings.Contains(last, "plus 3 more") || strings.Count(last, "The site is down") != 5 {
		t.Errorf("%d messages; the last is\n%s", len(texts), last)
	}
}

// TestTheDatabaseHasNoOtherChannels rejects what a process of triage that an attacker
// controls would store.
func TestTheDatabaseHasNoOtherChannels(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, test := range map[string]struct {
		tool, args string
		ok         bool
	}{
		"to the owner":         {`{"source":"mail","name":"message.brief"}`, `{"account":"ann","to":"ann@example.org","subject":"s","text":"t"}`, true},
		"to another":           {`{"source":"mail","name":"message.brief"}`, `{"account":"ann","to":"eve@example.org","subject":"s","text":"t"}`, false},
		"to two":               {`{"source":"mail","name":"message.brief"}`, `{"account":"ann","to":["ann@example.org","eve@example.org"],"subject":"s","text":"t"}`, false},
		"without a receiver":   {`{"source":"mail","name":"message.brief"}`, `{"account":"ann","subject":"s","text":"t"}`, false},
		"another account":      {`{"source":"mail","name":"message.brief"}`, `{"account":"bob","to":"ann@example.org","subject":"s","text":"t"}`, false},
		"another source":       {`{"source":"mail2","name":"message.brief"}`, `{"account":"ann","to":"ann@example.org","subject":"s","text":"t"}`, false},
		"with a copy":          {`{"source":"mail","name":"message.brief"}`, `{"account":"ann","to":"ann@example.org","cc":["eve@example.org"],"subject":"s","text":"t"}`, false},
		"another tool":         {`{"source":"mail","name":"message.send"}`, `{"account":"ann","to":"ann@example.org","subject":"s","text":"t"}`, false},
		"another channel":      {`{"source":"slack","name":"slack.message.send"}`, `{"channel":"C2","text":"t"}`, false},
		"no channel":           {`{"source":"slack","name":"slack.message.send"}`, `{"text":"t"}`, false},
		"the channel":          {`{"source":"slack","name":"slack.message.send"}`, `{"channel":"C1","text":"t"}`, true},
		"a webhook of another": {`{"source":"slack","name":"slack.webhook.send"}`, `{"text":"t"}`, false},
		"the webhook":          {`{"source":"hook","name":"slack.webhook.send"}`, `{"text":"t"}`, true},
	} {
		external := "triage:brief:" + strings.Repeat(fmt.Sprintf("%x", len(name)%16), 64)
		body := fmt.Sprintf(`{"type":"mcp.exec","external_id":%q,"tool":%s,"args":%s,"risk":"low","constraints":{}}`, external, test.tool, test.args)
		err := postgres.InTx(t.Context(), f.login, postgres.Triage(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `INSERT INTO triage_briefs (tenant_id, external_id, account_id, kind, channel, due_at, until_at, envelope)
				VALUES ($1, $2, $3, 'alert', 'c', now(), now(), $4)`, f.tenant.String(), external, f.account, body); err != nil {
				return err
			}
			return pgx.ErrTxCommitRollback // the name is used again
		})
		if ok := err == pgx.ErrTxCommitRollback; ok != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
