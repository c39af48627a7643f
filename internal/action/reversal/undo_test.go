package reversal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/reversal"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// undoFixture is a fixture with a mail account "work" that names mara, and a source
// "mail" whose tools declare their reversal. Two people must agree to each call of
// it.
type undoFixture struct {
	*fixture
	account, mara, other uuid.UUID
	number               int
}

func newUndoFixture(t testing.TB) *undoFixture {
	t.Helper()
	f := &undoFixture{fixture: newFixture(t), account: uuid.Must(uuid.NewV7()), mara: uuid.Must(uuid.NewV7()), other: uuid.Must(uuid.NewV7())}
	for _, person := range []uuid.UUID{f.mara, f.other} {
		f.admin("INSERT INTO operators (tenant_id, operator_id, name, role_set) VALUES ($1, $2, 'p', 'operator')", person)
	}
	f.admin("INSERT INTO triage_accounts (tenant_id, account_id, name, kind, operator_id) VALUES ($1, $2, 'work', 'maildir', $3)", f.account, f.mara)
	object := json.RawMessage(`{"type":"object"}`)
	reverse := &source.Reversal{Tool: "message.restore", Args: json.RawMessage(`{"before":"$outputs/before"}`)}
	f.as(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, f.tenant, catalog.Source{ID: "mail", Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
			return err
		}
		if err := catalog.PutListing(ctx, tx, f.tenant, "mail", []source.Tool{
			{Name: "message.archive", Effect: envelope.EffectIdempotent, InputSchema: object, Reversal: reverse},
			{Name: "message.label", Effect: envelope.EffectIdempotent, InputSchema: object, Reversal: reverse},
			{Name: "message.restore", Effect: envelope.EffectIdempotent, InputSchema: object},
		}); err != nil {
			return err
		}
		if err := settings.PutReview(ctx, tx, f.tenant, settings.ReviewRule{Pattern: "mail:*", Risk: envelope.RiskLow, Approvals: 2}, "test"); err != nil {
			return err
		}
		return settings.PutMode(ctx, tx, f.tenant, "", "mail:message.restore", envelope.ModeRequireApproval, "test")
	})
	return f
}

// admin runs a statement as the database's owner, with the tenant as $1.
func (f *undoFixture) admin(sql string, args ...any) {
	f.t.Helper()
	err := postgres.InTx(f.t.Context(), f.db, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(f.t.Context(), sql, append([]any{f.tenant.String()}, args...)...)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

// message stores a message.
func (f *undoFixture) message() uuid.UUID {
	f.t.Helper()
	id := uuid.Must(uuid.NewV7())
	f.admin(`INSERT INTO triage_messages (tenant_id, message_id, account_id, identity, thread_id, outgoing, received_at, size)
		VALUES ($1, $2::uuid, $3, sha256($2::uuid::text::bytea), $2::uuid, false, now(), 1)`, id, f.account)
	return id
}

// act has triage propose a call about a message, in a run.
func (f *undoFixture) act(message, run uuid.UUID, tool string) envelope.ActionID {
	f.t.Helper()
	f.number++
	external := fmt.Sprintf("triage:%064x", f.number)
	by := f.by()
	by.Names = identity.EveryName()
	answers, err := f.in.Accept(f.t.Context(), by, []*envelope.Proposal{{
		Type: envelope.TypeExec, ExternalID: external, Tool: envelope.Tool{Source: "mail", Name: tool}, Args: json.RawMessage(`{"account":"work"}`), SessionID: "s-one",
	}})
	if err != nil || answers[0].Err != nil {
		f.t.Fatal(err, answers)
	}
	f.admin(`INSERT INTO triage_proposals (tenant_id, external_id, account_id, message_id, action, parts, fields, envelope, proposal_id, run_id)
		VALUES ($1, $2::text, $3, $4, $5::text, jsonb_build_array(jsonb_build_object('action', $5::text)), '[{"pointer":"/account","value":"work","origin":"config"}]',
			jsonb_build_object('type', 'mcp.exec', 'external_id', $2::text, 'tool', jsonb_build_object('source', 'mail', 'name', $6::text), 'args', '{"account":"work"}'::jsonb), $7, $8)`,
		external, f.account, message, tool[len("message."):], tool, answers[0].Action.String(), run)
	return answers[0].Action
}

// did is act, with the call completed.
func (f *undoFixture) did(message, run uuid.UUID, tool string) envelope.ActionID {
	f.t.Helper()
	id := f.act(message, run, tool)
	f.settle(restorable)
	return id
}

var restorable = outcome{status: envelope.StatusSent, result: `{"before":{"folder":"INBOX"}}`}

func (f *undoFixture) undoRequest(person uuid.UUID, ids ...envelope.ActionID) reversal.UndoRequest {
	by := intake.Submitter{Tenant: f.tenant, Token: person, Person: person, Operator: person, Name: "p"}
	return reversal.UndoRequest{
		By: by, Decider: approval.Decider{Tenant: f.tenant, Token: person, Person: person, Operator: person, Name: "p"},
		Sees: func(session string) bool { return session != "hidden" }, Actions: ids,
	}
}

// undo undoes acts for a person, and returns the results in short.
func (f *undoFixture) undo(person uuid.UUID, ids ...envelope.ActionID) (all []string, answers []reversal.Undone) {
	f.t.Helper()
	return f.undoAs(f.undoRequest(person, ids...))
}

func (f *undoFixture) undoAs(req reversal.UndoRequest) (all []string, answers []reversal.Undone) {
	f.t.Helper()
	cache := settings.NewCache()
	answers, err := f.service.Undo(f.t.Context(), approval.New(f.db, cache, approval.Config{}), req)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, a := range answers {
		text := a.Result
		if a.Phase != "" {
			text += " " + string(a.Phase)
		}
		if a.Err != nil {
			text += " " + refusedFor(a.Err)
		}
		all = append(all, text)
	}
	return all, answers
}

func (f *undoFixture) wants(name string, got []string, want ...string) {
	f.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// learned compares the outcomes of proposals that triage will take into account,
// which are those of a revert and of an undo by anybody; corrections are none.
func (f *undoFixture) learned(name string, want ...string) {
	f.t.Helper()
	var outcomes []string
	var corrections int
	f.as(func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT array_agg(outcome) FILTER (WHERE outcome_due), (SELECT count(1) FROM triage_corrections) FROM triage_proposals").Scan(&outcomes, &corrections)
	})
	f.wants(name, outcomes, want...)
	if corrections > 0 {
		f.t.Errorf("%s: %d corrections, want none", name, corrections)
	}
}

// TestOperatorOfTheAccountUndoesAlone undoes an act though a review rule wants two
// people, and repeats it.
func TestOperatorOfTheAccountUndoesAlone(t *testing.T) {
	t.Parallel()
	f := newUndoFixture(t)
	id := f.did(f.message(), uuid.Must(uuid.NewV7()), "message.archive")

	dry := f.undoRequest(f.mara, id)
	dry.DryRun = true
	would, _ := f.undoAs(dry)
	f.wants("a dry run", would, "accepted approved")
	if f.view(id).RevertedBy != nil {
		t.Error("a dry run made a reversal")
	}
	got, answers := f.undo(f.mara, id, id)
	f.wants("the first undo", got, "accepted approved", "accepted approved")
	calls := f.settle(sent)

	if want := []string{`message.restore {"before":{"folder":"INBOX"}}`}; !slices.Equal(calls, want) {
		t.Errorf("calls = %q, want %q", calls, want)
	}
	back := f.view(answers[0].Action)
	if back.Phase != envelope.PhaseCompleted || back.Envelope.AutomationID != reversal.Automation || back.Review.Needed != 1 || back.Review.Given != 1 {
		t.Errorf("the reversal is %s, of %s, with %+v", back.Phase, back.Envelope.AutomationID, back.Review)
	}
	f.learned("after the undo", "reverted")
	again, _ := f.undo(f.mara, id)
	f.wants("undone again", again, "known completed")
	undone, _ := f.undo(f.mara, answers[0].Action)
	f.wants("an undo of the undo", undone, "refused /reverts reversal")
	if calls := f.settle(sent); len(calls) != 0 {
		t.Errorf("further calls: %q", calls)
	}
}

// TestOthersDoNotUndoAlone has a person ask whom the account does not name, and
// one whom it names for what is not triage's own.
func TestOthersDoNotUndoAlone(t *testing.T) {
	t.Parallel()
	f := newUndoFixture(t)
	id := f.did(f.message(), uuid.Must(uuid.NewV7()), "message.archive")
	forged := f.did(f.message(), uuid.Must(uuid.NewV7()), "message.archive")
	f.admin("UPDATE triage_proposals SET proposal_id = gen_random_uuid() WHERE tenant_id = $1 AND proposal_id = $2", forged.String())
	edited := f.did(f.message(), uuid.Must(uuid.NewV7()), "message.archive")
	f.admin("INSERT INTO approvals (tenant_id, action_id, needed, proposed_args) VALUES ($1, $2, 1, '{}')", edited.String())
	other := f.did(f.message(), uuid.Must(uuid.NewV7()), "message.label")
	f.as(func(ctx context.Context, tx pgx.Tx) error {
		return catalog.DescribeTool(ctx, tx, f.tenant, policy.Key{Source: "mail", Action: "message.label"}, catalog.Description{
			Reversal: &catalog.Reversal{Tool: key("delete"), Args: json.RawMessage(`{"id":"x"}`)},
		})
	})

	for name, test := range map[string]struct {
		by   uuid.UUID
		id   envelope.ActionID
		want string
	}{
		"another person":                     {f.other, id, "refused /account other_operator"},
		"an action that triage did not make": {f.mara, forged, "refused /envelope/external_id not_triage"},
		"an action of a person":              {f.mara, f.done("create", `{"name":"a"}`, sent), "refused /envelope/external_id not_triage"},
		"an edited action":                   {f.mara, edited, "refused /proposed_args edited"},
		"another reversal":                   {f.mara, other, "refused /tool other_reversal"},
		"no action":                          {f.mara, envelope.NewActionID(), "refused "},
	} {
		got, _ := f.undo(test.by, test.id)
		f.wants(name, got, test.want)
	}
	f.admin("UPDATE triage_accounts SET operator_id = NULL WHERE tenant_id = $1")
	got, _ := f.undo(f.mara, id)
	f.wants("an account that names nobody", got, "refused /account no_operator")
	if calls := f.settle(sent); len(calls) != 0 {
		t.Errorf("calls = %q, want none", calls)
	}
}

// TestActsOnOneMessageAreUndoneNewestFirst undoes two acts on one message.
func TestActsOnOneMessageAreUndoneNewestFirst(t *testing.T) {
	t.Parallel()
	f := newUndoFixture(t)
	message := f.message()
	label := f.did(message, uuid.Must(uuid.NewV7()), "message.label")
	archive := f.did(message, uuid.Must(uuid.NewV7()), "message.archive")

	alone, _ := f.undo(f.mara, label)
	f.wants("the older act alone", alone, "refused /message_id later_act")
	both, _ := f.undo(f.mara, label, archive)
	f.wants("both", both, "waiting", "accepted approved")
	during, _ := f.undo(f.mara, label)
	f.wants("while the newer is undone", during, "waiting")
	f.settle(sent)
	rest, _ := f.undo(f.mara, label, archive)
	f.wants("afterwards", rest, "accepted approved", "known completed")

	free := f.message()
	f.admin(`UPDATE triage_accounts SET proposals = '{"label_prefix":"cs_"}' WHERE tenant_id = $1`)
	own := f.did(free, uuid.Must(uuid.NewV7()), "message.label")
	f.did(free, uuid.Must(uuid.NewV7()), "message.archive")
	got, _ := f.undo(f.mara, own)
	f.wants("a label with the account's prefix", got, "accepted approved")
}

// TestUnsentActsAreWithdrawn undoes an action that waits for approval and one that
// is scheduled, and one that a worker has claimed.
func TestUnsentActsAreWithdrawn(t *testing.T) {
	t.Parallel()
	f := newUndoFixture(t)
	run := uuid.Must(uuid.NewV7())
	scheduled := f.act(f.message(), run, "message.archive")
	f.mode("", "mail:message.archive", envelope.ModeRequireApproval)
	pending := f.act(f.message(), run, "message.archive")
	f.mode("", "mail:message.archive", envelope.ModeAllow)

	got, _ := f.undo(f.mara, pending, scheduled)
	f.wants("undo", got, "withdrawn undone", "withdrawn undone")
	f.learned("after they were withdrawn", "undone", "undone")
	again, _ := f.undo(f.mara, pending, scheduled)

	f.wants("undo again", again, "refused /phase no_effect", "refused /phase no_effect")
	if calls := f.settle(restorable); len(calls) != 0 || f.view(pending).Phase != envelope.PhaseUndone {
		t.Errorf("calls = %q; the pending one is %s", calls, f.view(pending).Phase)
	}
}

// TestUndoIsTriedAgain undoes acts whose reversal failed, waits for somebody
// else, is denied, or has an unknown outcome.
func TestUndoIsTriedAgain(t *testing.T) {
	t.Parallel()
	f := newUndoFixture(t)
	run := uuid.Must(uuid.NewV7())
	touched, lost, asked := f.did(f.message(), run, "message.archive"), f.did(f.message(), run, "message.archive"), f.did(f.message(), run, "message.archive")

	_, first := f.undo(f.mara, touched)
	f.settle(refused)
	got, second := f.undo(f.mara, touched)
	f.wants("after a refusal", got, "accepted approved")
	if second[0].Action != first[0].Action {
		t.Error("a refused reversal is replaced, want it tried again")
	}
	f.settle(sent)

	f.undo(f.mara, lost)
	f.settle(unknown)
	got, _ = f.undo(f.mara, lost)
	f.wants("after an unknown outcome", got, "accepted approved")
	f.settle(sent)

	waits := f.revert(asked)
	got, answers := f.undo(f.mara, asked)
	f.wants("after a revert that waits for approval", got, "known approved")
	if answers[0].Action != waits.Action {
		t.Error("an act has two reversals")
	}
	f.settle(sent)
	done, _ := f.undo(f.mara, touched, lost, asked)
	f.wants("at the end", done, "known completed", "known completed", "known completed")

	f.mode(reversal.Automation, "mail:message.restore", envelope.ModeDeny)
	got, _ = f.undo(f.mara, f.did(f.message(), run, "message.archive"))
	f.wants("if policy denies it", got, "denied denied")
}

// TestOtherReversalsAreNotApprovedAlone has an administrator declare another
// reversal, by which an act is reverted, and then none: an undo neither approves
// that reversal nor calls it again.
func TestOtherReversalsAreNotApprovedAlone(t *testing.T) {
	t.Parallel()
	f := newUndoFixture(t)
	run := uuid.Must(uuid.NewV7())
	waits, failed, edited := f.did(f.message(), run, "message.archive"), f.did(f.message(), run, "message.archive"), f.did(f.message(), run, "message.archive")
	declare := func(r *catalog.Reversal) {
		t.Helper()
		f.as(func(ctx context.Context, tx pgx.Tx) error {
			return catalog.DescribeTool(ctx, tx, f.tenant, policy.Key{Source: "mail", Action: "message.archive"}, catalog.Description{Reversal: r})
		})
	}
	declare(&catalog.Reversal{Tool: key("create"), Args: json.RawMessage(`{"name":"x"}`)})
	f.mode("", "crm:create", envelope.ModeAllow)
	f.revert(failed)
	f.settle(unknown)
	f.mode("", "crm:create", envelope.ModeRequireApproval)
	f.revert(waits)
	declare(nil)
	back := f.revert(edited)
	f.admin("UPDATE actions SET args = '{\"before\":{\"folder\":\"Trash\"}}' WHERE tenant_id = $1 AND action_id = $2", back.Action.String())

	got, _ := f.undo(f.mara, waits, failed, edited)

	f.wants("undo", got, "refused /reverted_by other_reversal", "refused /reverted_by other_reversal", "refused /reverted_by other_reversal")
	if calls := f.settle(sent); len(calls) != 0 {
		t.Errorf("calls = %q, want none", calls)
	}
}

// TestSelectActs selects what is undone by account, run, session and time.
func TestSelectActs(t *testing.T) {
	t.Parallel()
	f := newUndoFixture(t)
	one, two := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	a, b := f.did(f.message(), one, "message.archive"), f.did(f.message(), two, "message.archive")
	waits := f.act(f.message(), two, "message.archive")
	f.done("create", `{"name":"Ana"}`, sent)
	f.did(f.message(), one, "message.archive") // by a person, under a name of triage
	f.admin("UPDATE triage_proposals SET proposal_id = gen_random_uuid() WHERE tenant_id = $1 AND external_id = $2", fmt.Sprintf("triage:%064x", f.number))
	f.settle(restorable)
	var at time.Time
	f.as(func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT finished_at FROM envelopes WHERE tenant_id = $1 AND action_id = $2", f.tenant.String(), b.String()).Scan(&at)
	})
	for name, test := range map[string]struct {
		filter reversal.UndoFilter
		want   []envelope.ActionID
	}{
		"all":                  {reversal.UndoFilter{}, []envelope.ActionID{waits, b, a}},
		"a run":                {reversal.UndoFilter{Run: one}, []envelope.ActionID{a}},
		"an account":           {reversal.UndoFilter{Account: "home"}, nil},
		"a session":            {reversal.UndoFilter{Session: "s-one"}, []envelope.ActionID{waits, b, a}},
		"another session":      {reversal.UndoFilter{Session: "s-two"}, nil},
		"since":                {reversal.UndoFilter{Since: at}, []envelope.ActionID{waits, b}},
		"until":                {reversal.UndoFilter{Until: at}, []envelope.ActionID{a}},
		"after a place":        {reversal.UndoFilter{Before: reversal.UndoPlace{Action: b, At: at}}, []envelope.ActionID{a}},
		"of another person":    {reversal.UndoFilter{Operator: f.other}, nil},
		"a page":               {reversal.UndoFilter{Limit: 1}, []envelope.ActionID{waits}},
		"a run and its window": {reversal.UndoFilter{Run: two, Until: at}, nil},
	} {
		if test.filter.Operator == uuid.Nil {
			test.filter.Operator = f.mara
		}
		if test.filter.Limit == 0 {
			test.filter.Limit = 10
		}
		var got []envelope.ActionID
		f.as(func(ctx context.Context, tx pgx.Tx) error {
			places, err := reversal.SelectActs(ctx, tx, f.tenant, test.filter)
			for _, p := range places {
				got = append(got, p.Action)
			}
			return err
		})
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: SelectActs = %v, want %v", name, got, test.want)
		}
	}
}
