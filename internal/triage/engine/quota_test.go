package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/engine"
)

// TestQuotaOutlivesTheProcess has two engines, one after the
// other, read an account, of which the first took bytes of the day.
func TestQuotaOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deliver("", newsletter("one@garden.example").raw())
	day := quota.Provider{Name: "test", Limits: []quota.Limit{{Of: quota.Bytes, Most: 1_000_000, Per: 24 * time.Hour}}}
	with := func(b *quota.Bucket) func(*engine.Config) {
		return func(c *engine.Config) { c.Quota = func(account.Account) *quota.Bucket { return b } }
	}
	first, second := quota.New(day), quota.New(day)
	if err := first.TakeBytes(t.Context(), 250_000); err != nil {
		t.Fatal(err)
	}

	if err := f.engine(with(first)).Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := f.engine(with(second)).Once(t.Context()); err != nil {
		t.Fatal(err)
	}

	if left := second.State().Levels[0].Left; left < 50_000 || left > 60_000 {
		t.Errorf("%d bytes are left in the second process, want little more than 50,000 of 300,000", left)
	}
}

// TestStatusShowsAClosedBucket has a reader that the server has limited.
func TestStatusShowsAClosedBucket(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bucket := quota.New(quota.Provider{Name: "test"})
	opened := f.open
	f.open = func(ctx context.Context, a account.Account) (mailbox.Reader, error) {
		if err := bucket.Close("the server's limit was reached", time.Hour); err != nil {
			return nil, err
		}
		return opened(ctx, a)
	}

	err := f.engine(func(c *engine.Config) { c.Quota = func(account.Account) *quota.Bucket { return bucket } }).Once(t.Context())

	if !errors.Is(err, mailbox.ErrBusy) {
		t.Fatalf("Once = %v, want busy", err)
	}
	if !one[bool](f, `SELECT next_run_at > now() + interval '55 minutes' AND (quota ->> 'until')::timestamptz > now() + interval '55 minutes'
		AND quota ->> 'reason' = 'the server''s limit was reached' FROM triage_schedules`) {
		t.Errorf("the schedule is %s", one[string](f, "SELECT to_jsonb(s)::text FROM triage_schedules s"))
	}
}
