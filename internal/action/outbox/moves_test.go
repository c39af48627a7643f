package outbox_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/source"
)

// move is a transition that a statement makes.
type move struct {
	from  envelope.Status
	event envelope.Event
}

// sqlMoves lists the state transitions that each query makes. A query without
// any writes a state chosen in Go (by envelope.Next or envelope.NextApproval),
// or the initial state.
func sqlMoves() map[string][]move {
	const pending, sending = envelope.StatusPending, envelope.StatusSending
	return map[string][]move{
		"OutboxClaim":            {{pending, envelope.EventClaim}, {sending, envelope.EventClaim}},
		"OutboxStart":            {{pending, envelope.EventStart}},
		"OutboxUndo":             {{pending, envelope.EventUndo}},
		"OutboxCancel":           {{pending, envelope.EventSkip}, {pending, envelope.EventLose}, {sending, envelope.EventLose}},
		"OutboxRecover":          {{pending, envelope.EventLose}, {sending, envelope.EventLose}},
		"OutboxReassert":         {{pending, envelope.EventStart}},
		"OutboxReturnToApproval": {{pending, envelope.EventDefer}},
		"OutboxEnqueue": {
			{envelope.StatusFailed, envelope.EventReplay}, {envelope.StatusUnknown, envelope.EventReplay}, {envelope.StatusUnknown, envelope.EventResolvePending},
		},
		"ActionWithdraw":    {{pending, envelope.EventUndo}},
		"ActionsCancel":     {{pending, envelope.EventSkip}},
		"ActionsExpire":     {{pending, envelope.EventSkip}},
		"ActionInsertAlike": nil, // the initial state
		"ActionInsertMany":  nil, // the same
		"ActionsDecide":     nil, // envelope.NextApproval
		"OutboxSettleBack":  nil, // Item.settle
		"outboxSettleFinal": nil, // Item.settle
		"ToolExecutionNote": nil, // envelope.Next, in deadletter.Resolve
	}
}

// writers finds the statements that change the status or the approval of an
// action.
func writers(t *testing.T) map[string]string {
	t.Helper()
	writes := regexp.MustCompile(`INSERT INTO (actions|outbox|tool_executions)\b|DELETE FROM outbox\b|SET (approval_state|status|lease_until) =|,\s+status =`)
	name := regexp.MustCompile(`^(\w+)`)
	found := make(map[string]string)
	files, err := filepath.Glob("../../../db/queries/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("queries: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, query := range strings.Split(string(text), "-- name: ")[1:] {
			if writes.MatchString(query) {
				found[name.FindString(query)] = query
			}
		}
	}
	sources, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	constant := regexp.MustCompile("(?s)const (\\w+) = `([^`]*)`")
	for _, file := range sources {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range constant.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasSuffix(file, "_test.go") && writes.MatchString(match[2]) {
				found[match[1]] = match[2]
			}
		}
	}
	delete(found, "OutboxRenew")         // renews a lease
	delete(found, "SubscriptionMatches") // another table's status
	delete(found, "TriageHold")          // another table's lease
	delete(found, "TriageRenew")
	return found
}

func TestEveryStatementThatWritesAStatusIsListed(t *testing.T) {
	t.Parallel()
	found, listed := writers(t), sqlMoves()

	if diff := cmp.Diff(slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(found))); diff != "" {
		t.Errorf("statements that write a status (-listed +in the code):\n%s", diff)
	}
	literal := regexp.MustCompile(`'(pending|sending|sent|conflict|failed|skipped|unknown)'`)
	for query, moves := range listed {
		leads := map[string]bool{"pending": true, "sending": true} // also conditions on the row
		for _, m := range moves {
			to, err := envelope.Next(m.from, m.event)
			if err != nil {
				t.Errorf("%s makes a move that the table does not have: %v", query, err)
			}
			leads[string(to)] = true
		}
		for _, word := range literal.FindAllStringSubmatch(found[query], -1) {
			if !leads[word[1]] {
				t.Errorf("%s writes %s, where none of its moves leads", query, word[1])
			}
		}
	}
}

// goMoves returns the transitions of every settlement, found by making each of
// every item, and checks that none is without a row in the table.
func goMoves(t *testing.T) map[move]bool {
	t.Helper()
	made := make(map[move]bool)
	see := func(from envelope.Status, s outbox.Settlement, events ...envelope.Event) {
		for _, ev := range events {
			if to, err := envelope.Next(from, ev); err == nil && to == s.Status {
				made[move{from, ev}] = true
				return
			}
		}
		t.Errorf("a settlement leads from %s to %s, and none of %v does", from, s.Status, events)
	}
	for _, effect := range []envelope.Effect{envelope.EffectRead, envelope.EffectIdempotent, envelope.EffectKeyed, envelope.EffectOnce} {
		for _, lost := range []int{0, 1} {
			for _, attempt := range []int{0, 2} {
				it := outbox.Item{Effect: effect, LeasesLost: lost, Attempt: attempt, MaxAttempts: 3}
				row, called := envelope.StatusPending, envelope.StatusPending
				if effect == envelope.EffectOnce {
					called = envelope.StatusSending
				}
				fail := []envelope.Event{envelope.EventFail, envelope.EventLose}
				after := func(out source.Outcome, events ...envelope.Event) {
					see(called, outbox.SettlementOf(it, out, time.Second, outbox.DefaultRetry()), events...)
				}
				after(source.Outcome{Kind: source.KindDone}, envelope.EventSucceed)
				after(source.Outcome{Kind: source.KindConflict}, envelope.EventConflict)
				after(source.Outcome{Kind: source.KindUnknown}, envelope.EventLose)
				after(source.Outcome{Kind: source.KindRefused}, fail...)
				after(source.Outcome{Kind: source.KindRetry}, append(fail, envelope.EventRetry)...)
				after(source.Outcome{Kind: source.KindRetry, Deferred: true}, envelope.EventDefer)
				see(row, outbox.Release(it), envelope.EventRelease)
				see(row, outbox.Defer(it, "bucket", 0), envelope.EventDefer)
				see(row, outbox.Skip(it, "deadline", ""), envelope.EventSkip, envelope.EventLose)
				see(row, outbox.TooManyLeasesLost(it), fail...)
				if effect == envelope.EffectOnce {
					it.Sending = true
					see(envelope.StatusSending, outbox.WorkerLost(it), envelope.EventLose)
					see(envelope.StatusSending, outbox.Release(it), envelope.EventRelease)
					see(envelope.StatusSending, outbox.Skip(it, "deadline", ""), envelope.EventSkip)
				}
			}
		}
	}
	return made
}

func TestEveryMoveOfTheTableIsMade(t *testing.T) {
	t.Parallel()
	made := goMoves(t)
	for _, moves := range sqlMoves() {
		for _, m := range moves {
			made[m] = true
		}
	}
	// deadletter.Resolve calls envelope.Next.
	made[move{envelope.StatusUnknown, envelope.EventResolveSent}] = true
	made[move{envelope.StatusUnknown, envelope.EventResolveFailed}] = true

	for _, from := range statusesOfTheTable() {
		for _, ev := range envelope.Events() {
			if _, err := envelope.Next(from, ev); err == nil && !made[move{from, ev}] {
				t.Errorf("nothing makes the move %s from %s", ev, from)
			}
		}
	}
}

func statusesOfTheTable() []envelope.Status {
	return []envelope.Status{
		envelope.StatusPending, envelope.StatusSending, envelope.StatusSent, envelope.StatusConflict, envelope.StatusFailed,
		envelope.StatusSkipped, envelope.StatusUnknown,
	}
}
