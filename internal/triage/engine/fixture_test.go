package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/engine"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// model returns weights trained on eight messages, which are enough for
// decisions but not for correct ones.
var model = sync.OnceValues(func() (*classify.Model, error) {
	source, err := corpus.Own(os.DirFS("../classify/testdata/small"), "small")
	if err != nil {
		return nil, err
	}
	m, _, err := classify.Train([]corpus.Source{source}, classify.Defaults())
	return m, err
})

const owner = "mara@tallis.example"

// fixture is a tenant with a Maildir account and a database login for triage.
type fixture struct {
	t      testing.TB
	db     *pgxpool.Pool // as an administrator
	login  *pgxpool.Pool
	tenant envelope.TenantID
	dir    string
	open   func(context.Context, account.Account) (mailbox.Reader, error)
	heard  func() *pgx.Conn // receives a notification of each change
	number atomic.Int64
}

// told adds notifications of every change of the tables that tests wait for.
const told = `
CREATE FUNCTION countersign_data.tell() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('changed', ''); RETURN NULL; END $$;
DO $$
DECLARE name text;
BEGIN
	FOREACH name IN ARRAY '{triage_decisions,triage_messages,triage_schedules}'::text[] LOOP
		EXECUTE format('CREATE TRIGGER tell AFTER INSERT OR UPDATE OR DELETE ON %I FOR EACH STATEMENT EXECUTE FUNCTION tell()', name);
	END LOOP;
END $$`

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{t: t, db: dbtest.DBWith(t, told), tenant: envelope.TenantID(uuid.Must(uuid.NewV7())), dir: t.TempDir()}
	name := "triage_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	f.exec("INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", f.tenant.String(), "t-"+f.tenant.String())
	f.exec("CREATE ROLE " + name + " LOGIN PASSWORD '" + name + "' IN ROLE countersign_triage")
	t.Cleanup(func() {
		if _, err := f.db.Exec(context.WithoutCancel(t.Context()), "DROP ROLE "+name); err != nil {
			t.Error(err)
		}
	})
	f.exec("INSERT INTO db_logins (tenant_id, login_id, login, tools) VALUES ($1, $2, $3, '{mail:*}')", f.tenant.String(), uuid.Must(uuid.NewV7()), name)
	config := f.db.Config()
	config.ConnConfig.User, config.ConnConfig.Password, config.MaxConns = name, name, 6
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	f.login = pool
	for _, part := range []string{"cur", "new", "tmp", ".Sent/cur", ".Sent/new", ".Sent/tmp", ".Archive/cur", ".Archive/new", ".Archive/tmp"} {
		if err := os.MkdirAll(filepath.Join(f.dir, part), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	f.put("work", func(*account.Account) {})
	f.open = func(_ context.Context, a account.Account) (mailbox.Reader, error) { return a.Open(account.Access{}) }
	f.heard = sync.OnceValue(func() *pgx.Conn {
		conn := dbtest.Connect(t, f.db.Config().ConnString())
		if _, err := conn.Exec(t.Context(), "LISTEN changed"); err != nil {
			t.Fatal(err)
		}
		return conn
	})
	return f
}

// put makes or changes an account over the fixture's Maildir.
func (f *fixture) put(name string, change func(*account.Account)) {
	f.t.Helper()
	err := postgres.InTx(f.t.Context(), f.db, postgres.API(f.tenant), func(tx pgx.Tx) error {
		a, err := account.Get(f.t.Context(), tx, f.tenant, name)
		if err != nil {
			a = account.Account{
				ID: uuid.Must(uuid.NewV7()), Name: name, Kind: account.Maildir, Enabled: true, Every: 5 * time.Second, BackfillDays: 36500,
				Connection: account.Connection{Path: f.dir, TrustedHost: "mx.example.net"},
				Settings:   decide.Settings{Addresses: []string{owner}, Domains: []string{"tallis.example"}, Confident: 0.01, Unsure: 0.01},
				Proposals:  plan.Config{Source: "mail", Account: name},
			}
		}
		change(&a)
		return account.Put(f.t.Context(), tx, f.tenant, a)
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) engine(change func(*engine.Config)) *engine.Engine {
	f.t.Helper()
	m, err := model()
	if err != nil {
		f.t.Fatal(err)
	}
	cfg := engine.Config{
		Model: m, Look: 20 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
		Open: f.open,
	}
	if change != nil {
		change(&cfg)
	}
	e, err := engine.New(f.t.Context(), f.login, cfg)
	if err != nil {
		f.t.Fatal(err)
	}
	return e
}

// once reads all accounts to their end.
func (f *fixture) once() {
	f.t.Helper()
	if err := f.engine(nil).Once(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// testMail is a mail of a test. Zero fields get defaults.
type testMail struct{ id, from, to, subject, body, headers string }

func (l testMail) raw() string {
	headers := l.headers
	if headers != "" && !strings.HasSuffix(headers, "\n") {
		headers += "\n"
	}
	return fmt.Sprintf("%sMessage-ID: <%s>\nDate: Thu, 05 Mar 2026 16:23:00 +0000\nFrom: %s\nTo: %s\nSubject: %s\n\n%s\n",
		headers, l.id, l.from, l.to, l.subject, l.body)
}

// newsletter returns mail of a list that passed authentication.
func newsletter(id string) testMail {
	return testMail{
		id: id, from: "Garden Weekly <news@garden-weekly.example>", to: owner, subject: "Ten plants for a dry summer " + id,
		body: "This week: lavender, sage and eight others. Read on our site. Unsubscribe at any time.",
		headers: "Authentication-Results: mx.example.net; spf=pass smtp.mailfrom=garden-weekly.example; dkim=pass header.d=garden-weekly.example; dmarc=pass header.from=garden-weekly.example\n" +
			"Received: from out.garden-weekly.example ([192.0.2.1]) by mx.example.net; Thu, 05 Mar 2026 16:23:04 +0000\n" +
			"List-Id: <weekly.garden-weekly.example>\nList-Unsubscribe: <https://garden-weekly.example/u>\nPrecedence: bulk",
	}
}

// deliver writes a message into a folder of the Maildir ("" is the inbox) and
// returns its path.
func (f *fixture) deliver(folder, raw string) string {
	f.t.Helper()
	if folder != "" {
		folder = "." + folder
	}
	path := filepath.Join(f.dir, folder, "cur", fmt.Sprintf("17000%06d.test.host:2,", f.number.Add(1)))
	if err := os.WriteFile(path, []byte(raw), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// proposed stores a proposal about a message, as an earlier run would.
func (f *fixture) proposed(headerID, action, parts string) {
	f.t.Helper()
	f.exec(`INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, parts, fields, envelope)
		SELECT m.tenant_id, x.id, m.account_id, m.message_id, $2, $3, '[{"pointer":"/account","value":"work","origin":"config"}]',
			jsonb_build_object('type', 'mcp.exec', 'external_id', x.id, 'tool', '{"source":"mail","name":"message.archive"}'::jsonb, 'args', '{"account":"work"}'::jsonb)
		FROM triage_messages m, (SELECT 'triage:' || encode(sha256(convert_to($1, 'utf8')), 'hex') AS id) x WHERE m.header_id = $1`, headerID, action, parts)
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

// until waits until a query returns true.
func (f *fixture) until(sql string, args ...any) {
	f.t.Helper()
	for heard := f.heard(); !one[bool](f, sql, args...); {
		f.change(heard)
	}
}

// change waits for a change, or for a moment: locks are taken without notifications.
func (f *fixture) change(heard *pgx.Conn) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := heard.WaitForNotification(ctx); err != nil && ctx.Err() == nil || f.t.Context().Err() != nil {
		f.t.Fatalf("wait for a change: %v", err)
	}
}
