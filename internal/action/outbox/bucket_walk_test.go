package outbox_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// grant is a permit that a bucket gave: when, as time passes here, and in
// which claim.
type grant struct {
	at    time.Time
	claim int
	day   int
}

// flying is an envelope that was claimed and not settled.
type flying struct {
	item    outbox.Item
	grant   grant
	expired bool
}

// queue is the model of a rate: permits are served one an interval, in the
// order of their grants, and a bucket is full when none waits.
type queue []grant

// left returns the number of free permits of a burst at a time, after a
// reservation from before the model began.
func (q queue) left(from, at time.Time, burst int, every time.Duration) int {
	end := from
	for _, g := range q {
		if g.at.After(end) {
			end = g.at
		}
		end = end.Add(every)
	}
	if end.Before(at) {
		end = at
	}
	return max(0, min(burst, int((at.Add(time.Duration(burst)*every).Sub(end))/every)))
}

// pacing takes random steps with a bucket and checks each against a model.
type pacing struct {
	fixture
	limits limits.Bucket
	// passed is the simulated time, by which stored times are behind the model's.
	passed time.Duration
	// from is the time at which the rate was free again when the limits were last
	// set.
	from time.Time
	// used are the permits granted under the current limits and not returned. lost
	// also has those returned after a later grant, which the bucket may keep.
	used, lost queue
	// claims counts the claims that returned items.
	claims int
	day    int
	flying []flying
	// expired are claims that counted until a lease ended when all their others had.
	expired map[int]bool
	due     int
}

// TestABucketNeverGivesMoreThanItsLimitsAndNeverLess lets claims, ends, time
// and changes of limits come in any order.
func TestABucketNeverGivesMoreThanItsLimitsAndNeverLess(t *testing.T) {
	t.Parallel()
	fx := newSharedFixture(t)

	rapid.Check(t, func(rt *rapid.T) {
		p := &pacing{fixture: fx, expired: make(map[int]bool)}
		p.change(rt)
		p.due = 60
		p.QueueIn(p.Bucket, envelope.EffectRead, p.due)
		steps := map[string]func(*rapid.T){
			"claim": p.claimSome, "claim again": p.claimSome, "end": p.endSome, "give back": p.returnSome, "give back again": p.returnSome,
			"expire": p.expireOne, "pass": p.passSome, "next day": p.nextDay, "change": p.changeSometimes,
		}
		for range rapid.IntRange(5, 30).Draw(rt, "steps") {
			steps[rapid.SampledFrom(slices.Sorted(maps.Keys(steps))).Draw(rt, "step")](rt)
		}
		p.rest(rt)
		if uneven := p.UnevenClaims(); len(uneven) > 0 {
			rt.Fatalf("claims differ from the outbox: %v", uneven)
		}
	})
}

// change sets other limits, of a bucket of its own the first time.
func (p *pacing) change(rt *rapid.T) {
	name := p.limits.Name
	if name == "" {
		name = envelope.NewActionID().String()
	}
	p.limits = limits.Bucket{Name: name}
	if rapid.Bool().Draw(rt, "rate") {
		n := rapid.IntRange(1, 12).Draw(rt, "limit")
		p.limits.Rate = &limits.Rate{Limit: n, Per: envelope.Duration(time.Hour), Burst: rapid.IntRange(1, n).Draw(rt, "burst")}
	}
	if rapid.Bool().Draw(rt, "calendar") {
		p.limits.Calendar = &limits.Calendar{Limit: rapid.IntRange(1, 12).Draw(rt, "a day"), Every: limits.PeriodDay}
	}
	if p.limits.Rate == nil && p.limits.Calendar == nil || rapid.Bool().Draw(rt, "ceiling") {
		p.limits.Concurrency = rapid.IntRange(1, 6).Draw(rt, "at once")
	}
	p.Bucket = p.put(p.limits)
	p.used, p.lost = nil, nil
	p.from = outboxtest.One[time.Time](p.Fixture, "SELECT coalesce(tat, '2000-01-01') FROM buckets WHERE bucket_id = $1", p.Bucket).Add(p.passed)
	// Calls in flight under the old limits hold a place only if those had a
	// ceiling, and count in the calendar; the walk settles them.
	for _, f := range p.flying {
		p.Settle(outboxtest.Sent(f.item))
	}
	p.flying = nil
	p.Exec("UPDATE buckets SET calendar_used = 0 WHERE bucket_id = $1", p.Bucket)
}

func (p *pacing) changeSometimes(rt *rapid.T) {
	if rapid.IntRange(0, 3).Draw(rt, "change") == 0 {
		p.change(rt)
	}
}

func (p *pacing) now() time.Time {
	return outboxtest.One[time.Time](p.Fixture, "SELECT clock_timestamp()").Add(p.passed)
}

func (p *pacing) every() time.Duration {
	return time.Duration(outboxtest.One[int64](p.Fixture, "SELECT (extract(epoch FROM bucket_interval(b)) * 1000000)::bigint FROM buckets b WHERE bucket_id = $1", p.Bucket)) * time.Microsecond
}

// held returns the number of places in use: an action whose lease ended holds its place
// while another of its claim may run.
func (p *pacing) held() (n int) {
	for _, f := range p.flying {
		if !p.expired[f.grant.claim] {
			n++
		}
	}
	return n
}

// today returns the number of permits granted today and not returned.
func today(q queue, day int) (n int) {
	for _, g := range q {
		if g.day == day {
			n++
		}
	}
	return n
}

// allowed returns the number of permits that the limits allow at a time, by a
// queue.
func (p *pacing) allowed(q queue, at time.Time, every time.Duration) int {
	n := 1 << 30
	if r := p.limits.Rate; r != nil {
		n = q.left(p.from, at, r.Burst, every)
	}
	if c := p.limits.Calendar; c != nil {
		n = min(n, c.Limit-today(q, p.day))
	}
	if c := p.limits.Concurrency; c > 0 {
		n = min(n, c-p.held())
	}
	return max(0, n)
}

func (p *pacing) claimSome(rt *rapid.T) {
	most := rapid.IntRange(1, 12).Draw(rt, "quota")
	var every time.Duration
	if p.limits.Rate != nil {
		every = p.every()
	}
	free := p.due
	for _, f := range p.flying {
		if f.expired {
			free++
		}
	}
	before := p.now()

	items := p.ask(p.Bucket, most)

	after := p.now()
	atLeast, atMost := min(most, free, p.allowed(p.lost, before, every)), min(most, free, p.allowed(p.used, after, every))
	if n := len(items); n < atLeast || n > atMost {
		rt.Fatalf("Claim(%d) has %d items, want %d to %d of %d that are due; limits %+v", most, n, atLeast, atMost, free, p.limits)
	}
	if len(items) > 0 {
		p.claims++
	}
	for _, it := range items {
		g := grant{it.Permit.GrantedAt.Add(p.passed), p.claims, p.day}
		before := len(p.flying)
		p.flying = slices.DeleteFunc(p.flying, func(f flying) bool { return f.item.Action == it.Action })
		if len(p.flying) == before { // not one whose lease expired
			p.due--
		}
		p.flying = append(p.flying, flying{item: it, grant: g})
		p.used, p.lost = append(p.used, g), append(p.lost, g)
	}
	if c := p.limits.Concurrency; c > 0 && len(items) > 0 && p.held() > c {
		rt.Fatalf("%d are on their way at once, want at most %d", p.held(), c)
	}
	p.windows(rt, every)
}

// windows checks every interval between two grants.
func (p *pacing) windows(rt *rapid.T, every time.Duration) {
	if p.limits.Rate == nil {
		return
	}
	for i := range p.used {
		for j := i; j < len(p.used); j++ {
			length := p.used[j].at.Sub(p.used[i].at)
			if n, most := j-i+1, p.limits.Rate.Burst+int(length/every); n > most {
				rt.Fatalf("%d permits were used within %v, want at most %d", n, length, most)
			}
		}
	}
}

// some returns a random part of the calls in flight.
func (p *pacing) some(rt *rapid.T) []flying {
	var alive []flying
	for _, f := range p.flying {
		if !f.expired {
			alive = append(alive, f)
		}
	}
	if len(alive) == 0 {
		return nil
	}
	from := rapid.IntRange(0, len(alive)-1).Draw(rt, "from")
	taken := alive[from:rapid.IntRange(from+1, len(alive)).Draw(rt, "to")]
	p.flying = slices.DeleteFunc(p.flying, func(f flying) bool {
		return slices.ContainsFunc(taken, func(g flying) bool { return g.item.Action == f.item.Action })
	})
	return taken
}

func (p *pacing) endSome(rt *rapid.T) {
	var batch []outbox.Settlement
	for _, f := range p.some(rt) {
		batch = append(batch, outboxtest.Sent(f.item))
	}
	p.Settle(batch...)
}

// returnSome puts envelopes back with unused permits.
func (p *pacing) returnSome(rt *rapid.T) {
	taken := p.some(rt)
	var batch []outbox.Settlement
	for _, f := range taken {
		batch = append(batch, outbox.Release(f.item))
	}
	if len(p.Settle(batch...)) != len(batch) {
		rt.Fatal("what was claimed could not be put back")
	}
	for _, f := range taken {
		at := func(g grant) bool { return g == f.grant }
		p.used = slices.Delete(p.used, slices.IndexFunc(p.used, at), slices.IndexFunc(p.used, at)+1)
		if f.grant.claim == p.claims && f.grant.day == p.day && p.limits.Calendar == nil {
			p.lost = slices.Delete(p.lost, slices.IndexFunc(p.lost, at), slices.IndexFunc(p.lost, at)+1)
		}
		p.Hasten(f.item.Action)
	}
	p.due += len(taken)
}

func (p *pacing) expireOne(rt *rapid.T) {
	if len(p.flying) > 0 {
		f := &p.flying[rapid.IntRange(0, len(p.flying)-1).Draw(rt, "lease")]
		p.Expire(f.item.Action)
		f.expired = true
		// Expire gives every claim the latest lease of the actions that it still has.
		for _, f := range p.flying {
			p.expired[f.grant.claim] = !slices.ContainsFunc(p.flying, func(g flying) bool { return g.grant.claim == f.grant.claim && !g.expired })
		}
	}
}

func (p *pacing) passSome(rt *rapid.T) {
	p.let(time.Duration(rapid.IntRange(1, 7200).Draw(rt, "seconds"))*time.Second, 0)
}

func (p *pacing) nextDay(*rapid.T) {
	p.let(24*time.Hour, 24*time.Hour)
	p.day++
}

// let lets time pass, for the leases too little of it.
func (p *pacing) let(by, calendar time.Duration) {
	p.Exec(`UPDATE buckets SET tat = tat - make_interval(secs => $2), updated_at = updated_at - make_interval(secs => $2),
			granted_at = granted_at - make_interval(secs => $2), calendar_from = calendar_from - make_interval(secs => $3) WHERE bucket_id = $1`, p.Bucket, by.Seconds(), calendar.Seconds())
	p.passed += by
	for i := range p.flying {
		p.flying[i].item = aged(p.flying[i].item, by)
	}
}

// rest checks that a bucket left alone recovers all its permits.
func (p *pacing) rest(rt *rapid.T) {
	for _, f := range p.flying {
		p.Settle(outboxtest.Sent(f.item))
	}
	p.flying = nil
	p.let(48*time.Hour, 48*time.Hour)
	p.day += 2
	want := p.due
	if r := p.limits.Rate; r != nil {
		want = min(want, r.Burst)
	}
	if c := p.limits.Calendar; c != nil {
		want = min(want, c.Limit)
	}
	if c := p.limits.Concurrency; c > 0 {
		want = min(want, c)
	}
	look := p.fixture.due(p.Bucket)
	if want > 0 && (look == nil || look.DueIn > 0) {
		rt.Fatalf("after two days a look says %+v, and %d may go", look, want)
	}
	if got := len(p.ask(p.Bucket, 1000)); got != want {
		rt.Fatalf("after two days %d were granted, want %d; limits %+v", got, want, p.limits)
	}
}
