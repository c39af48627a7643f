package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/mail/listing"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/engine"
)

func TestMessageIsDecidedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`INSERT INTO triage_senders (tenant_id, account_id, address, first_seen, last_seen, received)
		SELECT tenant_id, account_id, 'news@garden-weekly.example', now(), now(), 7 FROM triage_accounts`)
	path := f.deliver("", newsletter("n1@x").raw())
	f.deliver("", newsletter("n1@x").raw()) // a copy

	f.once()
	f.once()
	// Moved away and back under another name, as some programs do.
	if err := os.Rename(path, filepath.Join(f.dir, "new", "1800000000.other.host")); err != nil {
		t.Fatal(err)
	}
	f.once()

	if n := one[int](f, "SELECT count(1) FROM triage_messages"); n != 1 {
		t.Errorf("%d messages, want 1", n)
	}
	if n := one[int](f, "SELECT count(1) FROM triage_locations"); n != 2 {
		t.Errorf("%d locations, want 2", n)
	}
	if n := one[int](f, "SELECT count(1) FROM triage_decisions"); n != 1 {
		t.Errorf("%d decisions, want 1", n)
	}
	want := one[int](f, "SELECT count(1) FROM triage_proposals")
	if n := one[int](f, "SELECT count(1) FROM proposals"); n != want || n == 0 {
		t.Errorf("%d proposals of %d rows, want each once, and some", n, want)
	}
	if received := one[int](f, "SELECT received FROM triage_senders WHERE address = 'news@garden-weekly.example'"); received != 8 {
		t.Errorf("the sender counts %d messages, want 8", received)
	}
}

func TestSharedMessageIDSuppressesNoMail(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deliver("", testMail{id: "same@x", from: "mallory@evil.example", to: owner, subject: "one", body: "first"}.raw())
	f.once()
	f.deliver("", testMail{id: "same@x", from: "sven@tallis.example", to: owner, subject: "two", body: "second"}.raw())
	f.once()

	if n := one[int](f, "SELECT count(1) FROM triage_decisions"); n != 2 {
		t.Errorf("%d decisions, want 2", n)
	}
}

func TestBackfillIsNewestFirstAndNewMailImmediate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const older = 130
	var before int64
	for i := range older {
		path := f.deliver("", testMail{id: fmt.Sprintf("o%d@x", i), from: "a@b.example", to: owner, subject: fmt.Sprintf("old %d", i), body: "text"}.raw())
		at := time.Now().Add(-time.Duration(older-i) * time.Hour)
		touched := changedTo(t, path, at)
		// A message is also new if it changed in the same tick of the file
		// system's clock as the last one before the first run. So the last
		// one changes in a later tick.
		for i == older-1 && touched == before {
			touched = changedTo(t, path, at)
		}
		before = touched
	}
	f.put("work", func(a *account.Account) { a.BackfillDays = 4 })
	f.once()

	kept := one[int](f, "SELECT count(1) FROM triage_messages")
	if kept < 94 || kept > 97 {
		t.Errorf("%d messages of four days, want about 96", kept)
	}
	if n := one[int](f, "SELECT count(1) FROM triage_folders WHERE older_done_at IS NULL"); n != 0 {
		t.Errorf("backfill of %d folders is not done", n)
	}
	f.deliver("", testMail{id: "new@x", from: "a@b.example", to: owner, subject: "new", body: "text"}.raw())
	f.once()
	if n := one[int](f, "SELECT count(1) FROM triage_messages"); n != kept+1 {
		t.Errorf("%d messages, want %d", n, kept+1)
	}
	if n := one[int](f, "SELECT count(1) FROM triage_runs WHERE kind = 'changes' AND read = 1 AND ended_at IS NOT NULL"); n != 1 {
		t.Errorf("%d runs that read one new message, want 1", n)
	}
}

// changedTo sets the modification time of a file and returns its change time.
func changedTo(t *testing.T, path string, at time.Time) int64 {
	t.Helper()
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return listing.Touched(info)
}

func TestThreadsAndSendersCountBothDirections(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deliver("", testMail{id: "q@x", from: "Ada <ada@brightwater.example>", to: owner, subject: "Quote", body: "Could you send the quote?"}.raw())
	f.deliver("Sent", testMail{id: "a@x", from: owner, to: "Ada <ada@brightwater.example>", subject: "Re: Quote", body: "Here it is.", headers: "In-Reply-To: <q@x>"}.raw())
	f.once()
	f.deliver("", testMail{id: "r@x", from: "Ada <ada@brightwater.example>", to: owner, subject: "Re: Quote", body: "Thanks, and the terms?", headers: "In-Reply-To: <a@x>\nReferences: <q@x> <a@x>"}.raw())
	f.deliver("", testMail{id: "lost@x", from: "ada@brightwater.example", to: owner, subject: "AW: Quote", body: "One more thing."}.raw())
	f.deliver("", testMail{id: "other@x", from: "eve@elsewhere.example", to: owner, subject: "Re: Quote", body: "Hello."}.raw())
	f.once()

	if n := one[int](f, "SELECT count(DISTINCT thread_id) FROM triage_messages WHERE header_id <> 'other@x'"); n != 1 {
		t.Errorf("%d threads, want 1", n)
	}
	if one[bool](f, "SELECT (SELECT thread_id FROM triage_messages WHERE header_id = 'other@x') = (SELECT thread_id FROM triage_messages WHERE header_id = 'q@x')") {
		t.Error("a stranger joined the thread by its subject")
	}
	counts := one[[]int](f, "SELECT ARRAY[received, sent, replied] FROM triage_senders WHERE address = 'ada@brightwater.example'")
	if !slices.Equal(counts, []int{3, 1, 1}) {
		t.Errorf("received, sent, replied = %v, want 3, 1, 1", counts)
	}
	if n := one[int](f, "SELECT count(1) FROM triage_decisions d JOIN triage_messages m USING (tenant_id, message_id) WHERE m.outgoing"); n != 0 {
		t.Errorf("%d decisions about the owner's mail, want none", n)
	}
	symbols := one[string](f, "SELECT d.signals::text FROM triage_decisions d JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id = 'r@x'")
	if !strings.Contains(symbols, "REPLY_TO_MINE") {
		t.Errorf("the answer to the owner has no symbol REPLY_TO_MINE: %s", symbols)
	}
}

func TestOwnersChangesAreRecorded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deliver("", newsletter("first@x").raw())
	f.once()
	path := f.deliver("", newsletter("n@x").raw())
	f.once()
	// The test is not about whether an archive is proposed; here it was.
	f.proposed("n@x", "archive", `[{"action":"archive"}]`)
	archived := filepath.Join(f.dir, ".Archive", "cur", "1900000000.done.host:2,")
	if err := os.Rename(path, archived); err != nil { // as the worker does
		t.Fatal(err)
	}
	f.once()
	if one[bool](f, "SELECT touched_at IS NOT NULL FROM triage_messages WHERE header_id = 'n@x'") {
		t.Error("archived as proposed: the message counts as touched by its owner")
	}
	if err := os.Rename(archived, filepath.Join(f.dir, "cur", "1900000001.back.host:2,F")); err != nil {
		t.Fatal(err)
	}
	before := one[int](f, "SELECT count(1) FROM proposals")
	f.once()

	if !one[bool](f, "SELECT touched_at IS NOT NULL AND 'archive' = ANY (undone) FROM triage_messages WHERE header_id = 'n@x'") {
		t.Error("brought back by its owner: nothing is recorded")
	}
	if n := one[int](f, "SELECT count(1) FROM proposals"); n != before {
		t.Errorf("%d proposals after %d: what the owner took back was proposed again", n, before)
	}
}

func TestRunWithoutLeaseWritesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deliver("", newsletter("n@x").raw())
	stolen := func(_ context.Context, a account.Account) (mailbox.Reader, error) {
		f.exec("UPDATE triage_schedules SET holder = gen_random_uuid(), lease_until = now() + interval '1 hour'")
		return a.Open(account.Access{})
	}

	err := f.engine(func(c *engine.Config) { c.Open = stolen }).Once(t.Context())

	if err == nil {
		t.Error("no error")
	}
	if n := one[int](f, "SELECT (SELECT count(1) FROM triage_messages) + (SELECT count(1) FROM triage_folders) + (SELECT count(1) FROM proposals)"); n != 0 {
		t.Errorf("%d rows were written", n)
	}
	if !one[bool](f, "SELECT holder IS NOT NULL FROM triage_schedules") {
		t.Error("the other run's claim was released")
	}
}

func TestOneRunReadsAnAccountAtATime(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 60 {
		f.deliver("", newsletter(fmt.Sprintf("n%d@x", i)).raw())
	}
	var open, most atomic.Int64
	count := func(c *engine.Config) {
		c.Open = func(_ context.Context, a account.Account) (mailbox.Reader, error) {
			if n := open.Add(1); n > most.Load() {
				most.Store(n)
			}
			r, err := a.Open(account.Access{})
			return counted{r, &open}, err
		}
	}
	var all sync.WaitGroup
	for range 4 {
		e := f.engine(count)
		all.Go(func() {
			if err := e.Once(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()

	if most.Load() != 1 {
		t.Errorf("%d readers at once, want 1", most.Load())
	}
	if n := one[int](f, "SELECT count(1) FROM triage_decisions"); n != 60 {
		t.Errorf("%d decisions, want 60", n)
	}
}

// counted is a reader that counts those that are open.
type counted struct {
	mailbox.Reader
	open *atomic.Int64
}

func (c counted) Close() error {
	c.open.Add(-1)
	return c.Reader.Close()
}

func TestRunReadsNewMailUntilStopped(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	e := f.engine(nil)
	go func() { ended <- e.Run(ctx) }()

	f.until("SELECT EXISTS (SELECT FROM triage_schedules WHERE last_ended_at IS NOT NULL)")
	f.deliver("", newsletter("n@x").raw())
	f.until("SELECT EXISTS (SELECT FROM triage_decisions)")
	f.put("work", func(a *account.Account) { a.Enabled = false })
	f.until("SELECT holder IS NULL FROM triage_schedules")
	stop()

	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
}

// TestNewAccountIsReadByABusyProcess uses a process without a free slot.
func TestNewAccountIsReadByABusyProcess(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	e := f.engine(func(c *engine.Config) { c.Accounts = 1 })
	go func() { ended <- e.Run(ctx) }()

	f.until("SELECT EXISTS (SELECT FROM triage_schedules WHERE last_ended_at IS NOT NULL)")
	f.put("second", func(*account.Account) {})
	f.until("SELECT count(1) = 2 FROM triage_schedules WHERE last_ended_at IS NOT NULL")
	stop()

	if err := <-ended; err != nil {
		t.Errorf("Run = %v", err)
	}
}

// dying is a reader that fails at some call, like a killed process.
type dying struct {
	mailbox.Reader
	left *atomic.Int64
}

var errKilled = errors.New("killed")

func (d dying) Read(ctx context.Context, items []mailbox.Item, each func(mailbox.Item, []byte, error) error) error {
	return d.Reader.Read(ctx, items, func(it mailbox.Item, raw []byte, err error) error {
		if d.left.Add(-1) < 0 {
			return errKilled
		}
		return each(it, raw, err)
	})
}

func TestInterruptedBackfillResumes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const n = 330
	for i := range n {
		f.deliver("", newsletter(fmt.Sprintf("n%d@x", i)).raw())
	}
	tries := 0
	for ; tries < 20; tries++ {
		left := &atomic.Int64{}
		left.Store(int64(70 + 13*tries))
		err := f.engine(func(c *engine.Config) {
			c.Open = func(_ context.Context, a account.Account) (mailbox.Reader, error) {
				r, err := a.Open(account.Access{})
				return dying{r, left}, err
			}
		}).Once(t.Context())
		if err == nil {
			break
		}
	}

	if tries < 2 {
		t.Errorf("it died %d times, want more", tries)
	}
	if got := one[int](f, "SELECT count(1) FROM triage_decisions"); got != n {
		t.Errorf("%d decisions, want %d", got, n)
	}
	if got, want := one[int](f, "SELECT count(1) FROM proposals"), one[int](f, "SELECT count(1) FROM triage_proposals WHERE proposal_id IS NOT NULL"); got != want || got == 0 {
		t.Errorf("%d proposals of %d rows, want each once", got, want)
	}
	if !one[bool](f, "SELECT last_error IS NULL AND failures = 0 FROM triage_schedules") {
		t.Error("the last run ended well, and the schedule shows an error")
	}
}

func TestFailingAccountStoresItsError(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("work", func(a *account.Account) { a.Connection.Path = "/nowhere/at/all" })

	err := f.engine(nil).Once(t.Context())

	if err == nil || !strings.Contains(err.Error(), "account work") {
		t.Errorf("Once = %v, want an error that names the account", err)
	}
	if !one[bool](f, "SELECT last_error <> '' AND failures = 1 AND next_run_at > now() AND holder IS NULL FROM triage_schedules") {
		t.Error("the schedule does not show the error")
	}
}

func TestUnboundLoginIsDenied(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec("UPDATE db_logins SET unbound_at = now()")
	m, err := model()
	if err != nil {
		t.Fatal(err)
	}

	if _, err = engine.New(t.Context(), f.login, engine.Config{Model: m}); !errors.Is(err, fault.Denied) || !strings.Contains(err.Error(), "db-login bind") {
		t.Errorf("New = %v, want it denied with what to do", err)
	}
}

func TestWithoutASourceNothingIsProposed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec("UPDATE triage_accounts SET proposals = '{}'")
	f.deliver("", newsletter("n@x").raw())

	f.once()

	if n := one[int](f, "SELECT count(1) FROM proposals"); n != 0 || one[int](f, "SELECT count(1) FROM triage_decisions") != 1 {
		t.Errorf("%d proposals, want a decision and none", n)
	}
}

func TestZeroBytesAreRemovedFromStoredText(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deliver("", testMail{
		id: "z\x00z@x", from: "\"a\x00\xff\" <a@b.example>", to: owner, subject: "null \x00 and \xff\xfe and \\u0000", body: "a\x00b \\u0000 \xc3\x28",
		headers: "References: <a\x00b> <\xff>\nList-Id: <l\x00\xff.example>",
	}.raw())

	f.once()

	if n := one[int](f, "SELECT count(1) FROM triage_decisions"); n != 1 {
		t.Errorf("%d decisions, want 1", n)
	}
}
