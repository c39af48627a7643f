package worker_test

import (
	"testing"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// pollRarely makes the worker poll only when it is woken.
func (y *fixture) pollRarely() {
	y.t.Helper()
	cfg := config("w1")
	cfg.Poll, cfg.BacklogPoll = 2*txTimeout, 2*txTimeout
	y.run(y.pipeline(y.db, y.src, cfg))
}

func TestFreedPlaceIsTakenWithoutPolling(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.bucket(limits.Bucket{Name: "slow", Concurrency: 2})
	p := proposal(in("slow"))
	y.propose(p, p, p, p, p, p, p)

	y.pollRarely()
	y.empty()

	if got := len(y.src.Calls()); got != 7 {
		t.Errorf("%d calls were made, want 7", got)
	}
}

// TestUnusedPermitIsTakenWithoutPolling has the only permit of an hour go first
// to envelopes that may not be sent now.
func TestUnusedPermitIsTakenWithoutPolling(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	asleep := newEmployee()
	y.quiet(limits.QuietEmployee, asleep.String())
	y.bucket(limits.Bucket{Name: "slow", Rate: &limits.Rate{Limit: 1, Per: envelope.Duration(time.Hour)}})
	waiting := proposal(by(asleep), in("slow"))
	y.propose(waiting, waiting, waiting, waiting, waiting)
	awake := y.propose(proposal(in("slow")))[0]

	y.pollRarely()
	y.until("SELECT EXISTS (SELECT FROM tool_executions WHERE action_id = $1 AND status = 'sent')", awake.String())
}

// TestAnUndoneEnvelopeLeavesItsPlace undoes an envelope between the claim and
// the call.
func TestAnUndoneEnvelopeLeavesItsPlace(t *testing.T) {
	t.Parallel()
	y := newFixture(t)
	y.bucket(limits.Bucket{Name: "slow", Concurrency: 1})
	p := proposal(in("slow"))
	ids := y.propose(p, p, p)
	y.exec(`CREATE FUNCTION countersign_data.undone() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
		IF NEW.status = 'sending' AND NEW.action_id = TG_ARGV[0]::uuid THEN
			DELETE FROM outbox WHERE action_id = OLD.action_id;
			INSERT INTO bucket_claims (tenant_id, bucket_id, claim_id, n) VALUES (OLD.tenant_id, OLD.bucket_id, OLD.claim_id, -1);
			RETURN NULL;
		END IF; RETURN NEW; END $$`)
	y.exec("CREATE TRIGGER undone BEFORE UPDATE ON outbox FOR EACH ROW EXECUTE FUNCTION undone('" + ids[0].String() + "')")

	y.pollRarely()
	y.empty()

	if got := len(y.src.Calls()); got != 2 {
		t.Errorf("%d calls were made, want 2", got)
	}
}
