package approval_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// TestEditorMayApprove covers editors as voters, with and without a review rule
// that requires other people. Votes before the edit do not count, and a person's
// edit and vote are one approval.
func TestEditorMayApprove(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rule settings.ReviewRule
		// votes reports whether the editors also vote.
		votes bool
	}{
		"one person decides":               {settings.ReviewRule{Approvals: 1}, true},
		"another is to look at edits":      {settings.ReviewRule{Approvals: 1, Edits: settings.EditsAnother}, false},
		"two must agree":                   {settings.ReviewRule{Approvals: 2}, true},
		"two must agree, another at edits": {settings.ReviewRule{Approvals: 2, Edits: settings.EditsAnother}, false},
		"three must agree":                 {settings.ReviewRule{Approvals: 3}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newFixture(t)
			test.rule.Pattern, test.rule.Risk = "*", envelope.RiskLow
			o.as(func(ctx context.Context, tx pgx.Tx) error {
				return settings.PutReview(ctx, tx, o.tenant, test.rule, "test")
			})
			needed := test.rule.Approvals
			args := []byte(`{"to":"mallory@example.org"}`)
			together, id := o.accept(message(typo)).Action, o.accept(message(typo)).Action
			agree := func(name string, id envelope.ActionID) error {
				_, err := o.service.Approve(t.Context(), o.person(name), id, approval.Approval{IfMatch: approval.ETag(o.view(id))})
				return err
			}

			if needed > 1 { // a vote for the original version
				if err := agree("bob", together); err != nil {
					t.Fatal(err)
				}
			}
			_, err := o.service.Approve(t.Context(), o.person("ada"), together, approval.Approval{Args: args, IfMatch: approval.ETag(o.view(together))})
			if errors.Is(err, fault.Denied) == test.votes || (o.scheduled(together) == 1) != (test.votes && needed == 1) {
				t.Errorf("edited and approved at once = %v, scheduled %d times", err, o.scheduled(together))
			}
			for _, editor := range []string{"ada", "bob"} {
				if err := o.service.Edit(t.Context(), o.person(editor), id, approval.Edit{Args: args, IfMatch: approval.ETag(o.view(id))}); err != nil {
					t.Fatal(err)
				}
				args = []byte(`{"to":"eve@example.org"}`)
			}
			agreed := 0
			for _, name := range []string{"ada", "bob", "cyd", "dan", "eli"} {
				want := error(nil)
				if !test.votes && agreed == 0 && (name == "ada" || name == "bob") {
					want = fault.Denied
				} else if agreed++; agreed > needed {
					break
				}
				if err := agree(name, id); !errors.Is(err, want) {
					t.Errorf("%s agrees = %v, want %v", name, err, want)
				}
				if agreed > 0 && agreed < needed {
					if err := agree(name, id); !errors.Is(err, fault.Conflict) {
						t.Errorf("%s agrees again = %v, want fault.Conflict", name, err)
					}
				}
				if got := o.scheduled(id) == 1; got != (agreed == needed) {
					t.Errorf("after %d votes of %d it is scheduled: %t", agreed, needed, got)
				}
			}
		})
	}
}

func (o fixture) votes(id envelope.ActionID) (votes []wire.Vote) {
	o.t.Helper()
	o.as(func(ctx context.Context, tx pgx.Tx) (err error) {
		votes, err = approval.Votes(ctx, tx, o.tenant, id)
		return err
	})
	return votes
}

func TestTwoPeopleMustAgree(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	o.review(2)
	id := o.propose(1)[0]

	first, err := o.service.Approve(t.Context(), o.person("ada"), id, approval.Approval{Note: "fine"})
	if err != nil || first.Approval != envelope.ApprovalRequired || first.Given != 1 || first.Needed != 2 || o.scheduled(id) != 0 || o.woken.Load() != 0 {
		t.Errorf("the first vote = %+v, %v, want one of two and nothing else", first, err)
	}
	if err := o.grant(o.person("ada"), id, ""); !errors.Is(err, fault.Conflict) {
		t.Errorf("the same person again, with another token = %v, want fault.Conflict", err)
	}
	second, err := o.service.Approve(t.Context(), o.person("bob"), id, approval.Approval{Note: "by me too"})
	if err != nil || second.Approval != envelope.ApprovalGranted || second.Given != 2 || o.scheduled(id) != 1 || o.woken.Load() != 1 {
		t.Errorf("the second vote = %+v, %v", second, err)
	}

	if o.told(audit.Voted, id) != 1 || o.told(audit.Decided, id) != 1 {
		t.Errorf("%d votes and %d decisions are told of, want one of each", o.told(audit.Voted, id), o.told(audit.Decided, id))
	}
	votes := o.votes(id)
	if len(votes) != 2 || !isOf(votes[0].By, "ada") || votes[0].Note != "fine" || !isOf(votes[1].By, "bob") || votes[1].Decision != envelope.DecisionGrant {
		t.Errorf("votes = %+v", votes)
	}
}

func TestOneDenialIsEnough(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	o.review(3)
	id := o.propose(1)[0]
	if err := o.grant(o.person("ada"), id, ""); err != nil {
		t.Fatal(err)
	}

	err := o.service.Deny(t.Context(), o.person("ada"), id, approval.Denial{Note: "on second thoughts"})

	if v := o.view(id); err != nil || v.Phase != envelope.PhaseDenied || v.DecisionNote != "on second thoughts" || len(o.votes(id)) != 2 {
		t.Errorf("Deny = %v, and it is %s with %d votes", err, v.Phase, len(o.votes(id)))
	}
}

// TestNobodyApprovesTheirOwnProposal uses several tokens of the same person.
func TestNobodyApprovesTheirOwnProposal(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	ada := uuid.Must(uuid.NewV7())
	answers, err := o.in.Accept(t.Context(), intake.Submitter{Tenant: o.tenant, Token: o.agent(), Person: ada, Name: "ada", Names: identity.EveryName()}, []*envelope.Proposal{message(typo)})
	if err != nil || answers[0].Err != nil {
		t.Fatalf("Accept = %+v, %v", answers, err)
	}
	id := answers[0].Action

	for name, by := range map[string]approval.Decider{
		"the token itself":       {Tenant: o.tenant, Token: o.agent(), Name: "ada"},
		"another token of hers":  {Tenant: o.tenant, Token: uuid.New(), Person: ada, Name: "ada"},
		"her login":              {Tenant: o.tenant, Token: ada, Person: ada, Name: "ada"},
		"her token, said as one": {Tenant: o.tenant, Token: o.agent(), Person: ada, Name: "ada"},
	} {
		granted, denied := o.grant(by, id, ""), o.service.Deny(t.Context(), by, id, approval.Denial{})
		edited := o.service.Edit(t.Context(), by, id, approval.Edit{Args: []byte(`{"n":1}`)})
		if !errors.Is(granted, fault.Denied) || !errors.Is(denied, fault.Denied) || !errors.Is(edited, fault.Denied) {
			t.Errorf("decisions by %s = %v, %v, %v, want fault.Denied", name, granted, denied, edited)
		}
	}
	if err := o.grant(o.person("bob"), id, ""); err != nil {
		t.Errorf("a decision by somebody else = %v", err)
	}
}

// TestPolicyChangeVoidsVotes: who agreed before policy changed agreed to
// something else.
func TestPolicyChangeVoidsVotes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(o fixture)
		needed int
	}{
		"a rule set anew":  {func(o fixture) { o.mode(envelope.ModeRequireApproval) }, 2},
		"three, not two":   {func(o fixture) { o.review(3) }, 3},
		"one, and not two": {func(o fixture) { o.review(1) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newFixture(t)
			o.review(2)
			id := o.propose(1)[0]
			if err := o.grant(o.person("ada"), id, ""); err != nil {
				t.Fatal(err)
			}

			test.change(o)

			for n, who := range []string{"ada", "bob", "cyd"}[:test.needed] {
				s, err := o.service.Approve(t.Context(), o.person(who), id, approval.Approval{})
				if want := n+1 == test.needed; err != nil || s.Given != n+1 || s.Needed != test.needed || (s.Approval == envelope.ApprovalGranted) != want {
					t.Errorf("vote %d after the change = %+v, %v", n+1, s, err)
				}
			}
			if o.scheduled(id) != 1 {
				t.Errorf("it is scheduled %d times", o.scheduled(id))
			}
		})
	}
}

func TestABatchAnswersForEach(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	ids := o.propose(5)
	o.overdue(ids[1])
	if err := o.service.Deny(t.Context(), o.person("bob"), ids[2], approval.Denial{}); err != nil {
		t.Fatal(err)
	}
	batch := []envelope.ActionID{ids[0], ids[1], ids[2], envelope.NewActionID(), ids[0], ids[3], ids[4]}
	seen := map[envelope.ActionID]string{ids[3]: approval.ETag(o.view(ids[3])), ids[4]: "of another time"}

	all, err := o.service.ApproveMany(t.Context(), o.person("ada"), batch, "", seen)

	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []fault.Kind{"", fault.Gone, fault.Conflict, fault.NotFound, fault.Conflict, "", fault.Stale} {
		if got := all[i]; got.Action != batch[i] || fault.KindOf(got.Err) != want || (want == "") != (got.Approval == envelope.ApprovalGranted) {
			t.Errorf("answer %d = %+v, want fault %q", i, got, want)
		}
	}
	if o.woken.Load() != 1 || o.scheduled(ids[0]) != 1 || o.scheduled(ids[3]) != 1 || o.scheduled(ids[4]) != 0 {
		t.Errorf("the fleet was woken %d times", o.woken.Load())
	}
	if n := one[int](o, "SELECT count(1)::int FROM events WHERE kind = 'decided' AND actor LIKE 'ada (token %'"); n != 1 {
		t.Errorf("a batch left %d events, want 1", n)
	}
	if _, err := o.service.DenyMany(t.Context(), o.person("ada"), make([]envelope.ActionID, approval.MaxBatch+1), "", nil); !errors.Is(err, fault.Invalid) {
		t.Errorf("a batch that is too large = %v, want fault.Invalid", err)
	}
}

// TestABatchOfVotes: who has voted for some of a batch still votes for the
// rest of it.
func TestABatchOfVotes(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	o.review(2)
	ids := o.propose(3)
	vote := func(name string, ids ...envelope.ActionID) (counted int) {
		t.Helper()
		all, err := o.service.ApproveMany(t.Context(), o.person(name), ids, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			switch {
			case s.Err == nil:
				counted++
			case !errors.Is(s.Err, fault.Conflict):
				t.Errorf("%s = %v, want nil or fault.Conflict", s.Action, s.Err)
			}
		}
		return counted
	}

	if got := vote("ada", ids[0], ids[1], ids[0]); got != 2 || o.woken.Load() != 0 {
		t.Errorf("%d votes counted, and %d wake-ups, want 2 and none", got, o.woken.Load())
	}
	if got := vote("ada", ids...); got != 1 {
		t.Errorf("%d votes counted, want the one that was new", got)
	}
	if got := vote("bob", ids...); got != 3 || o.scheduled(ids[0])+o.scheduled(ids[1])+o.scheduled(ids[2]) != 3 {
		t.Errorf("%d votes counted, want the second of each", got)
	}
}

func TestAlwaysGrantsFurtherActions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		always        approval.Always
		like, unlike  *envelope.Proposal
		detail, owner string
	}{
		"of the session":               {approval.Always{}, message(typo), with(message(typo), func(p *envelope.Proposal) { p.SessionID = "s2" }), "s1", "session_id"},
		"by default, a longer list":    {approval.Always{}, message(typo), message(`{"to":"anna@example.org","tags":["a","b","c"]}`), "s1", "session_id"},
		"by default, another argument": {approval.Always{}, message(typo), message(`{"to":"anna@example.org","tags":["a","b"],"copies":1}`), "s1", "session_id"},
		"of the automation": {approval.Always{Scope: approval.ScopeAutomation}, with(message(typo), func(p *envelope.Proposal) { p.SessionID = "s2" }),
			with(message(typo), func(p *envelope.Proposal) { p.AutomationID = "" }), "nightly", "automation_id"},
		"with one argument loose":    {approval.Always{Loose: []string{"/tags"}}, message(`{"to":"anna@example.org"}`), message(`{"to":"anna@example.org","copies":1}`), "s1", "session_id"},
		"with every argument loose":  {approval.Always{Loose: []string{""}}, message(`{"to":"bo@example.org","copies":1}`), with(message(typo), func(p *envelope.Proposal) { p.SessionID = "s2" }), "s1", "session_id"},
		"with one argument pinned":   {approval.Always{Pins: []string{"/to"}}, message(`{"to":"anna@example.org"}`), message(`{"to":"bo@example.org"}`), "s1", "session_id"},
		"with a pin, and more given": {approval.Always{Pins: []string{"/to"}}, message(`{"to":"anna@example.org","tags":[]}`), message(`{"to":"anna@example.org","copies":1}`), "s1", "session_id"},
		"with a pin into a list":     {approval.Always{Pins: []string{"/to", "/tags/0"}}, message(typo), message(`{"to":"anna@example.org","tags":["a","c"]}`), "s1", "session_id"},
		"with all arguments pinned": {approval.Always{Scope: approval.ScopeTenant, Pins: []string{""}}, with(message(typo), func(p *envelope.Proposal) { p.SessionID = "s2" }),
			message(`{"to":"anna@example.org","tags":["a","b"],"copies":1}`), "", "session_id"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newFixture(t)
			id := o.accept(message(typo)).Action

			done, err := o.service.Approve(t.Context(), o.person("ada"), id, approval.Approval{Note: "always", Always: &test.always})

			if err != nil || done.Grant == uuid.Nil || o.scheduled(id) != 1 {
				t.Fatalf("Approve = %+v, %v", done, err)
			}
			if a := o.accept(test.like); a.Mode != envelope.ModeAllow {
				t.Errorf("one like it is %s from %s, want allow", a.Mode, a.Source)
			}
			if a := o.accept(test.unlike); a.Mode != envelope.ModeRequireApproval {
				t.Errorf("one unlike it is %s from %s, want require_approval", a.Mode, a.Source)
			}
			if got := one[string](o, "SELECT coalesce("+test.owner+", '') FROM grants WHERE from_action = $1 AND created_by LIKE 'ada (token %'", id.String()); got != test.detail {
				t.Errorf("the grant's %s is %q, want %q", test.owner, got, test.detail)
			}
			if n := one[int](o, "SELECT count(1)::int FROM events WHERE kind = 'configured' AND actor LIKE 'ada (token %'"); n != 1 {
				t.Errorf("the grant left %d events, want 1", n)
			}
		})
	}
}

func with(p *envelope.Proposal, change func(p *envelope.Proposal)) *envelope.Proposal {
	change(p)
	return p
}

// TestInvalidAlways decides nothing: approval and grant are one.
func TestInvalidAlways(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		before func(o fixture)
		always approval.Always
		want   fault.Kind
	}{
		"where two must agree":     {func(o fixture) { o.review(2) }, approval.Always{}, fault.Conflict},
		"of no employee":           {func(fixture) {}, approval.Always{Scope: approval.ScopeEmployee}, fault.Invalid},
		"of no scope":              {func(fixture) {}, approval.Always{Scope: "world"}, fault.Invalid},
		"loose, and nothing there": {func(fixture) {}, approval.Always{Loose: []string{"/cc"}}, fault.Invalid},
		"loose inside of a list":   {func(fixture) {}, approval.Always{Loose: []string{"/tags/0"}}, fault.Invalid},
		"loose and pinned":         {func(fixture) {}, approval.Always{Loose: []string{"/to"}, Pins: []string{"/to"}}, fault.Invalid},
		"with a pin on nothing":    {func(fixture) {}, approval.Always{Pins: []string{"/cc"}}, fault.Invalid},
		"for longer than may be":   {func(fixture) {}, approval.Always{For: settings.MaxGrant + 1}, fault.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newFixture(t)
			test.before(o)
			id := o.accept(message(typo)).Action

			_, err := o.service.Approve(t.Context(), o.person("ada"), id, approval.Approval{Always: &test.always})

			if !errors.Is(err, test.want) || o.scheduled(id) != 0 || o.view(id).Envelope.Approval != envelope.ApprovalRequired || len(o.votes(id)) != 0 {
				t.Errorf("Approve = %v, want fault %q; it is %s", err, test.want, o.view(id).Envelope.Approval)
			}
			if n := one[int](o, "SELECT count(1)::int FROM grants"); n != 0 {
				t.Errorf("there are %d grants", n)
			}
		})
	}
}
