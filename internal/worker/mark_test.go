package worker_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

// The database refuses the first commit of a mark, after the statement that
// marks has returned its rows. Nothing may be sent on the word of the
// statement: another worker would find the envelope unmarked, and send it too.
func TestNothingIsSentBeforeItsMarkIsCommitted(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.exec("CREATE SEQUENCE countersign_data.marks")
	y.exec("GRANT USAGE ON SEQUENCE marks TO countersign_worker")
	y.exec(`CREATE FUNCTION countersign_data.refuse_first() RETURNS trigger LANGUAGE plpgsql AS
		'BEGIN IF nextval(''marks'') = 1 THEN RAISE ''no commit this time'' USING ERRCODE = ''57P01''; END IF; RETURN NULL; END'`)
	y.exec(`CREATE CONSTRAINT TRIGGER refuse_first AFTER UPDATE ON outbox DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.status = 'sending') EXECUTE FUNCTION refuse_first()`)
	ids := y.submit(toolOnce, 3)
	var unmarked atomic.Int64
	byKey := make(map[string]string)
	for _, id := range ids {
		byKey[y.key(id)] = id.String()
	}
	y.src.On(toolOnce, func(_ context.Context, call source.Call) sourcetest.Step {
		unmarked.Add(one[int64](y, "SELECT count(1) FROM outbox WHERE action_id = $1 AND status <> 'sending'", byKey[call.Key]))
		return sourcetest.Done(`{}`)
	})

	y.work()

	if n := unmarked.Load(); n != 0 {
		t.Errorf("calls went out while %d envelopes were not marked", n)
	}
	if n := one[int64](y, "SELECT last_value FROM marks"); n < 4 {
		t.Fatalf("the marks were tried %d times, want the refused ones and then three more", n)
	}
	for _, id := range ids {
		if got := y.effects(id); got != 1 {
			t.Errorf("%s took effect %d times, want once", id, got)
		}
	}
}

// TestAClaimAndItsMarkAreOneTransaction holds that a call of class once takes no
// commit more than another before it is sent.
func TestAClaimAndItsMarkAreOneTransaction(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.exec("CREATE TABLE countersign_data.updates (tx xid8, status text)")
	y.exec(`CREATE FUNCTION countersign_data.record_update() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS
		'BEGIN INSERT INTO countersign_data.updates VALUES (pg_current_xact_id(), NEW.status); RETURN NULL; END'`)
	y.exec("CREATE TRIGGER record_update AFTER UPDATE ON outbox FOR EACH ROW EXECUTE FUNCTION record_update()")
	y.submit(toolOnce, 1)

	y.work()

	got := one[string](y, "SELECT string_agg(status, ' then ' ORDER BY status) FROM updates GROUP BY tx")
	if want := "pending then sending"; got != want {
		t.Errorf("a transaction updated the row to %s, want %s", got, want)
	}
}
