package breaker_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source/breaker"
)

// fixture is a tenant with sources.
type fixture struct {
	t       *testing.T
	db      postgres.Begins
	sources []breaker.Source
}

func newFixture(t *testing.T, db postgres.Begins, ids ...string) fixture {
	t.Helper()
	f := fixture{t: t, db: db}
	tenant := envelope.TenantID(uuid.Must(uuid.NewV7()))
	f.as(postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", tenant.String(), "t-"+tenant.String())
		for _, id := range ids {
			if err == nil {
				_, err = tx.Exec(t.Context(), "INSERT INTO sources (tenant_id, source_id, kind) VALUES ($1, $2, 'builtin')", tenant.String(), id)
			}
			f.sources = append(f.sources, breaker.Source{Tenant: tenant, ID: id})
		}
		return err
	})
	return f
}

func (f fixture) as(scope postgres.Scope, fn func(tx pgx.Tx) error) {
	f.t.Helper()
	if err := postgres.InTx(f.t.Context(), f.db, scope, fn); err != nil {
		f.t.Error(err)
	}
}

func (f fixture) openBreaker(of breaker.Source, why breaker.Cause, openFor time.Duration) {
	f.t.Helper()
	f.as(postgres.Worker(), func(tx pgx.Tx) error { return breaker.Open(f.t.Context(), tx, of, why, openFor, "w1") })
}

// elapse makes every breaker due for a probe.
func (f fixture) elapse() {
	f.t.Helper()
	f.as(postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(f.t.Context(), "UPDATE breakers SET open_until = now() - interval '1 second'")
		return err
	})
}

func (f fixture) notClosed() (all []breaker.OpenBreaker) {
	f.t.Helper()
	f.as(postgres.Worker(), func(tx pgx.Tx) (err error) {
		all, err = breaker.NotClosed(f.t.Context(), tx, f.sources[0].Tenant)
		return err
	})
	return all
}

func TestOpenBreakerIsNeverShortened(t *testing.T) {
	t.Parallel()
	f := newFixture(t, dbtest.Tx(t), "mail")

	f.openBreaker(f.sources[0], breaker.CauseRetryAfter, time.Hour)
	f.openBreaker(f.sources[0], breaker.CauseFailures, time.Minute) // another worker's own breaker

	all := f.notClosed()
	if len(all) != 1 || all[0].Openings != 1 || time.Until(all[0].Until) < 50*time.Minute {
		t.Errorf("NotClosed = %+v, want one opening that lasts an hour", all)
	}
}

func TestRequestedTimeIsNotDoubled(t *testing.T) {
	t.Parallel()
	f := newFixture(t, dbtest.Tx(t), "mail")
	src := f.sources[0]
	for range 3 {
		f.openBreaker(src, breaker.CauseFailures, time.Minute)
		f.elapse()
		f.as(postgres.Worker(), func(tx pgx.Tx) error {
			_, err := breaker.Probe(t.Context(), tx, f.sources, "w1", time.Minute)
			return err
		})
	}

	f.openBreaker(src, breaker.CauseRetryAfter, 10*time.Minute)

	all := f.notClosed()
	if len(all) != 1 || all[0].Cause != breaker.CauseRetryAfter {
		t.Fatalf("NotClosed = %+v, want one that asked for time", all)
	}
	if left := time.Until(all[0].Until); left < 9*time.Minute || left > 11*time.Minute {
		t.Errorf("the breaker is open for %v, want the ten minutes that it asked for", left)
	}
}

// TestProbesOfManySourcesDoNotDeadlock lets two workers probe the same sources,
// each in a different order, in long transactions.
func TestProbesOfManySourcesDoNotDeadlock(t *testing.T) {
	t.Parallel()
	const rounds = 30
	f := newFixture(t, dbtest.DB(t), "calendar", "chat", "mail", "tickets")
	for _, src := range f.sources {
		f.openBreaker(src, breaker.CauseFailures, time.Hour)
	}
	backwards := slices.Clone(f.sources)
	slices.Reverse(backwards)

	for range rounds {
		f.elapse()
		var mu sync.Mutex
		var both sync.WaitGroup
		won := make(map[breaker.Source]int)
		for worker, order := range map[string][]breaker.Source{"w1": f.sources, "w2": backwards} {
			both.Go(func() {
				var mine map[breaker.Source]bool
				// Not InTx, which would retry after a deadlock.
				tx, err := f.db.BeginTx(t.Context(), pgx.TxOptions{})
				if err == nil {
					if mine, err = breaker.Probe(t.Context(), tx, order, worker, time.Minute); err == nil {
						err = tx.Commit(t.Context())
					}
				}
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				for src := range mine {
					won[src]++
				}
			})
		}
		both.Wait()
		for _, src := range f.sources {
			if won[src] != 1 {
				t.Errorf("%d workers may probe %s, want one", won[src], src.ID)
			}
		}
	}
}
