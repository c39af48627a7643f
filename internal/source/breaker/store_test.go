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

// ward is a tenant with sources.
type ward struct {
	t       *testing.T
	db      postgres.Begins
	sources []breaker.Source
}

func newWard(t *testing.T, db postgres.Begins, ids ...string) ward {
	t.Helper()
	w := ward{t: t, db: db}
	tenant := envelope.TenantID(uuid.Must(uuid.NewV7()))
	w.as(postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), "INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", tenant.String(), "t-"+tenant.String())
		for _, id := range ids {
			if err == nil {
				_, err = tx.Exec(t.Context(), "INSERT INTO sources (tenant_id, source_id, kind) VALUES ($1, $2, 'builtin')", tenant.String(), id)
			}
			w.sources = append(w.sources, breaker.Source{Tenant: tenant, ID: id})
		}
		return err
	})
	return w
}

func (w ward) as(scope postgres.Scope, fn func(tx pgx.Tx) error) {
	w.t.Helper()
	if err := postgres.InTx(w.t.Context(), w.db, scope, fn); err != nil {
		w.t.Error(err)
	}
}

func (w ward) trip(of breaker.Source, why breaker.Cause, alone time.Duration) {
	w.t.Helper()
	w.as(postgres.Worker(), func(tx pgx.Tx) error { return breaker.Trip(w.t.Context(), tx, of, why, alone, "w1") })
}

// elapse lets every breaker's time run out.
func (w ward) elapse() {
	w.t.Helper()
	w.as(postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(w.t.Context(), "UPDATE breakers SET open_until = now() - interval '1 second'")
		return err
	})
}

func (w ward) standing() (all []breaker.Standing) {
	w.t.Helper()
	w.as(postgres.Worker(), func(tx pgx.Tx) (err error) {
		all, err = breaker.Of(w.t.Context(), tx, w.sources[0].Tenant)
		return err
	})
	return all
}

func TestALongerTimeIsNeverShortened(t *testing.T) {
	t.Parallel()
	w := newWard(t, dbtest.Tx(t), "mail")

	w.trip(w.sources[0], breaker.RetryAfter, time.Hour)
	w.trip(w.sources[0], breaker.Failures, time.Minute) // another worker's own breaker

	all := w.standing()
	if len(all) != 1 || all[0].Trips != 1 || time.Until(all[0].Until) < 50*time.Minute {
		t.Errorf("Of = %+v, want one opening that lasts an hour", all)
	}
}

func TestWhatASourceAskedForIsKeptAsItIs(t *testing.T) {
	t.Parallel()
	w := newWard(t, dbtest.Tx(t), "mail")
	src := w.sources[0]
	for range 3 {
		w.trip(src, breaker.Failures, time.Minute)
		w.elapse()
		w.as(postgres.Worker(), func(tx pgx.Tx) error {
			_, err := breaker.Probe(t.Context(), tx, w.sources, "w1", time.Minute)
			return err
		})
	}

	w.trip(src, breaker.RetryAfter, 10*time.Minute)

	all := w.standing()
	if len(all) != 1 || all[0].Cause != breaker.RetryAfter {
		t.Fatalf("Of = %+v, want one that asked for time", all)
	}
	if left := time.Until(all[0].Until); left < 9*time.Minute || left > 11*time.Minute {
		t.Errorf("it is left alone for %v, want the ten minutes that it asked for", left)
	}
}

// TestProbesOfManySourcesDoNotStandInEachOthersWay has two workers ask for the
// same sources, each in an order of its own, in transactions that last.
func TestProbesOfManySourcesDoNotStandInEachOthersWay(t *testing.T) {
	t.Parallel()
	const rounds = 30
	w := newWard(t, dbtest.DB(t), "calendar", "chat", "mail", "tickets")
	for _, src := range w.sources {
		w.trip(src, breaker.Failures, time.Hour)
	}
	backwards := slices.Clone(w.sources)
	slices.Reverse(backwards)

	for range rounds {
		w.elapse()
		var mu sync.Mutex
		var both sync.WaitGroup
		won := make(map[breaker.Source]int)
		for worker, order := range map[string][]breaker.Source{"w1": w.sources, "w2": backwards} {
			both.Go(func() {
				var mine map[breaker.Source]bool
				// Not InTx, which would try again after a deadlock.
				tx, err := w.db.BeginTx(t.Context(), pgx.TxOptions{})
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
		for _, src := range w.sources {
			if won[src] != 1 {
				t.Errorf("%d workers may probe %s, want one", won[src], src.ID)
			}
		}
	}
}
