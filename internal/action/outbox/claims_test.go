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
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// endings are the statements that delete a row of the outbox or put it back, each with
// a way to it for two actions that were claimed together. A new statement needs one.
func endings() map[string]func(fx fixture, items []outbox.Item) {
	return map[string]func(fx fixture, items []outbox.Item){
		"outboxSettleFinal": func(fx fixture, items []outbox.Item) {
			fx.Settle(outboxtest.Sent(items[0]), outboxtest.Failed(items[1]))
		},
		"OutboxSettleBack": func(fx fixture, items []outbox.Item) {
			fx.Settle(outbox.Release(items[0]), outboxtest.Again(items[1], time.Hour))
		},
		"OutboxUndo": func(fx fixture, items []outbox.Item) {
			for _, it := range items {
				if err := fx.Undo(it.Action); err != nil {
					fx.T.Error(err)
				}
			}
		},
		"OutboxCancel": func(fx fixture, items []outbox.Item) {
			fx.Expire(outboxtest.ActionsOf(items)...)
			fx.Exec(`INSERT INTO pauses (pause_id, tenant_id, scope, subject, kill, reason, paused_by, killed_at)
				VALUES ($1, $2, 'tool', 'src:tool', true, 'test', 'ada', now() + interval '1 second')`, uuid.Must(uuid.NewV7()).String(), fx.Tenant.String())
			fx.As(postgres.Worker(), func(tx pgx.Tx) error {
				sweeps, err := outbox.Sweeps(fx.T.Context(), tx, 10)
				for _, s := range sweeps {
					_, _, err = s.Step(fx.T.Context(), tx, outbox.SweepCursor{}, 100)
				}
				return err
			})
		},
		"OutboxReturnToApproval": func(fx fixture, items []outbox.Item) {
			fx.As(postgres.Worker().Planned(), func(tx pgx.Tx) error {
				var returns []outbox.ApprovalReturn
				for _, it := range items {
					returns = append(returns, outbox.ApprovalReturn{Lease: it.Lease, ToolDigest: []byte{0}, Needed: 1, Wait: time.Hour})
				}
				_, err := outbox.ReturnToApproval(fx.T.Context(), tx, returns)
				return err
			})
		},
		"OutboxRecover": nil, // in internal/action/fence
		"OutboxClaim": func(fx fixture, items []outbox.Item) { // again, without a ceiling
			fx.Expire(outboxtest.ActionsOf(items)...)
			fx.Exec("UPDATE buckets SET concurrency = NULL WHERE bucket_id = $1", items[0].Bucket)
			if again := fx.ClaimFrom(outbox.ClaimRequest{Bucket: items[0].Bucket, Quota: 2}); len(again) != 2 {
				fx.T.Errorf("%d were claimed again", len(again))
			}
		},
	}
}

// keeping are the statements that change a row of the outbox and leave it in its claim.
func keeping() []string {
	return []string{"DeadLetterSpread", "OutboxEndWait", "OutboxReassert", "OutboxRenew", "OutboxStart", "OutboxWake"}
}

// statements returns the statements of a source, by name.
func statements(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	switch filepath.Ext(file) {
	case ".sql":
		if !strings.Contains(file, "queries") {
			return map[string]string{filepath.Base(file): string(text)}
		}
		for _, query := range strings.Split(string(text), "-- name: ")[1:] {
			found[regexp.MustCompile(`^\w+`).FindString(query)] = query
		}
	case ".go":
		for _, match := range regexp.MustCompile("(?s)(\\w+) :?= `([^`]*)`").FindAllStringSubmatch(string(text), -1) {
			found[match[1]] = match[2]
		}
		if regexp.MustCompile(`"[^"\n]*(DELETE FROM|UPDATE) outbox\b`).Match(text) {
			found[file] = "DELETE FROM outbox"
		}
	}
	return found
}

func TestEveryStatementThatEndsOrReturnsAnActionSubtractsItFromItsClaim(t *testing.T) {
	t.Parallel()
	root := "../../.."
	var files []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		switch name := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (name == "node_modules" || name == "dbsqlc" || name == "bench" || name == "web" || name == ".git" || strings.HasSuffix(name, "test") && path != root):
			return filepath.SkipDir
		case filepath.Ext(name) == ".sql" || filepath.Ext(name) == ".go" && !strings.HasSuffix(name, "_test.go"):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	writes, removes := regexp.MustCompile(`(DELETE FROM|UPDATE) (countersign_data\.|public\.)?outbox\b`), regexp.MustCompile(`DELETE FROM (\w+\.)?outbox\b|\bclaim_id = (NULL|CASE)`)
	var ends, keeps []string
	for _, file := range files {
		for name, sql := range statements(t, file) {
			subtracts := regexp.MustCompile(`(?s)INSERT INTO bucket_claims.*-count\(1\)`).MatchString(sql)
			switch {
			case !writes.MatchString(sql):
			case removes.MatchString(sql):
				ends = append(ends, name)
				if !subtracts {
					t.Errorf("%s does not subtract from bucket_claims", name)
				}
			default:
				keeps = append(keeps, name)
			}
		}
	}
	slices.Sort(ends)
	slices.Sort(keeps)

	if diff := cmp.Diff(slices.Sorted(maps.Keys(endings())), ends); diff != "" {
		t.Errorf("statements that end or return actions (-listed +in the code):\n%s", diff)
	}
	if diff := cmp.Diff(keeping(), keeps); diff != "" {
		t.Errorf("other statements that change the outbox (-listed +in the code):\n%s", diff)
	}
}

func TestEveryWayOutOfAClaimFreesItsPlaces(t *testing.T) {
	t.Parallel()
	for name, end := range endings() {
		if end == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			b := fx.put(ceiling(3))
			fx.QueueIn(b, envelope.EffectOnce, 3)
			items := fx.ask(b, 3)
			if len(items) != 3 || fx.inUse(b) != 3 {
				t.Fatalf("%d were claimed, %d are in use", len(items), fx.inUse(b))
			}

			end(fx, items[:2])

			if uneven := fx.UnevenClaims(); len(uneven) > 0 {
				t.Errorf("claims differ from the outbox: %v", uneven)
			}
			if got := fx.inUse(b); got != 1 {
				t.Errorf("%d places are in use, want 1", got)
			}
			fx.Settle(outboxtest.Sent(items[2]))
			fx.put(ceiling(3))
			fx.ask(b, 0)
			if left := outboxtest.One[int64](fx.Fixture, "SELECT count(1) FROM bucket_claims"); left != 0 {
				t.Errorf("a claim left %d rows of claims without actions", left)
			}
		})
	}
}

// inUse returns the number of places of a bucket in use.
func (fx fixture) inUse(bucket int64) int64 {
	return outboxtest.One[int64](fx.Fixture, "SELECT bucket_in_use($1, now())", bucket)
}

func TestAClaimCountsUntilItsLastLeaseEnds(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	b := fx.put(ceiling(2))
	fx.QueueIn(b, envelope.EffectOnce, 3)
	items := fx.ask(b, 2)
	fx.Exec("UPDATE outbox SET lease_until = now() - interval '1 second'; UPDATE bucket_claims SET lease_until = now() - interval '1 second'")
	if got := fx.inUse(b); got != 0 {
		t.Fatalf("%d are in use after the leases ended", got)
	}

	fx.Renew(items[0].Lease, items[1].Lease)

	if got := fx.inUse(b); got != 2 {
		t.Errorf("%d are in use after a late renewal, want 2", got)
	}
	if more := fx.ask(b, 2); len(more) != 0 {
		t.Errorf("%d more were granted", len(more))
	}
}

// TestWorkersOfTheLastReleaseShareTheLimit has actions claimed as by a worker that sets
// held and writes no bucket_claims.
func TestWorkersOfTheLastReleaseShareTheLimit(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	b := fx.put(ceiling(4))
	ids := fx.QueueIn(b, envelope.EffectOnce, 6)
	fx.Exec("UPDATE outbox SET held = true, fence = fence + 1, lease_until = now() + interval '1 minute' WHERE action_id = ANY ($1::uuid[])", outboxtest.Texts(ids[:2]))
	granted := func() int64 { // as such a worker computes it
		return outboxtest.One[int64](fx.Fixture, `SELECT greatest(0, least(bucket_permits(b, now(), t.timezone),
			b.concurrency - (SELECT count(1) FROM outbox o WHERE o.bucket_id = b.bucket_id AND o.held AND o.lease_until >= now())))
			FROM buckets b JOIN tenants t USING (tenant_id) WHERE bucket_id = $1`, b)
	}
	if got := granted(); got != 2 {
		t.Errorf("it grants %d beside its own 2 calls, want 2", got)
	}

	items := fx.ask(b, 6)

	if len(items) != 2 || granted() != 0 {
		t.Fatalf("%d were granted beside 2 calls of the other worker, which then grants %d; want 2 and 0", len(items), granted())
	}
	fx.Exec("DELETE FROM outbox WHERE action_id = $1", ids[0].String()) // it settles one
	fx.Settle(outboxtest.Sent(items[0]))
	if got := granted(); got != 2 {
		t.Errorf("it grants %d after an end of each, want 2", got)
	}
	fx.Expire(ids[1])
	if again := fx.ask(b, 6); len(again) != 3 || fx.inUse(b) != 4 {
		t.Errorf("%d were granted after a lease of the other worker ended, %d are in use; want 3 and 4", len(again), fx.inUse(b))
	}
}
