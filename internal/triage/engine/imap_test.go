package engine_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/engine"
)

// known makes the newsletter's sender a known one.
func (f *fixture) known() {
	f.t.Helper()
	f.exec(`INSERT INTO triage_senders (tenant_id, account_id, address, first_seen, last_seen, received)
		SELECT tenant_id, account_id, 'news@garden-weekly.example', now(), now(), 7 FROM triage_accounts`)
}

func TestMailOfAServerIsDecidedOnce(t *testing.T) {
	t.Parallel()
	for name, start := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			f := s.fixture()
			f.known()
			s.deliver("INBOX", newsletter("n1@x").raw())
			s.deliver("INBOX", newsletter("n2@x").raw())
			s.deliver("INBOX", newsletter("n2@x").raw()) // a copy
			s.deliver("Sent", testMail{id: "mine@x", from: owner, to: "ada@brightwater.example", subject: "Quote", body: "Here it is."}.raw())
			s.deliver("Archive", testMail{id: "kept@x", from: "a@b.example", to: owner, subject: "old", body: "not read"}.raw())

			f.once()
			f.once()

			counts := one[[]int64](f, `SELECT ARRAY[(SELECT count(1) FROM triage_messages), (SELECT count(1) FROM triage_messages WHERE outgoing),
				(SELECT count(1) FROM triage_decisions), (SELECT count(1) FROM triage_locations), (SELECT count(1) FROM triage_folders)]`)
			if want := []int64{3, 1, 2, 4, 2}; !slices.Equal(counts, want) {
				t.Errorf("messages, of the owner, decisions, locations, folders = %v, want %v", counts, want)
			}
			if n := one[int](f, "SELECT count(1) FROM proposals"); n == 0 || n != one[int](f, "SELECT count(1) FROM triage_proposals") {
				t.Errorf("%d proposals, want each once, and some", n)
			}
		})
	}
}

// TestUnreadableMetadataSetsMessageAside has a server that answers with an
// invalid date for one message of three.
func TestUnreadableMetadataSetsMessageAside(t *testing.T) {
	t.Parallel()
	for name, start := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			for _, id := range []string{"n1@x", "n2@x", "n3@x"} {
				s.deliver("INBOX", newsletter(id).raw())
			}
			date := regexp.MustCompile(`(UID 2 .*INTERNALDATE )"[^"]*"`)
			s.through(func(line string) string { return date.ReplaceAllString(line, `$1"yesterday"`) })
			f := s.fixture()

			f.once()
			f.once()

			if ids := one[string](f, "SELECT string_agg(header_id, ' ' ORDER BY header_id) FROM triage_messages"); ids != "n1@x n3@x" {
				t.Errorf("read are %s, want n1@x n3@x", ids)
			}
			aside := one[string](f, "SELECT string_agg(folder || ' ' || split_part(key, ':', 2) || ' ' || step || ': ' || reason, '; ') FROM triage_set_aside")
			if want := "INBOX 2 list: the server gives no metadata of the message that can be read"; aside != want {
				t.Errorf("set aside is %q, want %q", aside, want)
			}
			f.exec("UPDATE triage_set_aside SET again = true")
			f.once()
			if n := one[int](f, "SELECT count(1) - 100 * (SELECT count(1) FROM triage_set_aside) FROM triage_decisions"); n != 3 {
				t.Errorf("%d messages are decided once a person asked for it, want 3 and none set aside", n)
			}
		})
	}
}

func TestAnotherUIDVALIDITYMatchesMessagesByIdentity(t *testing.T) {
	t.Parallel()
	for name, start := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			f := s.fixture()
			f.known()
			const before = 3
			for i := range before {
				s.deliver("INBOX", newsletter(fmt.Sprintf("n%d@x", i)).raw())
			}
			f.once()
			old := one[[]string](f, "SELECT array_agg(key ORDER BY key) FROM triage_locations")
			proposals := one[int](f, "SELECT count(1) FROM proposals")
			s.void("INBOX")
			s.deliver("INBOX", newsletter("new@x").raw())

			f.once()
			f.once()

			now := one[[]string](f, "SELECT array_agg(key ORDER BY key) FROM triage_locations WHERE folder = 'INBOX'")
			if len(now) != before+1 || len(old) != before || one[int](f, "SELECT count(1) FROM triage_locations") != before+1 {
				t.Errorf("locations %v after %v, want one of each message", now, old)
			}
			for _, key := range old {
				if slices.Contains(now, key) {
					t.Errorf("the void location %s is still there", key)
				}
			}
			if n := one[int](f, "SELECT count(1) FROM triage_decisions"); n != before+1 {
				t.Errorf("%d decisions, want %d", n, before+1)
			}
			if one[bool](f, "SELECT EXISTS (SELECT 1 FROM triage_messages WHERE touched_at IS NOT NULL)") {
				t.Error("messages count as touched by their owner")
			}
			fresh := one[[]string](f, `SELECT coalesce(array_agg(p.envelope::text), '{}') FROM triage_proposals p JOIN triage_messages m USING (tenant_id, message_id)
				WHERE m.header_id = 'new@x'`)
			if len(fresh) == 0 || one[int](f, "SELECT count(1) FROM proposals") != proposals+len(fresh) {
				t.Errorf("%d proposals for the new message, want some, and no others", len(fresh))
			}
			key := one[string](f, "SELECT l.key FROM triage_locations l JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id = 'new@x'")
			for _, envelope := range fresh {
				if !strings.Contains(envelope, key) {
					t.Errorf("a proposal does not name the location %s: %s", key, envelope)
				}
			}
		})
	}
}

// TestFolderIsReadAgainAfterAnInterruption stops a run between the two chunks of a
// folder whose locations are void.
func TestFolderIsReadAgainAfterAnInterruption(t *testing.T) {
	t.Parallel()
	s, dovecot := newDovecot(t)
	f := s.fixture()
	const n = 80
	for i := range n {
		if err := dovecot.Deliver(user, "INBOX", []byte(newsletter(fmt.Sprintf("n%d@x", i)).raw())); err != nil {
			t.Fatal(err)
		}
	}
	f.once()
	s.void("INBOX")
	left := &atomic.Int64{}
	left.Store(60)
	if err := f.engine(func(c *engine.Config) { c.Open = f.dying(left) }).Once(t.Context()); err == nil {
		t.Fatal("the run did not end early")
	}

	f.once()

	if one[bool](f, "SELECT EXISTS (SELECT 1 FROM triage_messages WHERE touched_at IS NOT NULL)") {
		t.Error("messages count as touched by their owner")
	}
	if got := one[[]int64](f, "SELECT ARRAY[(SELECT count(1) FROM triage_locations), (SELECT count(1) FROM triage_decisions)]"); !slices.Equal(got, []int64{n, n}) {
		t.Errorf("locations and decisions = %v, want %d of each", got, n)
	}
}

func TestPushedMailIsDecided(t *testing.T) {
	t.Parallel()
	for name, start := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			f := s.fixture()
			stop := f.started(nil)
			f.until("SELECT EXISTS (SELECT FROM triage_schedules WHERE last_ended_at IS NOT NULL)")

			s.deliver("INBOX", newsletter("pushed@x").raw()) // otherwise it is read once an hour
			f.until("SELECT EXISTS (SELECT FROM triage_decisions)")
			s.deliver("Sent", testMail{id: "mine@x", from: owner, to: "ada@brightwater.example", subject: "Quote", body: "Here it is."}.raw())
			f.until("SELECT EXISTS (SELECT FROM triage_messages WHERE outgoing)")
			stop() // while it idles

			if !one[bool](f, "SELECT holder IS NULL AND last_error IS NULL FROM triage_schedules") {
				t.Error("the account was not given back without an error")
			}
		})
	}
}

func TestChangesByAnotherProgramAreRecorded(t *testing.T) {
	t.Parallel()
	for name, start := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			f := s.fixture()
			// Nothing is proposed for mail of a stranger, however long the
			// deliveries take.
			s.deliver("INBOX", testMail{id: "moved@x", from: "Ivo Hart <ivo@hart.example>", to: owner, subject: "The gate", body: "It is mended."}.raw())
			for _, id := range []string{"seen@x", "flagged@x"} {
				s.deliver("INBOX", newsletter(id).raw())
			}
			f.once()
			s.flag("INBOX", "seen@x", goimap.StoreFlagsAdd, goimap.FlagSeen)
			s.flag("INBOX", "flagged@x", goimap.StoreFlagsAdd, goimap.FlagFlagged)
			s.move("INBOX", "Archive", "moved@x")
			f.once()

			flags := func(id string) string {
				return one[string](f, `SELECT coalesce(array_to_string(l.flags, ' '), '') FROM triage_locations l JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id = $1`, id)
			}
			if flags("seen@x") != `\Seen` || flags("flagged@x") != `\Flagged` {
				t.Errorf(`flags %q and %q, want \Seen and \Flagged`, flags("seen@x"), flags("flagged@x"))
			}
			touched := func() []string {
				return one[[]string](f, "SELECT coalesce(array_agg(header_id ORDER BY header_id), '{}') FROM triage_messages WHERE touched_at IS NOT NULL")
			}
			if got := touched(); !slices.Equal(got, []string{"flagged@x", "moved@x"}) {
				t.Errorf("touched are %v, want what was flagged and what nobody proposed to move", got)
			}
			if n := one[int](f, "SELECT count(1) FROM triage_locations"); n != 2 {
				t.Errorf("%d locations, want 2: one message was moved away", n)
			}
			s.move("Archive", "INBOX", "moved@x")
			f.once()
			if n := one[int](f, "SELECT count(1) FROM triage_decisions"); n != 3 {
				t.Errorf("%d decisions, want 3", n)
			}
		})
	}
}

func TestArchivedMessageIsNotRestored(t *testing.T) {
	t.Parallel()
	s, _ := newDovecot(t)
	f := s.fixture()
	s.deliver("INBOX", newsletter("n@x").raw())
	f.once()
	f.proposed("n@x", "archive", `[{"action":"archive"}]`)
	s.move("INBOX", "Archive", "n@x") // as the worker carries out the proposal
	f.once()
	if n := one[int](f, "SELECT count(1) FROM triage_locations"); n != 0 {
		t.Fatalf("%d locations, want none: the archive is not read", n)
	}
	f.put("work", func(a *account.Account) { a.Connection.Folders = []string{"INBOX", "Archive"} })

	f.once()

	if folder := one[string](f, "SELECT folder FROM triage_locations"); folder != "Archive" {
		t.Errorf("the message is in %s, want Archive", folder)
	}
	if one[bool](f, "SELECT touched_at IS NOT NULL FROM triage_messages") {
		t.Error("the message counts as touched by its owner")
	}
}

func TestServerIsReadAgainAfterAnOutage(t *testing.T) {
	t.Parallel()
	s, dovecot := newDovecot(t)
	f := s.fixture()
	s.deliver("INBOX", newsletter("before@x").raw())
	f.started(nil)
	f.until("SELECT EXISTS (SELECT FROM triage_decisions)")

	dovecot.Kill()
	f.exec("UPDATE triage_schedules SET asked_at = now()")
	f.until("SELECT last_error IS NOT NULL AND holder IS NULL AND failures > 0 FROM triage_schedules")
	problem := one[string](f, "SELECT last_error FROM triage_schedules")
	if err := dovecot.Restart(); err != nil {
		t.Fatal(err)
	}
	s.deliver("INBOX", newsletter("after@x").raw())
	f.exec("UPDATE triage_schedules SET asked_at = now()")
	f.until("SELECT count(1) = 2 FROM triage_decisions")

	f.until("SELECT last_error IS NULL AND failures = 0 FROM triage_schedules")
	if !strings.Contains(problem, s.address) || strings.Contains(problem, s.password) {
		t.Errorf("the error was %q, want the server's address, and no password", problem)
	}
}

func TestErrorDoesNotContainThePassword(t *testing.T) {
	t.Parallel()
	for name, start := range servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			f := s.fixture()
			const wrong = "hunter2-and-more"

			err := f.engine(func(c *engine.Config) { c.Open = s.opener(wrong) }).Once(t.Context())

			if err == nil || !strings.Contains(err.Error(), "account work: ") {
				t.Fatalf("Once = %v, want an error that names the account", err)
			}
			stored := one[string](f, "SELECT last_error FROM triage_schedules")
			if !strings.Contains(stored, "refuses the login") || strings.Contains(stored+err.Error(), wrong) {
				t.Errorf("stored is %q, returned %q, want why, without the password", stored, err)
			}
		})
	}
}

// dying opens accounts with readers that fail after a number of messages.
func (f *fixture) dying(left *atomic.Int64) func(context.Context, account.Account) (mailbox.Reader, error) {
	return func(ctx context.Context, a account.Account) (mailbox.Reader, error) {
		r, err := f.open(ctx, a)
		return dying{r, left}, err
	}
}

func TestInterruptedServerBackfillResumes(t *testing.T) {
	t.Parallel()
	s, dovecot := newDovecot(t)
	f := s.fixture()
	f.known()
	const n = 600
	for i := range n {
		if err := dovecot.Deliver(user, "INBOX", []byte(newsletter(fmt.Sprintf("n%d@x", i)).raw())); err != nil {
			t.Fatal(err)
		}
	}
	deaths := 0
	for ; deaths < 20; deaths++ {
		left := &atomic.Int64{}
		left.Store(int64(70 + 13*deaths))
		if f.engine(func(c *engine.Config) { c.Open = f.dying(left) }).Once(t.Context()) == nil {
			break
		}
	}

	if deaths < 3 {
		t.Errorf("it died %d times, want more", deaths)
	}
	counts := one[[]int64](f, `SELECT ARRAY[(SELECT count(1) FROM triage_decisions), (SELECT count(1) FROM triage_locations),
		(SELECT received FROM triage_senders WHERE address = 'news@garden-weekly.example')]`)
	if want := []int64{n, n, n + 7}; !slices.Equal(counts, want) {
		t.Errorf("decisions, locations, counted for the sender = %v, want %v", counts, want)
	}
	if got, want := one[int](f, "SELECT count(1) FROM proposals"), one[int](f, "SELECT count(1) FROM triage_proposals WHERE proposal_id IS NOT NULL"); got != want || got == 0 {
		t.Errorf("%d proposals of %d rows, want each once", got, want)
	}
	if !one[bool](f, "SELECT bool_and(ended_at IS NOT NULL) AND count(1) FILTER (WHERE error IS NOT NULL) > 0 FROM triage_runs") {
		t.Error("runs have no end, or none shows its error")
	}
}

func TestOneSlotReadsManyAccounts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deliver("", newsletter("n@x").raw())
	f.put("work", func(a *account.Account) { a.Every = time.Hour })
	f.put("second", func(a *account.Account) { a.Every = time.Hour })
	f.put("third", func(a *account.Account) { a.Every = time.Hour })

	f.started(func(c *engine.Config) { c.Accounts = 1 })

	f.until("SELECT count(1) = 3 FROM triage_decisions")
}

func TestAbandonedRunIsEnded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec("INSERT INTO triage_runs (tenant_id, run_id, account_id, kind) SELECT tenant_id, gen_random_uuid(), account_id, 'backfill' FROM triage_accounts")

	f.once()

	if !one[bool](f, "SELECT ended_at IS NOT NULL AND error = 'interrupted' FROM triage_runs") {
		t.Error("the run has no end")
	}
}

func TestChangedAccountIsReadWithItsNewSettings(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deliver("", newsletter("n@x").raw())
	opened := 0
	open := func(ctx context.Context, a account.Account) (mailbox.Reader, error) {
		if opened++; opened > 1 {
			return a.Open(account.Access{})
		}
		f.put("work", func(a *account.Account) { a.BackfillDays = 7 })
		<-ctx.Done()
		return nil, ctx.Err()
	}

	err := f.engine(func(c *engine.Config) { c.Open, c.Lease = open, 2*time.Second }).Once(t.Context())

	if err != nil || opened != 2 || one[int](f, "SELECT count(1) FROM triage_decisions") != 1 {
		t.Errorf("Once = %v, opened %d times, want 2, and the message decided", err, opened)
	}
	if !one[bool](f, "SELECT holder IS NULL AND last_error IS NULL FROM triage_schedules") {
		t.Error("the account was not given back without an error")
	}
}

// TestOnceReadsMoreAccountsThanItHasSlots includes an account that cannot be
// read.
func TestOnceReadsMoreAccountsThanItHasSlots(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deliver("", newsletter("n@x").raw())
	for i := range 4 {
		f.put(fmt.Sprintf("more%d", i), func(*account.Account) {})
	}
	f.put("broken", func(a *account.Account) { a.Connection.Path = "/nowhere/at/all" })

	err := f.engine(func(c *engine.Config) { c.Accounts = 2 }).Once(t.Context())

	if err == nil || !strings.Contains(err.Error(), "account broken: ") || strings.Contains(err.Error(), "account more") {
		t.Errorf("Once = %v, want an error about the broken account alone", err)
	}
	if n := one[int](f, "SELECT count(1) FROM triage_decisions"); n != 5 {
		t.Errorf("%d decisions, want one in each of 5 accounts", n)
	}
	if n := one[int](f, "SELECT count(1) FROM triage_schedules WHERE holder IS NOT NULL"); n != 0 {
		t.Errorf("%d accounts were not given back", n)
	}
}

// TestImportedOldMailHidesNoNewerMail has more than a page of old mail
// before a newer one, as in a folder into which another account was copied.
func TestImportedOldMailHidesNoNewerMail(t *testing.T) {
	t.Parallel()
	s := newMemory(t)
	f := s.fixture()
	f.put("work", func(a *account.Account) { a.BackfillDays = 7 })
	s.deliver("INBOX", newsletter("young@x").raw())
	old := &goimap.AppendOptions{Time: time.Now().AddDate(-5, 0, 0)}
	s.other("", func(c *imapclient.Client) {
		for i := range 230 {
			s.add(c, "INBOX", newsletter(fmt.Sprintf("old%d@x", i)).raw(), old)
		}
	})

	f.once()

	if ids := one[string](f, "SELECT string_agg(header_id, ' ') FROM triage_messages"); ids != "young@x" {
		t.Errorf("read are %s, want young@x alone", ids)
	}
	if n := one[int](f, "SELECT count(1) FROM triage_folders WHERE older_done_at IS NULL"); n != 0 {
		t.Errorf("backfill of %d folders is not done", n)
	}
}
