package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const typo = `{"to":"anna@example.org","tags":["a","b"]}`

func TestEditKeepsTheProposedArguments(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	id := o.accept(message(typo)).Action
	edit := func(name, args string) {
		t.Helper()
		if err := o.service.Edit(t.Context(), o.person(name), id, approval.Edit{Args: json.RawMessage(args), Note: "a typo", IfMatch: approval.ETag(o.view(id))}); err != nil {
			t.Fatal(err)
		}
	}
	content := func() []byte {
		return one[[]byte](o, "SELECT content_digest FROM actions WHERE action_id = $1", id.String())
	}
	proposed := content()

	edit("ada", `{"to":"ana@example.org","tags":["a","c"]}`)
	edit("bob", `{"to":"ana@example.org","copies":2}`)
	edit("bob", `{"copies":2.0,"to":"ana@example.org"}`) // the same: no edit

	v := o.view(id)
	var edits []struct {
		By, Note string
		Pointers []string
	}
	if err := json.Unmarshal(v.Review.Edits, &edits); err != nil {
		t.Fatal(err)
	}
	want := []struct {
		By, Note string
		Pointers []string
	}{{"ada", "a typo", []string{"/tags/1", "/to"}}, {"bob", "a typo", []string{"/copies", "/tags"}}}
	for i := range edits {
		edits[i].By, _, _ = envelope.Actor(edits[i].By).Parts()
	}
	if diff := cmp.Diff(want, edits); diff != "" {
		t.Errorf("edits (-want +got):\n%s", diff)
	}
	if !same(t, v.Review.ProposedArgs, typo) || !same(t, v.Envelope.Args, `{"to":"ana@example.org","copies":2}`) || !isOf(v.Review.EditedBy, "bob") {
		t.Errorf("proposed %s, effective %s, by %q", v.Review.ProposedArgs, v.Envelope.Args, v.Review.EditedBy)
	}
	if string(content()) != string(proposed) || v.Envelope.Approval != envelope.ApprovalRequired || o.told(audit.Edited, id) != 2 {
		t.Errorf("an edited envelope is %s, with %d events, and its own digest: %t", v.Envelope.Approval, o.told(audit.Edited, id), string(content()) == string(proposed))
	}
	if again := o.accept(with(message(typo), func(p *envelope.Proposal) { p.ActionID = id })); !again.Known {
		t.Errorf("the proposal is not known any more: %+v", again)
	}
}

func same(t *testing.T, got json.RawMessage, want string) bool {
	t.Helper()
	a, err := envelope.Canonical(got)
	if err != nil {
		t.Fatal(err)
	}
	b, err := envelope.Canonical([]byte(want))
	if err != nil {
		t.Fatal(err)
	}
	return string(a) == string(b)
}

func TestApproveWithOtherArguments(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	id := o.accept(message(typo)).Action

	done, err := o.service.Approve(t.Context(), o.person("ada"), id, approval.Approval{Args: json.RawMessage(`{"to":"ana@example.org"}`)})

	v := o.view(id)
	if err != nil || done.Approval != envelope.ApprovalGranted || o.scheduled(id) != 1 || !same(t, v.Envelope.Args, `{"to":"ana@example.org"}`) {
		t.Errorf("Approve = %+v, %v, and %s is scheduled %d times", done, err, v.Envelope.Args, o.scheduled(id))
	}
	if o.told(audit.Edited, id) != 1 || o.told(audit.Decided, id) != 1 {
		t.Errorf("%d edits and %d decisions are told of, want one of each", o.told(audit.Edited, id), o.told(audit.Decided, id))
	}
}

// TestInvalidEdits changes nothing in any of them, whether the
// envelope is edited or approved with other arguments.
func TestInvalidEdits(t *testing.T) {
	t.Parallel()
	unlisted := func(fixture) {}
	for name, test := range map[string]struct {
		before  func(o fixture)
		args    string
		want    fault.Kind
		pointer string
	}{
		"no object":        {unlisted, `[1]`, fault.Invalid, "/args"},
		"no JSON":          {unlisted, `{"to":`, fault.Invalid, ""},
		"two objects":      {unlisted, `{"to":"a@example.org"},"risk":"low"`, fault.Invalid, ""},
		"twice the key":    {unlisted, `{"to":"a@example.org","to":"b@example.org"}`, fault.Invalid, "/args/to"},
		"a missing field":  {unlisted, `{}`, fault.Invalid, "/args/to"},
		"an unknown field": {unlisted, `{"to":"a@example.org","bcc":"c@example.org"}`, fault.Invalid, "/args/bcc"},
		"a wrong type":     {unlisted, `{"to":"a@example.org","copies":"2"}`, fault.Invalid, "/args/copies"},
		"beyond a bound":   {unlisted, `{"to":"a@example.org","copies":6}`, fault.Invalid, "/args/copies"},
		"somebody who is not to be contacted": {func(o fixture) {
			o.as(func(ctx context.Context, tx pgx.Tx) error {
				_, err := contact.PutEntries(ctx, tx, o.tenant, []contact.Entry{{Value: "never@example.org"}}, "ada")
				return err
			})
		}, `{"to":"never@example.org"}`, fault.Conflict, ""},
		"what a rule denies": {func(o fixture) {
			o.as(func(ctx context.Context, tx pgx.Tx) error {
				snap, err := settings.NewCache().Current(ctx, tx, o.tenant)
				if err != nil {
					return err
				}
				return settings.PutRule(ctx, tx, snap, settings.Rule{
					ID: "inside", Pattern: "*:mail", Expression: `!args.to.endsWith("@example.org")`, Mode: "deny", Enabled: true,
				}, "ada")
			})
		}, `{"to":"ana@example.net"}`, fault.Conflict, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newFixture(t)
			id := o.accept(message(typo)).Action
			test.before(o)
			before := o.view(id)

			edited := o.service.Edit(t.Context(), o.person("ada"), id, approval.Edit{Args: json.RawMessage(test.args)})
			_, approved := o.service.Approve(t.Context(), o.person("ada"), id, approval.Approval{Args: json.RawMessage(test.args)})

			for _, err := range []error{edited, approved} {
				broken, _ := errors.AsType[*envelope.InvalidError](err)
				if !errors.Is(err, test.want) || test.pointer != "" && (broken == nil || broken.Fields[0].Pointer != test.pointer) {
					t.Errorf("edit = %v, want fault %q at %q", err, test.want, test.pointer)
				}
			}
			if diff := cmp.Diff(before, o.view(id)); diff != "" || o.scheduled(id) != 0 || o.told(audit.Edited, id) != 0 {
				t.Errorf("a refused edit changed it (-before +after):\n%s", diff)
			}
		})
	}
}

func TestAnEditVoidsTheVotes(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	o.review(2)
	id := o.accept(message(typo)).Action
	seen := approval.ETag(o.view(id))
	if err := o.grant(o.person("ada"), id, ""); err != nil {
		t.Fatal(err)
	}
	if got := approval.ETag(o.view(id)); got != seen {
		t.Errorf("a vote made it another: %s, want %s", got, seen)
	}

	if err := o.service.Edit(t.Context(), o.person("bob"), id, approval.Edit{Args: json.RawMessage(`{"to":"ana@example.org"}`)}); err != nil {
		t.Fatal(err)
	}

	if v := o.view(id); v.Review.Given != 0 || approval.ETag(v) == seen {
		t.Errorf("%d votes are left after the edit", v.Review.Given)
	}
	_, err := o.service.Approve(t.Context(), o.person("cyd"), id, approval.Approval{IfMatch: seen})
	if !errors.Is(err, fault.Stale) {
		t.Errorf("a vote for what was seen before the edit = %v, want fault.Stale", err)
	}
	if err := o.grant(o.person("ada"), id, ""); !errors.Is(err, fault.Unconditional) {
		t.Errorf("a vote that does not say for what = %v, want fault.Unconditional", err)
	}
	for _, denial := range []struct {
		ifMatch string
		want    fault.Kind
	}{{seen, fault.Stale}, {"", fault.Unconditional}} {
		if err := o.service.Deny(t.Context(), o.person("cyd"), id, approval.Denial{IfMatch: denial.ifMatch}); !errors.Is(err, denial.want) {
			t.Errorf("a denial with If-Match %q = %v, want %v", denial.ifMatch, err, denial.want)
		}
	}
	approve := func(name string) error {
		_, err := o.service.Approve(t.Context(), o.person(name), id, approval.Approval{IfMatch: approval.ETag(o.view(id))})
		return err
	}
	if err := approve("ada"); err != nil {
		t.Errorf("who voted before the edit may not vote again: %v", err)
	}
	if o.scheduled(id) != 0 {
		t.Error("a void vote was counted")
	}
	if err := approve("cyd"); err != nil || o.scheduled(id) != 1 {
		t.Errorf("the second vote = %v, and it is scheduled %d times", err, o.scheduled(id))
	}
	votes := o.votes(id)
	if len(votes) != 3 || votes[0].Round != 1 || votes[2].Round != 2 {
		t.Errorf("votes = %+v, want one of the first round and two of the second", votes)
	}
}
