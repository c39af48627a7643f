package approval_test

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// happening is something that changes who may approve an action.
type happening func(o fixture, id envelope.ActionID)

func happenings() map[string]happening {
	vote := func(name string) happening {
		return func(o fixture, id envelope.ActionID) {
			_, _ = o.service.Approve(o.t.Context(), o.person(name), id, approval.Approval{IfMatch: approval.ETag(o.view(id))})
		}
	}
	edit := func(name, args string) happening {
		return func(o fixture, id envelope.ActionID) {
			_ = o.service.Edit(o.t.Context(), o.person(name), id, approval.Edit{Args: []byte(args), IfMatch: approval.ETag(o.view(id))})
		}
	}
	list := func(tools []source.Tool) happening {
		return func(o fixture, _ envelope.ActionID) {
			o.as(func(ctx context.Context, tx pgx.Tx) error { return catalog.PutListing(ctx, tx, o.tenant, "src", tools) })
		}
	}
	rule := func(r settings.ReviewRule) happening {
		return func(o fixture, _ envelope.ActionID) {
			r.Pattern, r.Risk = "*", envelope.RiskLow
			o.as(func(ctx context.Context, tx pgx.Tx) error { return settings.PutReview(ctx, tx, o.tenant, r, "test") })
		}
	}
	return map[string]happening{
		"ada votes": vote("ada"), "bob votes": vote("bob"),
		"ada edits": edit("ada", `{"to":"ada@example.org"}`), "cyd edits": edit("cyd", `{"to":"cyd@example.org"}`),
		"the tool changes":     list(listing("changed")),
		"the tool goes":        list(nil),
		"the tool is as first": list(listing("as listed")),
		"policy denies":        func(o fixture, _ envelope.ActionID) { o.mode(envelope.ModeDeny) },
		"policy asks":          func(o fixture, _ envelope.ActionID) { o.mode(envelope.ModeRequireApproval) },
		"two must agree":       rule(settings.ReviewRule{Approvals: 2}),
		"three must agree":     rule(settings.ReviewRule{Approvals: 3}),
		"another looks":        rule(settings.ReviewRule{Approvals: 3, Edits: settings.EditsAnother}),
	}
}

// TestInboxPredictsApproval compares, for every person and many histories,
// may_decide and why_not with the result and the code of an approval.
func TestInboxPredictsApproval(t *testing.T) {
	t.Parallel()
	seen := make(map[wire.ProblemCode]int)
	all := happenings()
	names := slices.Sorted(maps.Keys(all))
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 8 {
		o := newFixture(t)
		o.review(2)
		id, people := o.accept(message(typo)).Action, o.people()
		var before []string
		for step := range 10 {
			next := names[random.IntN(len(names))]
			if step < 2 && n%2 == 0 { // makes rare histories more common
				next = []string{"another looks", "ada edits"}[step]
			}
			all[next](o, id)
			before = append(before, next)
			for _, who := range slices.Sorted(maps.Keys(people)) {
				if random.IntN(3) > 0 {
					continue
				}
				by := people[who]
				said := o.refusal(by, id)
				_, err := o.tryApprove(by, id)
				var want wire.ProblemCode
				if e, ok := errors.AsType[*fault.Error](err); ok {
					want = wire.ProblemCode(e.Code)
				} else if err != nil {
					t.Fatal(err)
				}
				if said != want && (said != notThere || want == "") {
					t.Fatalf("after %q the inbox tells %s %q, and approving answers %q (%v)", before, who, said, want, err)
				}
				seen[said]++
			}
		}
	}
	for _, reason := range []wire.ProblemCode{
		"", wire.CodeTools, wire.CodeOwnProposal, wire.CodeToolGone, wire.CodeDrift, wire.CodePolicyDenied, wire.CodeOwnEdit, wire.CodeVoted,
	} {
		if seen[reason] == 0 {
			t.Errorf("nobody was told %q: %v", reason, seen)
		}
	}
}

// people are the people who read the inbox; the last three may never approve.
func (o fixture) people() map[string]approval.Decider {
	own, narrow := o.decider("agent"), o.person("eve")
	own.Token = o.agent()
	narrow.Tools = []string{"other:*"}
	return map[string]approval.Decider{"ada": o.person("ada"), "bob": o.person("bob"), "cyd": o.person("cyd"), "dan": o.person("dan"), "the agent's token": own, "a narrow token": narrow}
}

// notThere is the refusal of an action that is no longer in the inbox.
const notThere = "not there"

func (o fixture) refusal(by approval.Decider, id envelope.ActionID) wire.ProblemCode {
	o.t.Helper()
	items, err := o.service.Inbox(o.t.Context(), by, approval.InboxQuery{Most: 10})
	if err != nil {
		o.t.Fatal(err)
	}
	for _, it := range items {
		if it.Action == id {
			return it.Refused
		}
	}
	return notThere
}

// errUndo takes a tried approval back.
var errUndo = errors.New("tried")

// tryApprove approves and takes that back.
func (o fixture) tryApprove(by approval.Decider, id envelope.ActionID) (done approval.Result, err error) {
	o.t.Helper()
	tag := approval.ETag(o.view(id))
	undo := pgx.BeginFunc(o.t.Context(), o.db.(interface {
		Begin(context.Context) (pgx.Tx, error)
	}), func(pgx.Tx) error {
		done, err = o.service.Approve(o.t.Context(), by, id, approval.Approval{IfMatch: tag})
		return errUndo
	})
	if !errors.Is(undo, errUndo) {
		o.t.Fatal(undo)
	}
	return done, err
}
