package timeline_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/insight/timeline"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// life is the only action of a tenant.
type life struct {
	ctx     context.Context
	db      *pgxpool.Pool
	tenant  envelope.TenantID
	service *approval.Service
	token   uuid.UUID
	action  envelope.ActionID
}

// begin proposes the action under a mode of policy, in a new tenant.
func begin(ctx context.Context, db *pgxpool.Pool, mode envelope.Mode, needed int) (*life, error) {
	cache := settings.NewCache()
	l := &life{ctx: ctx, db: db, tenant: envelope.TenantID(uuid.Must(uuid.NewV7())), service: approval.New(db, cache, approval.Config{})}
	err := l.in(postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", l.tenant.String(), "t-"+l.tenant.String())
		for _, name := range []string{"ana", "bo"} {
			_, failed := tx.Exec(ctx, "INSERT INTO operators (tenant_id, operator_id, name, role_set) VALUES ($1, $2, $3, 'operator')", l.tenant.String(), l.person(name).Token.String(), name)
			err = errors.Join(err, failed)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var agent identity.Issued
	err = l.in(postgres.API(l.tenant), func(tx pgx.Tx) error {
		agent, err = identity.Issue(ctx, tx, l.tenant, identity.Grant{Name: "agent", Role: identity.RoleAgent, Session: "s"}, time.Now())
		return errors.Join(err,
			catalog.PutSource(ctx, tx, l.tenant, catalog.Source{ID: "src", Kind: catalog.KindBuiltin, Enabled: true}),
			catalog.PutListing(ctx, tx, l.tenant, "src", []source.Tool{{Name: "act", InputSchema: json.RawMessage(`{"type":"object"}`)}}),
			settings.PutMode(ctx, tx, l.tenant, "", "*", mode, "test"),
			settings.PutReview(ctx, tx, l.tenant, settings.ReviewRule{Pattern: "*", Risk: envelope.RiskLow, Approvals: needed}, "test"))
	})
	if err != nil {
		return nil, err
	}
	l.token = uuid.UUID(agent.Principal.Token)
	by := intake.Submitter{Tenant: l.tenant, Token: l.token, Name: "agent", Session: "s", Names: identity.EveryName()}
	answers, err := intake.New(db, cache, intake.Config{ApprovalWait: time.Hour}).Accept(ctx, by, []*envelope.Proposal{{
		Type: envelope.TypeExec, ExternalID: "one", Tool: envelope.Tool{Source: "src", Name: "act"}, Args: json.RawMessage(`{"n":0}`),
	}})
	if err == nil {
		l.action, err = answers[0].Action, answers[0].Err
	}
	return l, err
}

func (l *life) in(scope postgres.Scope, fn func(tx pgx.Tx) error) error {
	return postgres.InTx(l.ctx, l.db, scope, fn)
}

func (l *life) view() (v outbox.View, err error) {
	return v, l.in(postgres.API(l.tenant), func(tx pgx.Tx) error {
		all, err := outbox.Get(l.ctx, tx, l.tenant, l.action)
		if err == nil {
			v = all[0]
		}
		return err
	})
}

// person returns one of two deciders; each has one token.
func (l *life) person(name string) approval.Decider {
	return approval.Decider{Tenant: l.tenant, Token: uuid.NewSHA1(uuid.UUID(l.tenant), []byte(name)), Name: name}
}

func (l *life) actor(name string) envelope.Actor {
	return envelope.NewActor(name, l.person(name).Token, uuid.Nil)
}

// claim claims the action if it is due, and calls fn to end the claim.
func (l *life) claim(fn func(tx pgx.Tx, it outbox.Item) error) error {
	return l.in(postgres.Worker(), func(tx pgx.Tx) error {
		var bucket int64
		if err := tx.QueryRow(l.ctx, "SELECT bucket_id FROM actions WHERE tenant_id = $1", l.tenant.String()).Scan(&bucket); err != nil {
			return err
		}
		items, err := outbox.Claim(l.ctx, tx, outbox.Mark{}, []outbox.ClaimRequest{{Bucket: bucket, Quota: 1}}, time.Minute)
		if err != nil || len(items) == 0 {
			return err
		}
		return fn(tx, items[0])
	})
}

// settle ends the next attempt.
func (l *life) settle(status envelope.Status, took time.Duration, reason outbox.Reason) error {
	return l.claim(func(tx pgx.Tx, it outbox.Item) error {
		s := outbox.Settlement{Lease: it.Lease, Status: status, Attempt: it.Attempt + 1, Took: took, DeadLetter: reason, Code: "code"}
		if _, err := outbox.Settle(l.ctx, tx, outbox.Mark{}, "w1", []outbox.Settlement{s}); err != nil {
			return err
		}
		return audit.Write(l.ctx, tx, audit.Event{Tenant: l.tenant, Kind: audit.Settled, Actor: "worker/w1", Items: []audit.Item{{Action: l.action, Status: status, Attempt: it.Attempt + 1}}})
	})
}

// returned returns the action to approval.
func (l *life) returned() error {
	return l.claim(func(tx pgx.Tx, it outbox.Item) error {
		_, err := outbox.ReturnToApproval(l.ctx, tx, []outbox.ApprovalReturn{{Lease: it.Lease, ToolDigest: it.ToolDigest, Needed: 1, Wait: time.Hour, Note: "policy changed"}})
		return errors.Join(err, audit.Write(l.ctx, tx, audit.Event{Tenant: l.tenant, Kind: audit.ReturnedToApproval, Actor: "worker/w1", Items: []audit.Item{{Action: l.action}}}))
	})
}

// kill engages the kill switch, and lifts it.
func (l *life) kill() error {
	of := pause.Target{Scope: pause.Tenant}
	err := l.in(postgres.API(l.tenant), func(tx pgx.Tx) error {
		_, err := pause.Set(l.ctx, tx, l.tenant, pause.Order{Target: of, Kill: true, Reason: "stop", By: l.actor("ana")})
		return err
	})
	for range 2 {
		err = errors.Join(err, l.in(postgres.Worker(), func(tx pgx.Tx) error {
			sweeps, err := outbox.Sweeps(l.ctx, tx, 100)
			for i := range sweeps {
				_, _, e := sweeps[i].Step(l.ctx, tx, outbox.SweepCursor{}, 100)
				err = errors.Join(err, e)
			}
			return err
		}))
	}
	return errors.Join(err, l.in(postgres.API(l.tenant), func(tx pgx.Tx) error {
		return pause.Lift(l.ctx, tx, l.tenant, of, "over", l.actor("ana"))
	}))
}

// remind records a reminder, whose kind is that of the column.
func (l *life) remind(column string) error {
	err := l.in(postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(l.ctx, "UPDATE approvals SET "+column+" = now() WHERE tenant_id = $1 AND warned_at IS NULL AND escalated_at IS NULL", l.tenant.String())
		return err
	})
	_, again := approval.Remind(l.ctx, l.db, 100)
	return errors.Join(err, again)
}

// expire ends the wait for approval.
func (l *life) expire() error {
	err := l.in(postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(l.ctx, "UPDATE actions SET approval_expires_at = now() - interval '1 second' WHERE tenant_id = $1 AND approval_state = 'required'", l.tenant.String())
		return err
	})
	_, again := approval.Expire(l.ctx, l.db, 100)
	return errors.Join(err, again)
}

// dead runs a bulk request on the dead letter.
func (l *life) dead(do func(tx pgx.Tx, req deadletter.BulkRequest) error) error {
	return l.in(postgres.API(l.tenant), func(tx pgx.Tx) error {
		return do(tx, deadletter.BulkRequest{IDs: []envelope.ActionID{l.action}, Limit: 1, Actor: l.actor("bo"), Note: "why"})
	})
}

// steps returns all steps in the life of an action. An impossible step changes
// nothing.
func (l *life) steps() map[string]func() error {
	vote := func(name string) func() error {
		return func() error {
			v, err := l.view()
			if err == nil {
				_, err = l.service.Approve(l.ctx, l.person(name), l.action, approval.Approval{Note: "fine", IfMatch: approval.ETag(v)})
			}
			return err
		}
	}
	resolve := func(r deadletter.Resolution) func() error {
		return func() error {
			r.Actor, r.Note = l.actor("bo"), "looked"
			return l.in(postgres.API(l.tenant), func(tx pgx.Tx) error { return deadletter.Resolve(l.ctx, tx, l.tenant, l.action, r) })
		}
	}
	return map[string]func() error{
		"ana agrees": vote("ana"), "bo agrees": vote("bo"),
		"bo denies": func() error {
			v, err := l.view()
			return errors.Join(err, l.service.Deny(l.ctx, l.person("bo"), l.action, approval.Denial{Note: "no", IfMatch: approval.ETag(v)}))
		},
		"ana edits": func() error {
			v, err := l.view()
			args := fmt.Sprintf(`{"n":%d}`, time.Now().UnixNano())
			return errors.Join(err, l.service.Edit(l.ctx, l.person("ana"), l.action, approval.Edit{Args: json.RawMessage(args), Note: "better", IfMatch: approval.ETag(v)}))
		},
		"warned": func() error { return l.remind("warn_at") }, "escalated": func() error { return l.remind("escalate_at") },
		"nobody decides": l.expire, "returned": l.returned, "killed": l.kill,
		"sent":    func() error { return l.settle(envelope.StatusSent, time.Millisecond, "") },
		"retried": func() error { return l.settle(envelope.StatusPending, time.Millisecond, "") },
		"failed":  func() error { return l.settle(envelope.StatusFailed, time.Millisecond, outbox.Refused) },
		"lost":    func() error { return l.settle(envelope.StatusUnknown, time.Millisecond, outbox.Unknown) },
		"skipped": func() error { return l.settle(envelope.StatusSkipped, 0, "") },
		"undone": func() error {
			return l.in(postgres.API(l.tenant), func(tx pgx.Tx) error {
				return outbox.Undo(l.ctx, tx, l.tenant, l.action, envelope.NewActor("agent", l.token, uuid.Nil))
			})
		},
		"replayed": func() error {
			return l.dead(func(tx pgx.Tx, req deadletter.BulkRequest) error {
				_, err := deadletter.Replay(l.ctx, tx, l.tenant, req, deadletter.ReplayOptions{AllowDuplicates: true})
				return err
			})
		},
		"discarded": func() error {
			return l.dead(func(tx pgx.Tx, req deadletter.BulkRequest) error {
				_, err := deadletter.Discard(l.ctx, tx, l.tenant, req)
				return err
			})
		},
		"resolved": resolve(deadletter.Resolution{Happened: true}), "runs again": resolve(deadletter.Resolution{}), "given up": resolve(deadletter.Resolution{GiveUp: true}),
	}
}

// do makes a step. An impossible step is not an error.
func (l *life) do(step string) error {
	err := l.steps()[step]()
	for _, kind := range []error{fault.NotFound, fault.Conflict, fault.Denied, fault.Gone, fault.Stale} {
		if errors.Is(err, kind) {
			return nil
		}
	}
	return err
}

func (l *life) history() (items []wire.HistoryItem, err error) {
	v, err := l.view()
	if err != nil {
		return nil, err
	}
	return items, l.in(postgres.API(l.tenant), func(tx pgx.Tx) error {
		items, err = timeline.HistoryOf(l.ctx, tx, l.tenant, v)
		return err
	})
}

// line is one line of a history.
func line(kind wire.HistoryKind, actor envelope.Actor) string {
	if name, token, _ := actor.Parts(); token != uuid.Nil {
		return string(kind) + " by " + name
	}
	return string(kind)
}

// told returns the history as recorded in all events, in the order of commits.
func (l *life) told() ([]string, error) {
	var lines []string
	return lines, l.in(postgres.API(l.tenant), func(tx pgx.Tx) error {
		rows, err := tx.Query(l.ctx, "SELECT e.kind, e.actor, e.items FROM events e ORDER BY e.txid, e.event_id")
		if err != nil {
			return err
		}
		var kind audit.Kind
		var by envelope.Actor
		var items []audit.Item
		_, err = pgx.ForEachRow(rows, []any{&kind, &by, &items}, func() error {
			for _, it := range items {
				if it.Action == l.action {
					lines = append(lines, kindsOf(kind, it, by)...)
				}
			}
			items = nil
			return nil
		})
		return err
	})
}

// kindsOf returns the lines of one event.
func kindsOf(kind audit.Kind, it audit.Item, by envelope.Actor) []string {
	decided := map[envelope.Approval]wire.HistoryKind{
		envelope.ApprovalGranted: wire.HistoryApproved, envelope.ApprovalDenied: wire.HistoryDenied, envelope.ApprovalExpired: wire.HistoryExpired,
	}
	switch {
	case kind == audit.Proposed && it.Approval == envelope.ApprovalRequired:
		return []string{line(wire.HistoryProposed, by), "asked"}
	case kind == audit.Proposed && it.Approval == envelope.ApprovalDenied:
		return []string{line(wire.HistoryProposed, by), "denied"}
	case kind == audit.Decided:
		return []string{line(decided[it.Approval], by)}
	case kind == audit.Settled && it.Status == envelope.StatusSkipped:
		return []string{line(wire.HistoryEnded, by)}
	case kind == audit.Settled:
		return []string{line(wire.HistoryAttempt, by)}
	}
	return []string{line(wire.HistoryKind(kind), by)} // the others have the same words
}

// TestHistoryMatchesTheEvents compares the history of a random life, which is
// composed from rows, with its events.
func TestHistoryMatchesTheEvents(t *testing.T) {
	t.Parallel()
	db := dbtest.DB(t)
	modes := []envelope.Mode{envelope.ModeAllow, envelope.ModeRequireApproval, envelope.ModeRequireApproval, envelope.ModeDeny}
	rapid.Check(t, func(t *rapid.T) {
		l, err := begin(context.Background(), db, rapid.SampledFrom(modes).Draw(t, "mode"), rapid.IntRange(1, 2).Draw(t, "needed"))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for name := range l.steps() {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, step := range rapid.SliceOfN(rapid.SampledFrom(names), 4, 12).Draw(t, "steps") {
			if err := l.do(step); err != nil {
				t.Fatalf("%s: %v", step, err)
			}
		}

		items, err := l.history()
		want, also := l.told()
		if err := errors.Join(err, also); err != nil {
			t.Fatal(err)
		}

		var got []string
		for i, it := range items {
			if it.Kind == wire.HistoryWaits {
				if i != len(items)-1 {
					t.Errorf("what it waits for is not the last: %+v", items)
				}
				continue
			}
			got = append(got, line(it.Kind, it.Actor))
		}
		if !slices.Equal(got, want) {
			t.Errorf("history:\n%q, the events tell\n%q", got, want)
		}
		if !slices.IsSortedFunc(items, func(a, b wire.HistoryItem) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) }) {
			t.Errorf("not in the order of time: %+v", items)
		}
	})
}
