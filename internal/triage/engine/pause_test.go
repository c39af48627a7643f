package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/engine"
	"github.com/countersign-dev/countersign/internal/triage/inspect"
)

// order pauses, kills or sets triage travelling, all of it or of one account.
func (f *fixture) order(subject string, kill, travelling bool) {
	f.t.Helper()
	f.set(func(ctx context.Context, tx pgx.Tx) error {
		_, err := pause.Set(ctx, tx, f.tenant, pause.Order{Target: pause.Target{Scope: pause.Automation, Subject: subject}, Kill: kill, Travelling: travelling, Reason: "because", By: "ada"})
		return err
	})
}

func (f *fixture) lift(subject string) {
	f.t.Helper()
	f.set(func(ctx context.Context, tx pgx.Tx) error {
		return pause.Lift(ctx, tx, f.tenant, pause.Target{Scope: pause.Automation, Subject: subject}, "enough", "ada")
	})
}

func (f *fixture) set(fn func(ctx context.Context, tx pgx.Tx) error) {
	f.t.Helper()
	if err := postgres.InTx(f.t.Context(), f.db, postgres.API(f.tenant), func(tx pgx.Tx) error { return fn(f.t.Context(), tx) }); err != nil {
		f.t.Error(err)
	}
}

// status returns the status of an account as people see it.
func (f *fixture) status(name string) (v wire.TriageStatus) {
	f.t.Helper()
	f.set(func(ctx context.Context, tx pgx.Tx) error {
		all, err := inspect.Status(ctx, tx, f.tenant, name, time.Now())
		if err == nil && len(all) == 1 {
			v = all[0]
		}
		return err
	})
	return v
}

// interruptedReader calls do before the message of a number is read.
type interruptedReader struct {
	mailbox.Reader
	number int
	read   *int
	do     func()
}

func (r interruptedReader) Read(ctx context.Context, items []mailbox.Item, each func(mailbox.Item, []byte, error) error) error {
	return r.Reader.Read(ctx, items, func(it mailbox.Item, raw []byte, err error) error {
		if *r.read++; *r.read == r.number {
			r.do()
		}
		return each(it, raw, err)
	})
}

// TestKillWhileMailIsRead kills triage when the thirteenth of 25 messages is
// read, and later resumes it.
func TestKillWhileMailIsRead(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{"triage", "triage/work"} {
		t.Run(subject, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			for i := range 25 {
				f.deliver("", newsletter(strings.Repeat("n", i+1)+"@x").raw())
			}
			opened, read := f.open, 0
			f.open = func(ctx context.Context, a account.Account) (mailbox.Reader, error) {
				reader, err := opened(ctx, a)
				return interruptedReader{reader, 13, &read, func() { f.order(subject, true, false) }}, err
			}

			f.once()
			if n := one[int](f, "SELECT count(1) FROM triage_proposals"); n > 13 || n != one[int](f, "SELECT count(1) FROM proposals") {
				t.Errorf("%d of 25 messages have proposals, want at most 13", n)
			}
			if one[bool](f, "SELECT EXISTS (SELECT FROM triage_schedules WHERE holder IS NOT NULL OR last_error IS NOT NULL)") {
				t.Error("the account is held, or failed")
			}
			f.once()
			if n := one[int](f, "SELECT count(1) FROM triage_decisions"); n > 13 {
				t.Errorf("%d messages are decided while it is killed", n)
			}

			f.lift(subject)
			f.once()
			if got := one[int](f, "SELECT count(1) FROM triage_decisions"); got != 25 {
				t.Errorf("%d messages are decided after the resume, want 25", got)
			}
			if one[int](f, "SELECT count(1) FROM triage_proposals") == 0 {
				t.Error("nothing is proposed after the resume")
			}
		})
	}
}

// TestPauseOfAnAccountLeavesOthers pauses one of two accounts.
func TestPauseOfAnAccountLeavesOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("home", func(*account.Account) {})
	f.deliver("", newsletter("n@x").raw())
	f.order("triage/work", false, false)

	f.once()

	if got := one[string](f, "SELECT string_agg(a.name, ' ') FROM triage_decisions d JOIN triage_accounts a USING (account_id)"); got != "home" {
		t.Errorf("decided for %q, want home alone", got)
	}
}

// TestPauseEndsARun pauses triage while a process waits for mail.
func TestPauseEndsARun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deliver("", newsletter("n@x").raw())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	e := f.engine(func(c *engine.Config) { c.Lease = 400 * time.Millisecond })
	go func() { ended <- e.Run(ctx) }()
	f.until("SELECT EXISTS (SELECT FROM triage_decisions)")

	f.order("triage", false, false)
	f.until("SELECT NOT EXISTS (SELECT FROM triage_schedules WHERE holder IS NOT NULL)")
	f.deliver("", newsletter("m@x").raw())
	f.lift("triage")
	f.until("SELECT count(1) = 2 FROM triage_decisions")

	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestTravellingKeepsToLevel2 has a person asked about everything.
func TestTravellingKeepsToLevel2(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deliver("", newsletter("first@x").raw()) // of a sender who is new
	f.once()
	f.deliver("", newsletter("home@x").raw())
	f.once()
	before := one[int](f, "SELECT max(level) FROM triage_decisions")
	f.order("triage/work", false, true)
	f.deliver("", newsletter("away@x").raw())
	f.once()

	of := "SELECT d.level FROM triage_decisions d JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id = 'away@x'"
	if got := one[int](f, of); got > 2 || before <= 2 {
		t.Errorf("level %d before and %d while travelling, want at most 2, and more before", before, got)
	}
	if one[bool](f, `SELECT EXISTS (SELECT FROM triage_proposals p JOIN triage_messages m USING (tenant_id, message_id)
		WHERE m.header_id = 'away@x' AND p.envelope ->> 'approval' IS DISTINCT FROM 'required')`) {
		t.Error("something is proposed without a person while travelling")
	}
}

// TestStatusOfAPausedAccount covers the state that people see.
func TestStatusOfAPausedAccount(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.once()
	f.order("triage", false, true)
	if got := f.status("work"); got.State == "paused" || !strings.Contains(got.Reason, "travelling") {
		t.Errorf("travelling: %s, %s", got.State, got.Reason)
	}
	f.order("triage", false, false)
	if got := f.status("work"); got.State != "paused" {
		t.Errorf("paused: %s, %s", got.State, got.Reason)
	}
}

// TestPauseInALongRun pauses triage while a run of 500 messages stores a
// set: after the pause is committed, that set is stored and no other.
func TestPauseInALongRun(t *testing.T) {
	t.Parallel()
	const messages, set = 500, 50
	f := newFixture(t)
	for i := range messages {
		f.deliver("", newsletter(fmt.Sprintf("%d@garden-weekly.example", i)).raw())
	}
	// The transaction that stores the 200th decision waits for a lock of the test, when
	// it has looked for pauses for the last time.
	f.exec(`CREATE FUNCTION countersign_data.wait() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
		BEGIN
			IF (SELECT count(1) FROM countersign_data.triage_decisions) >= 200 THEN PERFORM pg_advisory_xact_lock_shared(500); END IF;
			RETURN NULL;
		END $$`)
	f.exec("CREATE TRIGGER wait AFTER UPDATE OF proposed ON triage_runs FOR EACH STATEMENT EXECUTE FUNCTION countersign_data.wait()")
	lock, err := f.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := lock.Exec(t.Context(), "SELECT pg_advisory_xact_lock(500)"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	e := f.engine(nil)
	go func() { ended <- e.Once(t.Context()) }()

	f.until("SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 500 AND NOT granted)")
	f.order("triage", false, false)
	before := one[int](f, "SELECT count(1)::int FROM triage_decisions")
	if err := lock.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}

	after := one[int](f, "SELECT count(1)::int FROM triage_decisions")
	if before < 150 || after-before < 1 || after-before > set {
		t.Errorf("%d messages are decided before the pause and %d after it, want at most %d", before, after-before, set)
	}
	if n := one[int](f, "SELECT count(1)::int FROM triage_proposals"); n > after {
		t.Errorf("%d messages have proposals, of %d that are decided", n, after)
	}
	f.once()
	if n := one[int](f, "SELECT count(1)::int FROM triage_decisions"); n != after {
		t.Errorf("%d more messages are decided while it is paused", n-after)
	}
	f.lift("triage")
	f.once()
	if n := one[int](f, "SELECT count(1)::int FROM triage_decisions"); n != messages {
		t.Errorf("%d messages are decided after the resume, want %d", n, messages)
	}
}
