package engine_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goimap "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/inspect"
)

// why returns the reason of a message's last decision, and whether its trace
// contains a text.
func (f *fixture) why(headerID, text string) (reason string, traced bool) {
	f.t.Helper()
	of := " FROM triage_decisions d JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id = $1"
	return one[string](f, "SELECT d.reason"+of, headerID), strings.Contains(one[string](f, "SELECT d.decision::text"+of, headerID), text)
}

// move moves the file of a message into a folder of the Maildir, under a new name.
func (f *fixture) move(path, folder string) string {
	f.t.Helper()
	if folder != "" {
		folder = "." + folder
	}
	to := filepath.Join(f.dir, folder, "cur", uuid.NewString()+":2,")
	if err := os.Rename(path, to); err != nil {
		f.t.Fatal(err)
	}
	return to
}

// TestMoveBackBetweenFoldersIsDetected moves a message between two folders
// that are both read, in either order.
func TestMoveBackBetweenFoldersIsDetected(t *testing.T) {
	t.Parallel()
	for _, folders := range [][]string{{"INBOX", "Archive"}, {"Archive", "INBOX"}} {
		f := newFixture(t)
		f.put("work", func(a *account.Account) { a.Connection.Folders = folders })
		path := f.deliver("", newsletter("n@x").raw())
		f.once()
		f.proposed("n@x", "archive", `[{"action":"archive"},{"action":"label","target":"newsletters"}]`)
		path = f.move(path, "Archive")
		f.once()
		if one[bool](f, "SELECT touched_at IS NOT NULL FROM triage_messages") {
			t.Errorf("%v: archived as proposed, it counts as touched", folders)
		}
		f.move(path, "")
		f.once()

		if !one[bool](f, "SELECT touched_at IS NOT NULL AND undone = '{archive}' AND left_at IS NULL FROM triage_messages") {
			t.Errorf("%v: brought back by its owner, and nothing is recorded", folders)
		}
		if reason, traced := f.why("n@x", "its owner has moved or flagged it since"); reason != "brought_back" || !traced {
			t.Errorf("%v: decided because of %q, in the trace: %v; want it decided again", folders, reason, traced)
		}
	}
}

// TestOwnersMoveIsNotAReversal moves a message into another folder that is
// read.
func TestOwnersMoveIsNotAReversal(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("work", func(a *account.Account) { a.Connection.Folders = []string{"INBOX", "Archive", "Projects"} })
	if err := os.MkdirAll(filepath.Join(f.dir, ".Projects", "cur"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"new", "tmp"} {
		if err := os.MkdirAll(filepath.Join(f.dir, ".Projects", sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := f.deliver("", newsletter("n@x").raw())
	f.once()
	f.move(path, "Projects")
	f.once()

	if !one[bool](f, "SELECT touched_at IS NOT NULL AND undone = '{}' AND left_at IS NULL FROM triage_messages") {
		t.Error("moved by its owner: it does not count as touched, or as brought back")
	}
}

// act runs a function that turns pending proposals into actions, as a worker
// does.
func (f *fixture) act(fn func(tx pgx.Tx) error) {
	f.t.Helper()
	if err := postgres.InTx(f.t.Context(), f.db, postgres.API(f.tenant), fn); err != nil {
		f.t.Fatal(err)
	}
}

// acts inserts the action of a proposal.
func (f *fixture) acts(headerID string) (action uuid.UUID) {
	f.t.Helper()
	action = uuid.Must(uuid.NewV7())
	f.action(action, one[string](f, "SELECT p.external_id FROM triage_proposals p JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id = $1", headerID))
	return action
}

func (f *fixture) action(id uuid.UUID, external string) {
	f.t.Helper()
	f.act(func(tx pgx.Tx) error {
		_, err := tx.Exec(f.t.Context(), `INSERT INTO actions (tenant_id, action_id, external_id, content_digest, source_id, tool_name, args, risk, effect, decision_id, config_version,
				tool_digest, approval_state, approval_expires_at, bucket_id, max_attempts)
			VALUES ($1, $2, $3, 'x', 'mail', 'message.archive', '{}', 'low', 'idempotent', $2, 1, 'x', 'required', now() + interval '1 hour', 1, 1)`,
			uuid.UUID(f.tenant), id, external)
		return err
	})
}

// TestOutcomesOfProposalsAreRecorded has a person approve, deny, undo and
// revert actions, as the API does, and then has every message decided again.
func TestOutcomesOfProposalsAreRecorded(t *testing.T) {
	t.Parallel()
	for outcome, test := range map[string]struct {
		does              string
		undone            string
		accepted, refused int
	}{
		"approved": {"INSERT INTO votes (tenant_id, action_id, round, person, token, actor, decision) VALUES ($1, $2, 1, $1, $1, 'ada', 'grant')", "{}", 1, 0},
		"denied":   {"INSERT INTO votes (tenant_id, action_id, round, person, token, actor, decision) VALUES ($1, $2, 1, $1, $1, 'ada', 'deny')", "{archive,label}", 0, 1},
		"undone": {`INSERT INTO tool_executions (tenant_id, action_id, attempt, status, code, finished_at)
			VALUES ($1, $2, 0, 'skipped', 'undone', clock_timestamp())`, "{archive,label}", 0, 1},
		"reverted": {"", "{archive,label}", 0, 1},
	} {
		t.Run(outcome, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.known()
			f.deliver("", newsletter("n@x").raw())
			f.once()
			f.exec("DELETE FROM triage_proposals")
			f.proposed("n@x", "archive", `[{"action":"archive"},{"action":"label","target":"newsletters"}]`)
			action := f.acts("n@x")
			f.act(func(tx pgx.Tx) error {
				if test.does == "" {
					return nil
				}
				if _, err := tx.Exec(t.Context(), "INSERT INTO approvals (tenant_id, action_id, needed) VALUES ($1, $2, 1)", uuid.UUID(f.tenant), action); err != nil {
					return err
				}
				_, err := tx.Exec(t.Context(), test.does, uuid.UUID(f.tenant), action)
				return err
			})
			if test.does == "" {
				f.action(uuid.Must(uuid.NewV7()), "revert:"+action.String()+":001")
			}
			if got := one[string](f, "SELECT coalesce(outcome, '') FROM triage_proposals"); got != outcome {
				t.Fatalf("the proposal counts as %q, want %q", got, outcome)
			}
			f.exec("UPDATE triage_decisions SET again = 'corrected'")
			before := one[int](f, "SELECT count(1) FROM proposals")
			f.once()
			f.once() // an outcome counts once

			if got := one[string](f, "SELECT undone::text FROM triage_messages"); got != test.undone {
				t.Errorf("undone = %s, want %s", got, test.undone)
			}
			counts := one[[]int](f, "SELECT ARRAY[accepted, refused] FROM triage_senders WHERE address = 'news@garden-weekly.example'")
			if !slices.Equal(counts, []int{test.accepted, test.refused}) {
				t.Errorf("of the sender %v were accepted and refused, want %d and %d", counts, test.accepted, test.refused)
			}
			if _, traced := f.why("n@x", "its owner has reversed it"); traced != (test.undone != "{}") {
				t.Errorf("the trace has that it was taken back: %v", traced)
			}
			if n := one[int](f, "SELECT count(1) FROM proposals"); n != before && outcome != "approved" {
				t.Errorf("%d proposals after %d: what a person refused was proposed again", n, before)
			}
		})
	}
}

// TestRevertedMoveCountsOnce has a move reverted, which triage learns from the
// reversal and from the mailbox, in either order.
func TestRevertedMoveCountsOnce(t *testing.T) {
	t.Parallel()
	for name, reversalFirst := range map[string]bool{"reversal first": true, "mailbox first": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.known()
			path := f.deliver("", newsletter("n@x").raw())
			f.once()
			f.exec("DELETE FROM triage_proposals")
			f.proposed("n@x", "archive", `[{"action":"archive"}]`)
			action := f.acts("n@x")
			path = f.move(path, "Archive")
			f.once()

			for _, first := range []bool{true, false} {
				if first == reversalFirst {
					f.action(uuid.Must(uuid.NewV7()), "revert:"+action.String()+":001")
				} else {
					f.move(path, "")
				}
				f.once()
			}

			if got := one[int](f, "SELECT refused FROM triage_senders WHERE address = 'news@garden-weekly.example'"); got != 1 {
				t.Errorf("%d refusals count against the sender, want 1", got)
			}
			if got := one[string](f, "SELECT undone::text FROM triage_messages"); got != "{archive}" {
				t.Errorf("undone = %s, want {archive}", got)
			}
		})
	}
}

// TestOwnersQuestionWaitsForAnAnswer has a machine answer the owner's question,
// and then a person.
func TestOwnersQuestionWaitsForAnAnswer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ask := testMail{id: "ask@x", from: owner, to: "help@shop.example", subject: "Order 17", body: "When will it arrive?"}
	receipt := testMail{
		id: "auto@x", from: "noreply@shop.example", to: owner, subject: "Re: Order 17", body: "We received your message. This is your ticket.",
		headers: "In-Reply-To: <ask@x>\nAuto-Submitted: auto-replied",
	}
	answer := testMail{id: "answer@x", from: "help@shop.example", to: owner, subject: "Re: Order 17", body: "On Friday.", headers: "In-Reply-To: <ask@x>"}
	at := time.Now().Add(-time.Hour)
	for i, m := range []struct{ folder, raw string }{{"Sent", ask.raw()}, {"", receipt.raw()}} {
		path := f.deliver(m.folder, m.raw)
		if err := os.Chtimes(path, at.Add(time.Duration(i)*time.Minute), at.Add(time.Duration(i)*time.Minute)); err != nil {
			t.Fatal(err)
		}
		f.once()
	}

	vetoes := "SELECT (d.decision -> 'vetoes')::text FROM triage_decisions d JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id = $1"
	if got := one[string](f, vetoes, "auto@x"); !strings.Contains(got, "follow_up") {
		t.Errorf("vetoes about the answer of a machine are %s, want that its owner waits", got)
	}
	f.deliver("", answer.raw())
	f.once()

	if got := one[*string](f, vetoes, "answer@x"); got != nil && strings.Contains(*got, "follow_up") {
		t.Errorf("vetoes about the answer are %s, want none for it", *got)
	}
	if reason, traced := f.why("auto@x", "follow_up"); reason != "answered" || traced {
		t.Errorf("the answer of the machine was decided because of %q, and is held back: %v; want it decided again", reason, traced)
	}
	if one[bool](f, "SELECT bool_or(awaits) FROM triage_messages") {
		t.Error("the owner still waits")
	}
}

// TestCorrectionDecidesTheSendersMailAgain corrects one of two messages,
// removes the correction, and checks the proposals.
func TestCorrectionDecidesTheSendersMailAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.known()
	f.deliver("", newsletter("first@x").raw())
	f.deliver("", newsletter("second@x").raw())
	f.deliver("", testMail{id: "other@x", from: "sven@tallis.example", to: owner, subject: "Lunch", body: "At noon."}.raw())
	f.once()
	before := one[int](f, "SELECT count(1) FROM proposals")
	f.exec(`INSERT INTO triage_corrections (tenant_id, account_id, message_id, head, label, features, made_by)
		SELECT d.tenant_id, d.account_id, d.message_id, 'category', 'newsletters', d.features, 'ada'
		FROM triage_decisions d JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id = 'first@x'`)
	f.once()

	reasons := "SELECT string_agg(m.header_id || ' ' || d.reason, ', ' ORDER BY m.header_id) FROM triage_decisions d JOIN triage_messages m USING (tenant_id, message_id)"
	if got, want := one[string](f, reasons), "first@x corrected, other@x new, second@x corrected"; got != want {
		t.Errorf("decided are %s, want %s", got, want)
	}
	if n := one[int](f, "SELECT count(1) - count(DISTINCT message_id || (envelope ->> 'tool') || (envelope #>> '{args,labels}')) FROM triage_proposals"); n != 0 {
		t.Errorf("%d proposals are doubled", n)
	}
	if n := one[int](f, "SELECT count(1) FROM proposals"); n < before || n != one[int](f, "SELECT count(1) FROM triage_proposals") {
		t.Errorf("%d proposals after %d, want each row proposed once", n, before)
	}
	f.exec("UPDATE triage_decisions SET reason = 'new'; UPDATE triage_schedules SET corrections_at = now() - interval '1 minute'")
	f.exec("UPDATE triage_corrections SET made_at = now() - interval '1 hour', retracted_at = now()")
	f.once()
	if got, want := one[string](f, reasons), "first@x corrected, other@x new, second@x corrected"; got != want {
		t.Errorf("after it was taken back, decided are %s, want %s", got, want)
	}
}

// countedReader records how many messages are read together.
type countedReader struct {
	mailbox.Reader
	most *int
}

func (r countedReader) Read(ctx context.Context, items []mailbox.Item, each func(mailbox.Item, []byte, error) error) error {
	*r.most = max(*r.most, len(items))
	return r.Reader.Read(ctx, items, each)
}

// TestLargeMailIsDecidedAgainInChunks has messages decided again of which two
// exceed a chunk.
func TestLargeMailIsDecidedAgainInChunks(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, id := range []string{"one@x", "two@x", "three@x"} {
		f.deliver("", newsletter(id).raw())
	}
	f.once()
	f.exec("UPDATE triage_messages SET size = 6000000; UPDATE triage_decisions SET again = 'corrected'")
	opened, most := f.open, 0
	f.open = func(ctx context.Context, a account.Account) (mailbox.Reader, error) {
		reader, err := opened(ctx, a)
		return countedReader{reader, &most}, err
	}
	f.once()

	if most != 1 {
		t.Errorf("%d messages of 6 MB are read at once, want 1", most)
	}
	if got := one[int](f, "SELECT count(1) FROM triage_decisions WHERE reason = 'corrected' AND again IS NULL"); got != 3 {
		t.Errorf("%d messages were decided again, want 3", got)
	}
}

// missingFolder is a reader without one of its folders, which it reports as
// IMAP does.
type missingFolder struct {
	mailbox.Reader
	name string
}

func (r missingFolder) Read(ctx context.Context, items []mailbox.Item, each func(mailbox.Item, []byte, error) error) error {
	if slices.ContainsFunc(items, func(it mailbox.Item) bool { return it.Folder == r.name }) {
		return mailbox.ErrNoFolder
	}
	return r.Reader.Read(ctx, items, each)
}

// TestMessageOfARemovedFolderKeepsItsDecision removes the folder of a
// message that is to be decided again.
func TestMessageOfARemovedFolderKeepsItsDecision(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("work", func(a *account.Account) { a.Connection.Folders = []string{"INBOX", "Archive"} })
	f.deliver("Archive", newsletter("old@x").raw())
	f.once()
	f.exec("UPDATE triage_decisions SET again = 'corrected'")
	if err := os.RemoveAll(filepath.Join(f.dir, ".Archive")); err != nil {
		t.Fatal(err)
	}
	opened := f.open
	f.open = func(ctx context.Context, a account.Account) (mailbox.Reader, error) {
		reader, err := opened(ctx, a)
		return missingFolder{reader, "Archive"}, err
	}
	f.deliver("", newsletter("new@x").raw())
	f.once()

	if got := one[int](f, "SELECT count(1) FROM triage_decisions WHERE reason = 'new' AND again IS NULL"); got != 2 {
		t.Errorf("%d messages are decided for good, want the one that is gone and the new one", got)
	}
}

// TestExpiredProposalIsRepeatedOnce has a proposal expire twice.
func TestExpiredProposalIsRepeatedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.known()
	f.deliver("", newsletter("n@x").raw())
	f.once()
	first := one[string](f, "SELECT external_id FROM triage_proposals")
	expire := func(external string) {
		t.Helper()
		id := uuid.Must(uuid.NewV7())
		f.action(id, external)
		f.exec("UPDATE actions SET approval_state = 'required' WHERE action_id = $1", id)
		f.exec("UPDATE actions SET approval_state = 'expired' WHERE action_id = $1", id)
	}
	expired := func() int {
		t.Helper()
		return one[int](f, `SELECT count(1) FROM triage_proposals e WHERE e.outcome = 'expired' AND NOT e.outcome_due
			AND NOT EXISTS (SELECT FROM triage_proposals n WHERE n.repeats = e.external_id)`)
	}
	listed := func() (status, list int) {
		t.Helper()
		f.act(func(tx pgx.Tx) error {
			states, err := inspect.Status(t.Context(), tx, f.tenant, "", time.Now())
			if err != nil {
				return err
			}
			all, err := inspect.Messages(t.Context(), tx, f.tenant, inspect.Filter{Expired: true, Most: 10})
			status, list = states[0].Expired, len(all)
			return err
		})
		return status, list
	}

	expire(first)
	f.once()
	second := one[string](f, "SELECT external_id FROM triage_proposals WHERE repeats = $1 AND proposal_id IS NOT NULL AND envelope ->> 'external_id' = external_id", first)
	if status, list := listed(); expired() != 0 || status != 0 || list != 0 || second == first {
		t.Errorf("after the first time %d, status %d and list %d show it as expired, want none", expired(), status, list)
	}
	if n := one[int](f, "SELECT count(1) FROM proposals"); n != 2 {
		t.Errorf("%d proposals, want 2", n)
	}
	f.once()
	expire(second)
	f.once()
	f.once()

	if n := one[int](f, "SELECT count(1) FROM proposals"); n != 2 {
		t.Errorf("%d proposals after it expired twice, want 2", n)
	}
	if status, list := listed(); status != 1 || list != 1 {
		t.Errorf("after the second time status %d and list %d show it, want 1 and 1", status, list)
	}
	if n := one[int](f, "SELECT sum(accepted + refused) FROM triage_senders"); n != 0 {
		t.Errorf("%d acts of people count for the sender, want none", n)
	}
	if !one[bool](f, "SELECT bool_and(EXISTS (SELECT FROM triage_runs r WHERE r.run_id = p.run_id AND r.account_id = p.account_id)) FROM triage_proposals p") {
		t.Error("a proposal does not name its run")
	}
}

// ownersMailbox is a mailbox with the folders INBOX, Archive and Projects, of which
// triage reads Projects before INBOX, and its owner's program.
type ownersMailbox struct {
	*fixture
	deliver func(raw string)
	flag    func(flag string)
	move    func(to string)
	expunge func()
}

// ownersMailboxes returns a Maildir and a mailbox on Dovecot.
func ownersMailboxes() map[string]func(t *testing.T) ownersMailbox {
	return map[string]func(t *testing.T) ownersMailbox{
		"Maildir": func(t *testing.T) ownersMailbox {
			f := newFixture(t)
			for _, part := range []string{"cur", "new", "tmp"} {
				if err := os.MkdirAll(filepath.Join(f.dir, ".Projects", part), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			var path string
			rename := func(to string) {
				if err := os.Rename(path, to); err != nil {
					t.Fatal(err)
				}
				path = to
			}
			return ownersMailbox{
				fixture: f, deliver: func(raw string) { path = f.deliver("", raw) }, move: func(to string) { path = f.move(path, to) },
				flag: func(flag string) {
					rename(path + map[string]string{mailbox.FlagFlagged: "F", mailbox.FlagAnswered: "R", mailbox.FlagSeen: "S"}[flag])
				},
				expunge: func() {
					if err := os.Remove(path); err != nil {
						t.Fatal(err)
					}
				},
			}
		},
		"Dovecot": func(t *testing.T) ownersMailbox {
			s, _ := newDovecot(t)
			s.other("", func(c *imapclient.Client) { s.check(c.Create("Projects", nil).Wait()) })
			return ownersMailbox{
				fixture: s.fixture(), deliver: func(raw string) { s.deliver("INBOX", raw) }, move: func(to string) { s.move("INBOX", to, "n@x") },
				flag: func(flag string) { s.flag("INBOX", "n@x", goimap.StoreFlagsAdd, goimap.Flag(flag)) },
				expunge: func() {
					s.flag("INBOX", "n@x", goimap.StoreFlagsAdd, goimap.FlagDeleted)
					s.other("INBOX", func(c *imapclient.Client) { s.check(c.Expunge().Close()) })
				},
			}
		},
	}
}

// TestProposalsAboutTouchedMailAreWithdrawn has the owner change a message with a
// pending proposal. What the source would refuse then is withdrawn.
func TestProposalsAboutTouchedMailAreWithdrawn(t *testing.T) {
	t.Parallel()
	for kind, open := range ownersMailboxes() {
		for name, test := range map[string]struct {
			touch     func(m ownersMailbox)
			withdrawn bool
			touched   bool
		}{
			"flagged":                      {func(m ownersMailbox) { m.flag(mailbox.FlagFlagged) }, true, true},
			"answered":                     {func(m ownersMailbox) { m.flag(mailbox.FlagAnswered) }, true, false},
			"read":                         {func(m ownersMailbox) { m.flag(mailbox.FlagSeen) }, false, false},
			"moved":                        {func(m ownersMailbox) { m.move("Archive") }, true, true},
			"moved to a folder read first": {func(m ownersMailbox) { m.move("Projects") }, true, false},
			"deleted":                      {func(m ownersMailbox) { m.expunge() }, true, true},
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				m := open(t)
				m.put("work", func(a *account.Account) { a.Connection.Folders = []string{"Projects", "INBOX"} })
				m.known()
				m.deliver(newsletter("n@x").raw())
				m.once()
				if one[bool](m.fixture, "SELECT bool_or(withdraw_at IS NOT NULL) FROM triage_proposals") {
					t.Fatal("a proposal is withdrawn before its owner did anything")
				}

				test.touch(m)
				m.once()

				if got := one[bool](m.fixture, "SELECT bool_and(withdraw_at IS NOT NULL) FROM triage_proposals"); got != test.withdrawn {
					t.Errorf("the proposal is withdrawn: %t, want %t", got, test.withdrawn)
				}
				if !test.touched {
					return
				}
				m.exec("UPDATE triage_proposals SET outcome = 'expired', outcome_due = true, withdraw_at = NULL")
				m.once()
				if n := one[int](m.fixture, "SELECT count(1) FROM triage_proposals WHERE repeats IS NOT NULL"); n != 0 {
					t.Errorf("%d proposals about a message that its owner touched are repeated", n)
				}
			})
		}
	}
}

// TestProposalsOfEveryToolAreWithdrawn has proposals of the tools of mailboxes about
// one message, which its owner then changes. Those that change the mailbox or follow
// from the message where it was are withdrawn; an answer is not. Nor is a question
// about a subscription if the message left the inbox as triage proposed.
func TestProposalsOfEveryToolAreWithdrawn(t *testing.T) {
	t.Parallel()
	for kind, open := range ownersMailboxes() {
		for name, touch := range map[string]func(m ownersMailbox){
			"flagged":                      func(m ownersMailbox) { m.flag(mailbox.FlagFlagged) },
			"answered":                     func(m ownersMailbox) { m.flag(mailbox.FlagAnswered) },
			"read":                         func(m ownersMailbox) { m.flag(mailbox.FlagSeen) },
			"moved":                        func(m ownersMailbox) { m.move("Archive") },
			"moved to a folder read first": func(m ownersMailbox) { m.move("Projects") },
			"deleted":                      func(m ownersMailbox) { m.expunge() },
		} {
			t.Run(kind+", "+name, func(t *testing.T) {
				t.Parallel()
				m := open(t)
				m.put("work", func(a *account.Account) { a.Connection.Folders = []string{"Projects", "INBOX"} })
				m.known()
				m.deliver(newsletter("n@x").raw())
				m.once()
				m.exec("ALTER TABLE triage_proposals DROP CONSTRAINT triage_proposals_origin_check") // triage does not propose all of these
				want := make(map[string]bool)
				for tool, of := range map[string]struct{ action, args string }{
					"message.trash":       {"trash", `{"account":"work","message":{"folder":"INBOX"},"expected":{"folder":"INBOX"}}`},
					"message.snooze":      {"snooze", `{"account":"work","message":{"folder":"INBOX"},"expected":{"folder":"INBOX"},"until":"2026-11-02T06:00:00Z"}`},
					"message.unsubscribe": {"unsubscribe", `{"account":"work","message":{"folder":"INBOX"}}`},
					"message.rsvp":        {"rsvp", `{"account":"work","message":{"folder":"INBOX"},"answer":"accepted"}`},
					"message.draft":       {"draft", `{"account":"work","to":["bob@example.org"]}`},
					"message.send":        {"send", `{"account":"work","to":["bob@example.org"]}`},
				} {
					m.exec(`INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, fields, envelope, proposal_id)
						SELECT tenant_id, x.id, account_id, message_id, $1, '[{"pointer":"/account","value":"work","origin":"config"}]',
							jsonb_build_object('type', 'mcp.exec', 'external_id', x.id, 'tool', jsonb_build_object('source', 'mail', 'name', $2::text), 'args', $3::jsonb), $4::uuid
						FROM triage_messages, (SELECT 'triage:' || encode(sha256(convert_to($2::text, 'UTF8')), 'hex') AS id) x WHERE header_id = 'n@x'`,
						of.action, tool, of.args, uuid.Must(uuid.NewV7()))
					want[of.action] = name != "read" && of.action != "draft" && of.action != "send"
				}

				if name == "moved" || name == "deleted" {
					want["unsubscribe"] = false
				}

				touch(m)
				m.once()

				for action, withdrawn := range want {
					if got := one[bool](m.fixture, "SELECT withdraw_at IS NOT NULL FROM triage_proposals WHERE action = $1", action); got != withdrawn {
						t.Errorf("%s: withdrawn %t, want %t", action, got, withdrawn)
					}
				}
			})
		}
	}
}
