package outbox_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// place is where the model thinks an envelope is.
type place struct {
	effect  envelope.Effect
	where   string // queued, ended or letter
	status  envelope.Status
	fence   int64
	leased  bool
	expired bool
	lost    bool
	sending bool
	unknown bool
	// attempts counts the settlements that record an attempt, rows the stored
	// ones.
	attempts, rows int
}

// walk takes random steps with a few envelopes and checks each against a
// model.
type walk struct {
	fixture
	model map[envelope.ActionID]*place
	// held are leases that were given out, by good and by stale claims alike.
	held []outbox.Item
	// limited reports whether the bucket has a ceiling, too high to matter.
	limited bool
}

func TestRandomWalksKeepTheInvariants(t *testing.T) {
	t.Parallel()
	fx := newSharedFixture(t)

	rapid.Check(t, func(rt *rapid.T) {
		w := &walk{fixture: fx, model: make(map[envelope.ActionID]*place)}
		w.Bucket, w.limited = fx.NewBucket(envelope.NewActionID().String()), rapid.Bool().Draw(rt, "limited")
		if w.limited {
			w.Exec("UPDATE buckets SET concurrency = 100 WHERE bucket_id = $1", w.Bucket)
		}
		for _, effect := range []envelope.Effect{envelope.EffectOnce, envelope.EffectKeyed} {
			for _, id := range w.QueueIn(w.Bucket, effect, 2) {
				w.model[id] = &place{effect: effect, where: "queued", status: envelope.StatusPending}
			}
		}
		steps := map[string]func(*rapid.T){
			"claim": w.claimSome, "start": w.startOne, "settle": w.settleOne, "expire": w.expireSome, "renew": w.renewSome,
			"undo": w.undoOne, "replay": w.replayOne,
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			steps[rapid.SampledFrom(slices.Sorted(maps.Keys(steps))).Draw(rt, "step")](rt)
		}
		w.check(rt)
	})
}

func (w *walk) any(rt *rapid.T) (envelope.ActionID, *place) {
	ids := slices.SortedFunc(maps.Keys(w.model), func(a, b envelope.ActionID) int { return slices.Compare(a[:], b[:]) })
	id := rapid.SampledFrom(ids).Draw(rt, "envelope")
	return id, w.model[id]
}

func (w *walk) claimSome(rt *rapid.T) {
	most := rapid.IntRange(1, 4).Draw(rt, "quota")
	free := 0
	for _, p := range w.model {
		if p.where == "queued" && (!p.leased || p.expired) {
			free++
		}
	}

	items := w.ClaimFrom(outbox.ClaimRequest{Bucket: w.Bucket, Quota: most, Limited: w.limited})

	if len(items) != min(free, most) {
		rt.Fatalf("Claim(%d) has %d items of %d that are free", most, len(items), free)
	}
	for _, it := range items {
		p := w.model[it.Action]
		if p == nil || p.where != "queued" || p.leased && !p.expired {
			rt.Fatalf("Claim has %s, which is %+v", it.Action, p)
		}
		if it.Fence <= p.fence || it.Attempt != p.attempts || it.Sending != p.sending {
			rt.Fatalf("Claim has %+v, the model %+v", it, p)
		}
		p.lost = p.lost || p.expired
		p.fence, p.leased, p.expired = it.Fence, true, false
	}
	w.held = append(w.held, items...)
}

func (w *walk) startOne(rt *rapid.T) {
	if len(w.held) == 0 {
		return
	}
	it := rapid.SampledFrom(w.held).Draw(rt, "lease")
	p := w.model[it.Action]

	started := w.Start(it.Lease)

	may := p.where == "queued" && p.fence == it.Fence && p.leased && !p.sending
	if (len(started) == 1) != may {
		rt.Fatalf("Start(%+v) = %v, the model %+v", it.Lease, started, p)
	}
	if may {
		p.sending, p.expired = true, false
	}
}

func (w *walk) settleOne(rt *rapid.T) {
	if len(w.held) == 0 {
		return
	}
	it := rapid.SampledFrom(w.held).Draw(rt, "lease")
	p := w.model[it.Action]
	how := map[string]outbox.Settlement{
		"sent": outboxtest.Sent(it), "failed": outboxtest.Failed(it), "again": outboxtest.Again(it, 0), "given back": outbox.Release(it),
		"skipped": outbox.Skip(it, "deadline", "late"), "lost": outbox.WorkerLost(it),
	}
	s := how[rapid.SampledFrom(slices.Sorted(maps.Keys(how))).Draw(rt, "how")]

	settled := w.Settle(s)

	holds := p.where == "queued" && p.fence == it.Fence && p.leased
	if (len(settled) == 1) != holds {
		rt.Fatalf("Settle(%+v) = %v, the model %+v", s, settled, p)
	}
	if !holds {
		return
	}
	p.leased, p.sending, p.expired, p.status, p.attempts = false, false, false, s.Status, s.Attempt
	if !s.Deferred {
		p.rows++
	}
	switch {
	case s.DeadLetter != "":
		p.where, p.unknown = "letter", s.DeadLetter == outbox.Unknown
	case s.Status != envelope.StatusPending:
		p.where = "ended"
	default:
		w.Hasten(it.Action)
	}
}

func (w *walk) expireSome(rt *rapid.T) {
	id, p := w.any(rt)
	w.Expire(id)
	if p.where == "queued" && p.leased {
		p.expired = true
	}
}

func (w *walk) renewSome(rt *rapid.T) {
	if len(w.held) == 0 {
		return
	}
	it := rapid.SampledFrom(w.held).Draw(rt, "lease")
	p := w.model[it.Action]

	n := w.Renew(it.Lease)

	holds := p.where == "queued" && p.fence == it.Fence && p.leased
	if (n == 1) != holds {
		rt.Fatalf("Renew(%+v) = %d, the model %+v", it.Lease, n, p)
	}
	if holds {
		p.expired = false
	}
}

func (w *walk) undoOne(rt *rapid.T) {
	id, p := w.any(rt)

	err := w.Undo(id)

	may := p.where == "queued" && !p.sending && (p.effect == envelope.EffectOnce || !p.leased && !p.lost)
	switch {
	case may && err != nil:
		rt.Fatalf("Undo = %v, the model %+v", err, p)
	case !may && !errors.Is(err, fault.Conflict):
		rt.Fatalf("Undo = %v, want fault.Conflict; the model %+v", err, p)
	case may:
		p.where, p.status, p.leased = "ended", envelope.StatusSkipped, false
		p.rows++
	}
}

func (w *walk) replayOne(rt *rapid.T) {
	id, p := w.any(rt)
	doubling := rapid.Bool().Draw(rt, "doubling")

	replayed, err := w.Replay(doubling, id)

	may := p.where == "letter" && (doubling || !p.unknown)
	switch {
	case may != (len(replayed) == 1):
		rt.Fatalf("Replay(doubling %t) = %v, %v, the model %+v", doubling, replayed, err, p)
	case err != nil && (p.where != "letter" || !errors.Is(err, fault.Conflict)):
		rt.Fatalf("Replay = %v, the model %+v", err, p)
	case may:
		*p = place{effect: p.effect, where: "queued", status: envelope.StatusPending, fence: p.fence, attempts: p.attempts, rows: p.rows, lost: p.unknown}
		w.Hasten(id)
	}
}

// check compares the database with the model.
func (w *walk) check(rt *rapid.T) {
	if uneven := w.UnevenClaims(); len(uneven) > 0 {
		rt.Fatalf("claims differ from the outbox: %v", uneven)
	}
	inUse := int64(0)
	for _, p := range w.model {
		if w.limited && p.where == "queued" && p.leased && !p.expired {
			inUse++
		}
	}
	// An action whose lease ended holds its place while another of its claim may run.
	if got := outboxtest.One[int64](w.Fixture, "SELECT bucket_in_use($1, now())", w.Bucket); got < inUse {
		rt.Fatalf("%d places are in use, want %d at least", got, inUse)
	}
	for id, p := range w.model {
		letter := false
		w.As(postgres.API(w.Tenant), func(tx pgx.Tx) error {
			_, err := deadletter.Get(w.T.Context(), tx, w.Tenant, id)
			letter = err == nil
			if errors.Is(err, fault.NotFound) {
				return nil
			}
			return err
		})
		if queued := w.Scheduled(id); queued != (p.where == "queued") || letter != (p.where == "letter") {
			rt.Fatalf("%s: on the schedule %t, dead letter %t, the model %+v", id, queued, letter, p)
		}
		want := p.status
		if p.where == "queued" && (p.sending || p.effect != envelope.EffectOnce && p.leased && !p.expired) {
			want = envelope.StatusSending
		}
		if got := w.View(id).Envelope.Result.Status; got != want {
			rt.Fatalf("%s is %s, the model %s: %+v", id, got, want, p)
		}
		rows, last := w.Attempts(id), 0
		if len(rows) != p.rows {
			rt.Fatalf("%s has %d stored attempts, the model %+v", id, len(rows), p)
		}
		for i, row := range rows {
			// A skip was no call, and repeats the number of the last attempt; one
			// in doubt is unknown.
			skipped := row.Status == envelope.StatusSkipped || row.Status == envelope.StatusUnknown && row.Code == "deadline"
			if row.Attempt != last+1 && !(row.Attempt == last && skipped) {
				rt.Fatalf("%s: stored row %d is attempt %d after %d", id, i, row.Attempt, last)
			}
			if i > 0 && row.FinishedAt.Before(rows[i-1].FinishedAt.Add(-time.Microsecond)) {
				rt.Fatalf("%s: the attempts are not in order", id)
			}
			last = row.Attempt
		}
	}
}
