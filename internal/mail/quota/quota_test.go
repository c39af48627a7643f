package quota_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
)

func provider(of quota.Resource, most int64, per time.Duration) quota.Provider {
	return quota.Provider{Name: "test", Limits: []quota.Limit{{Of: of, Most: most, Per: per}}, Costs: map[quota.Operation]int{quota.Read: 5}}
}

func named(t *testing.T, name string) quota.Provider {
	t.Helper()
	p, ok := quota.Named(name)
	if !ok {
		t.Fatalf("no provider %s", name)
	}
	return p
}

// TestNoPeriodExceedsTheShare has a greedy reader take all that it gets,
// and counts the units of every period that begins with one of them.
func TestNoPeriodExceedsTheShare(t *testing.T) {
	t.Parallel()

	for _, name := range quota.Names() {
		for _, limit := range named(t, name).Limits {
			t.Run(fmt.Sprintf("%s %s in %s", name, limit.Of, limit.Per), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					const steps = 400
					b := quota.New(quota.Provider{Name: name, Limits: []quota.Limit{limit}, Costs: map[quota.Operation]int{quota.Read: int(limit.Most/steps) + 1}})
					var at []time.Time
					for began := time.Now(); time.Since(began) < 3*limit.Per && len(at) < 4*steps; {
						err := take(t.Context(), b, limit)
						if wait := mailbox.RetryAfter(err); wait > 0 {
							time.Sleep(wait)
							continue
						}
						if err != nil {
							t.Fatal(err)
						}
						at = append(at, time.Now())
					}
					most, from := 0, 0
					for to := range at {
						for at[to].Sub(at[from]) >= limit.Per {
							from++
						}
						most = max(most, to-from+1)
					}
					taken := float64(most) * float64(limit.Most/steps+1) / float64(limit.Most)
					if taken > quota.Share+2.0/steps || taken < quota.Share/2 {
						t.Errorf("%.3f of the limit were taken in one period, want at most %v", taken, quota.Share)
					}
				})
			})
		}
	}
}

func take(ctx context.Context, b *quota.Bucket, l quota.Limit) error {
	if l.Of == quota.Bytes {
		return b.TakeBytes(ctx, l.Most/400+1)
	}
	return b.Take(ctx, quota.Read)
}

func TestTakeWaitsBrieflyOrReturnsTheTimeToRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := quota.New(provider(quota.Units, 100, time.Minute)) // a burst of 10, then 50 a minute
		for range 2 {
			if err := b.Take(t.Context(), quota.Read); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		if err := b.Take(t.Context(), quota.Read); err != nil || time.Since(began) != 6*time.Second {
			t.Errorf("the third reading came after %s, %v; want 6s", time.Since(began), err)
		}
		slow := quota.New(provider(quota.Units, 100, time.Hour)) // a burst of 30, then 30 an hour
		for range 6 {
			if err := slow.Take(t.Context(), quota.Read); err != nil {
				t.Fatal(err)
			}
		}
		err := slow.Take(t.Context(), quota.Read)
		if !errors.Is(err, mailbox.ErrBusy) || mailbox.RetryAfter(err).Round(time.Second) != 10*time.Minute || !strings.Contains(err.Error(), "60 % of the 100 units") {
			t.Errorf("the seventh reading: %v, want busy for ten minutes", err)
		}
		if s := slow.State(); s.Until == nil || !s.Until.Equal(time.Now().Add(10*time.Minute)) {
			t.Errorf("state %+v, want it closed for ten minutes", s)
		}
	})
}

func TestCancelledWaitTakesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := quota.New(provider(quota.Units, 100, time.Minute))
		for range 2 {
			if err := b.Take(t.Context(), quota.Read); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.Take(ctx, quota.Read); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Take = %v, want the end of the context", err)
		}
		began := time.Now()
		if err := b.Take(t.Context(), quota.Read); err != nil || time.Since(began).Round(time.Second) > 6*time.Second {
			t.Errorf("the next one came after %s, %v", time.Since(began), err)
		}
	})
}

func TestClosedBucketRejectsEveryOperation(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ asked, least, most time.Duration }{
		"no time":       {0, 45 * time.Second, 75 * time.Second},
		"a time":        {time.Hour, time.Hour, 75 * time.Minute},
		"too long":      {1000 * time.Hour, 24 * time.Hour, 30 * time.Hour},
		"a past time":   {-time.Hour, 45 * time.Second, 75 * time.Second},
		"a short while": {time.Second, time.Second, 1250 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := quota.New(quota.Provider{})
				after := mailbox.RetryAfter(b.Close("a reason", row.asked))
				if after < row.least || after > row.most {
					t.Errorf("closed for %s, want %s to %s", after, row.least, row.most)
				}
				b.Close("another reason", time.Millisecond) // does not open it
				err := b.Take(t.Context(), quota.Command)
				if mailbox.RetryAfter(err) != after || !strings.Contains(err.Error(), "a reason") {
					t.Errorf("Take = %v, want busy for %s", err, after)
				}
				if err := b.TakeBytes(t.Context(), 1); !errors.Is(err, mailbox.ErrBusy) {
					t.Errorf("TakeBytes = %v, want busy", err)
				}
				time.Sleep(after)
				if err := b.Take(t.Context(), quota.Command); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestStateSurvivesTheProcess takes half of the burst of a day, and checks
// that a second process cannot take more than the rest.
func TestStateSurvivesTheProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := provider(quota.Bytes, 1000, 24*time.Hour) // a burst of 300, then 300 a day
		first := quota.New(p)
		if err := first.TakeBytes(t.Context(), 200); err != nil {
			t.Fatal(err)
		}
		stored, err := json.Marshal(first.State())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * time.Hour) // refills 100
		var s quota.State
		if err := json.Unmarshal(stored, &s); err != nil {
			t.Fatal(err)
		}
		second := quota.New(p)
		second.Restore(s)
		second.Restore(s) // another account of the same mailbox
		if left := second.State().Levels[0].Left; left != 200 {
			t.Errorf("%d bytes are left, want 200", left)
		}
		err = second.TakeBytes(t.Context(), 300)
		if wait := mailbox.RetryAfter(err); wait.Round(time.Minute) != 8*time.Hour {
			t.Errorf("TakeBytes = %v, want busy for 8h", err)
		}
		third := quota.New(quota.Provider{Name: "another"})
		third.Restore(second.State())
		if err := third.Take(t.Context(), quota.Command); mailbox.RetryAfter(err).Round(time.Minute) != 8*time.Hour {
			t.Errorf("after another restart: Take = %v, want busy for 8h", err)
		}
	})
}

func TestMailboxesShareTheLimitsOfAProvider(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r quota.Registry
		p := provider(quota.Units, 100, time.Hour)
		p.Limits[0].Shared = true
		ann, ben := r.Bucket(p, "ann"), r.Bucket(p, "ben")
		if r.Bucket(p, "ann") != ann || ann == ben {
			t.Error("buckets are not by mailbox")
		}
		for i := range 6 {
			if err := []*quota.Bucket{ann, ben}[i%2].Take(t.Context(), quota.Read); err != nil {
				t.Fatal(err)
			}
		}
		if err := ann.Take(t.Context(), quota.Read); !errors.Is(err, mailbox.ErrBusy) {
			t.Errorf("Take = %v, want the share of both to be taken", err)
		}
		other := provider(quota.Units, 100, time.Hour)
		other.Name = "another"
		own := r.Bucket(other, "ann")
		if err := own.Take(t.Context(), quota.Read); err != nil {
			t.Errorf("Take = %v", err)
		}
	})
}

func TestProvidersOfHosts(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]string{"imap.gmail.com": "gmail-imap", "IMAP.Gmail.com.": "gmail-imap", "imap.example.com": quota.Other, "imap.gmail.com.example": quota.Other} {
		if got := quota.OfIMAP(host).Name; got != want {
			t.Errorf("OfIMAP(%q) = %s, want %s", host, got, want)
		}
	}
}
