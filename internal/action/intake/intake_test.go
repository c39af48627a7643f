package intake_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
)

func TestAcceptStoresTheProposal(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.bucket("slow")
	p := note("e1")
	p.AutomationID, p.SessionID, p.EmployeeID, p.Risk = "auto", "s1", envelope.EmployeeID(d.tenant), envelope.RiskHigh
	p.Constraints = envelope.Constraints{
		RateBucket: "slow", NotBefore: time.Date(2031, 5, 1, 0, 0, 0, 0, time.UTC), MustRunBefore: time.Date(2032, 5, 1, 0, 0, 0, 0, time.UTC),
	}

	a := d.accept(p)[0]

	if a.Err != nil || a.Known || a.Mode != envelope.ModeAllow || a.Approval != envelope.ApprovalAuto || a.Source == "" {
		t.Fatalf("Accept = %+v, want allowed and new", a)
	}
	v := d.view(a.Action)
	want := envelope.Envelope{
		Version: 1, ActionID: a.Action, ExternalID: "e1", TenantID: d.tenant, EmployeeID: p.EmployeeID, Type: envelope.TypeExec, Tool: p.Tool,
		Args: json.RawMessage(`{"n": 1}`), Risk: envelope.RiskHigh, Approval: envelope.ApprovalAuto, SessionID: "s1", AutomationID: "auto",
		Constraints: p.Constraints, Result: envelope.Result{Status: envelope.StatusPending}, Timestamps: v.Envelope.Timestamps,
	}
	if diff := cmp.Diff(want, v.Envelope); diff != "" {
		t.Errorf("envelope (-want +got):\n%s", diff)
	}
	if v.ModeSource != a.Source || len(v.Trace) == 0 || v.Effect != envelope.EffectKeyed || v.ProposedBy == nil || *v.ProposedBy != uuid.UUID(d.tenant) {
		t.Errorf("view = %+v", v)
	}
	if v.NextAttemptAt == nil || !v.NextAttemptAt.Equal(p.Constraints.NotBefore) {
		t.Errorf("it is due at %v, want not before %v", v.NextAttemptAt, p.Constraints.NotBefore)
	}
	if got := d.count("SELECT count(1) FROM outbox o JOIN buckets b USING (bucket_id) WHERE b.name = 'slow' AND o.tenant_id = $1", d.tenant.String()); got != 1 {
		t.Errorf("%d rows are in its bucket, want 1", got)
	}
}

// TestBatchStoresTheSameRowsAsSingleProposals: columns that are the same in a whole
// batch are sent once.
func TestBatchStoresTheSameRowsAsSingleProposals(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.bucket("slow")
	plain := func() *envelope.Proposal { return note(uuid.NewString()) }
	full := func() *envelope.Proposal {
		p := note(uuid.NewString())
		p.Tool.Source, p.Risk, p.AutomationID, p.SessionID = "second", envelope.RiskHigh, "auto", "s1"
		p.EmployeeID, p.Approval = envelope.EmployeeID(d.tenant), envelope.ApprovalRequired
		p.Constraints = envelope.Constraints{
			RateBucket: "slow", Urgent: true,
			NotBefore: time.Date(2031, 5, 1, 0, 0, 0, 0, time.UTC), MustRunBefore: time.Date(2032, 5, 1, 0, 0, 0, 0, time.UTC),
		}
		return p
	}
	for name, batch := range map[string][]*envelope.Proposal{
		"alike": {full(), full(), full()}, "alike and plain": {plain(), plain()}, "mixed": {full(), plain(), full()}, "one": {full()},
	} {
		for i, a := range d.accept(batch...) {
			p, got := batch[i], d.view(a.Action).Envelope
			want := *p
			want.ActionID, want.TenantID, want.Version = a.Action, d.tenant, 1
			if want.Risk == "" {
				want.Risk = envelope.RiskMedium // the tool's
			}
			want.Approval = a.Approval
			gotProposal := envelope.Proposal{
				Version: got.Version, ActionID: got.ActionID, ExternalID: got.ExternalID, TenantID: got.TenantID, EmployeeID: got.EmployeeID,
				Type: got.Type, Tool: got.Tool, Args: want.Args, Risk: got.Risk, Approval: got.Approval, SessionID: got.SessionID,
				AutomationID: got.AutomationID, Constraints: got.Constraints,
			}
			if diff := cmp.Diff(want, gotProposal); diff != "" {
				t.Errorf("%s, number %d (-want +got):\n%s", name, i, diff)
			}
			if a.Approval == envelope.ApprovalRequired && d.view(a.Action).ApprovalExpiresAt == nil {
				t.Errorf("%s, number %d: its approval does not expire", name, i)
			}
		}
	}
}

// TestAMixedBatchStoresTheSameColumns: another statement stores a batch whose rows differ.
func TestAMixedBatchStoresTheSameColumns(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	columns := func(p *envelope.Proposal, others ...*envelope.Proposal) (columns map[string]any) {
		answer := d.accept(append([]*envelope.Proposal{p}, others...)...)[0]
		d.as(func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, `SELECT (to_jsonb(a) || jsonb_build_object('outbox', to_jsonb(o) - 'action_id')) - ARRAY['action_id', 'external_id']
				FROM actions a LEFT JOIN outbox o USING (tenant_id, action_id) WHERE a.action_id = $1`, uuid.UUID(answer.Action)).Scan(&columns)
		})
		return columns
	}
	for _, mode := range []envelope.Mode{envelope.ModeAllow, envelope.ModeRequireApproval, envelope.ModeDeny} {
		for _, later := range []time.Time{{}, time.Date(2031, 5, 1, 0, 0, 0, 0, time.UTC)} {
			d.mode("first:note", mode)
			one := func() *envelope.Proposal {
				p := note(uuid.NewString())
				p.Tool.Source, p.Constraints.NotBefore, p.Constraints.MustRunBefore = "first", later, later
				return p
			}
			other := note(uuid.NewString())
			other.Tool.Source, other.Approval = "second", envelope.ApprovalRequired

			alike, mixed := columns(one()), columns(one(), other)

			if diff := cmp.Diff(alike, mixed); diff != "" {
				t.Errorf("%s, %s (-alike +mixed):\n%s", mode, later, diff)
			}
		}
	}
}

func TestPolicyModeDecidesTheState(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		mode     envelope.Mode
		asked    envelope.Approval
		approval envelope.Approval
		phase    envelope.Phase
		queued   int
		woken    int32
	}{
		{envelope.ModeAllow, "", envelope.ApprovalAuto, envelope.PhaseApproved, 1, 1},
		{envelope.ModeAllow, envelope.ApprovalAuto, envelope.ApprovalAuto, envelope.PhaseApproved, 1, 1},
		{envelope.ModeAllow, envelope.ApprovalRequired, envelope.ApprovalRequired, envelope.PhasePending, 0, 0},
		{envelope.ModeRequireApproval, "", envelope.ApprovalRequired, envelope.PhasePending, 0, 0},
		{envelope.ModeRequireApproval, envelope.ApprovalAuto, envelope.ApprovalRequired, envelope.PhasePending, 0, 0},
		{envelope.ModeDeny, "", envelope.ApprovalDenied, envelope.PhaseDenied, 0, 0},
		{envelope.ModeDeny, envelope.ApprovalRequired, envelope.ApprovalDenied, envelope.PhaseDenied, 0, 0},
	} {
		t.Run(fmt.Sprintf("%s when asked for %q", test.mode, test.asked), func(t *testing.T) {
			t.Parallel()
			d := newFixture(t)
			d.mode("*", test.mode)
			p := note("")
			p.Approval = test.asked

			a := d.accept(p)[0]

			v := d.view(a.Action)
			queued := d.count("SELECT count(1) FROM outbox WHERE tenant_id = $1", d.tenant.String())
			if a.Approval != test.approval || v.Phase != test.phase || queued != test.queued || d.woken.Load() != test.woken {
				t.Errorf("Accept = %s, %s, %d queued, woken %d times; want %+v", a.Approval, v.Phase, queued, d.woken.Load(), test)
			}
			var trace []struct{ Layer string }
			if err := json.Unmarshal(v.Trace, &trace); err != nil || len(trace) < 3 {
				t.Errorf("trace = %s, %v, want a step for every layer", v.Trace, err)
			}
			if waits := v.ApprovalExpiresAt != nil; waits != (test.approval == envelope.ApprovalRequired) {
				t.Errorf("approval expires at %v", v.ApprovalExpiresAt)
			}
			items := []audit.Item{{Action: a.Action, Status: v.Envelope.Result.Status, Approval: test.approval}}
			if diff := cmp.Diff(items, d.events()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRiskIsRaisedAndNeverLowered(t *testing.T) {
	t.Parallel()
	d := newFixture(t)

	for _, test := range []struct {
		tool        string
		asked, want envelope.Risk
	}{
		{"note", "", envelope.RiskMedium}, {"note", envelope.RiskLow, envelope.RiskMedium}, {"note", envelope.RiskHigh, envelope.RiskHigh},
		{"danger", envelope.RiskLow, envelope.RiskHigh}, {"danger", "", envelope.RiskHigh},
	} {
		p := call(test.tool, "{}")
		p.Risk = test.asked

		if got := d.view(d.accept(p)[0].Action).Envelope.Risk; got != test.want {
			t.Errorf("risk of %s when %q was asked for = %s, want %s", test.tool, test.asked, got, test.want)
		}
	}
}

func TestRepeatedEnvelopeIsKnown(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	first := d.accept(note("e1"))[0]
	named := note("")
	named.ActionID = envelope.NewActionID()
	d.accept(named)
	before := d.woken.Load()

	again, byID := d.accept(note("e1"))[0], d.accept(named)[0]

	if diff := cmp.Diff(intake.Answer{Action: first.Action, Known: true}, again); diff != "" {
		t.Errorf("Accept by external id again (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(intake.Answer{Action: named.ActionID, Known: true}, byID); diff != "" {
		t.Errorf("Accept by action id again (-want +got):\n%s", diff)
	}
	if d.woken.Load() != before || len(d.events()) != 2 {
		t.Errorf("a known envelope woke the fleet or made an event")
	}
}

func TestOtherContentUnderAKnownNameConflicts(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	first := d.accept(note("e1"))[0]
	d.accept(note("e2"))
	change := func(external string, fn func(p *envelope.Proposal)) *envelope.Proposal {
		p := note(external)
		fn(p)
		return p
	}

	for name, p := range map[string]*envelope.Proposal{
		"other args":       change("e1", func(p *envelope.Proposal) { p.Args = json.RawMessage(`{"n":2}`) }),
		"other tool":       change("e1", func(p *envelope.Proposal) { p.Tool.Source = "second" }),
		"other risk":       change("e1", func(p *envelope.Proposal) { p.Risk = envelope.RiskHigh }),
		"other action id":  change("e1", func(p *envelope.Proposal) { p.ActionID = envelope.NewActionID() }),
		"other name":       change("e3", func(p *envelope.Proposal) { p.ActionID = first.Action }),
		"no external id":   change("", func(p *envelope.Proposal) { p.ActionID = first.Action }),
		"two known things": change("e2", func(p *envelope.Proposal) { p.ActionID = first.Action }),
	} {
		if a := d.accept(p)[0]; !errors.Is(a.Err, fault.Conflict) || a.Known || a.Action != (envelope.ActionID{}) {
			t.Errorf("Accept with %s = %+v, want fault.Conflict", name, a)
		}
	}
	if got := d.count("SELECT count(1) FROM actions WHERE tenant_id = $1", d.tenant.String()); got != 2 {
		t.Errorf("%d envelopes are there, want the first 2", got)
	}
}

func TestDuplicatesInOneBatchAreOne(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	id := envelope.NewActionID()
	named, other := note(""), note("")
	named.ActionID, other.ActionID = id, id
	other.Args = json.RawMessage(`{"n":2}`)
	duplicate := *named

	got := d.accept(note("e1"), note("e1"), named, &duplicate, other, note("e2"))

	if got[0].Known || !got[1].Known || got[1].Action != got[0].Action {
		t.Errorf("duplicates by external id = %+v, %+v, want one new and one known", got[0], got[1])
	}
	if got[2].Known || !got[3].Known || got[3].Action != id || !errors.Is(got[4].Err, fault.Conflict) || got[5].Err != nil {
		t.Errorf("duplicates by action id = %+v, %+v, %+v, want new, known and a conflict", got[2], got[3], got[4])
	}
	if got := d.count("SELECT count(1) FROM outbox WHERE tenant_id = $1", d.tenant.String()); got != 3 {
		t.Errorf("%d envelopes are on the schedule, want 3", got)
	}
}

// The first of the two is refused for its external id, so that its action id
// is free for the second.
func TestARefusedDuplicateDoesNotTakeTheAnswerOfTheOther(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	d.accept(note("taken"))
	first, second := note("taken"), note("free")
	first.ActionID = envelope.NewActionID()
	second.ActionID = first.ActionID

	got := d.accept(first, second)

	if !errors.Is(got[0].Err, fault.Conflict) || got[1].Err != nil || got[1].Known || got[1].Action != second.ActionID {
		t.Errorf("Accept = %+v, %+v, want a conflict and a new envelope", got[0], got[1])
	}
}

func TestARefusedProposalLeavesTheOthersAlone(t *testing.T) {
	t.Parallel()
	d := newFixture(t)

	got := d.accept(note("e1"), call("send", `{}`), note("e2"), call("no.such.tool", `{}`), note("e3"))

	for i, a := range got {
		if refused := i%2 == 1; refused != (a.Err != nil) || refused != (a.Action == envelope.ActionID{}) {
			t.Errorf("answer %d = %+v", i, a)
		}
	}
	if n := d.count("SELECT count(1) FROM actions WHERE tenant_id = $1", d.tenant.String()); n != 3 {
		t.Errorf("%d envelopes were written, want 3", n)
	}
	if n := len(d.accept(call("send", `{}`))); n != 1 {
		t.Errorf("Accept of nothing good has %d answers", n)
	}
}

func TestRefusalsPointAtTheField(t *testing.T) {
	t.Parallel()
	const marker = "marker-4711"
	d := newFixture(t)
	d.as(disable("second", d.tenant))
	source := func(source, name, app string) *envelope.Proposal {
		p := call(name, "{}")
		p.Tool.Source, p.Tool.ComposioApp = source, app
		return p
	}

	for name, test := range map[string]struct {
		proposal *envelope.Proposal
		want     []envelope.FieldError
	}{
		"unknown source":        {source("nowhere", "note", ""), fields("/tool/source", "unknown_source")},
		"source that is off":    {source("second", "note", ""), fields("/tool/source", "unknown_source")},
		"unknown app":           {source("", "note", "nowhere"), fields("/tool/source", "unknown_source")},
		"unknown tool":          {source("first", "nothing", ""), fields("/tool/name", "unknown_tool")},
		"unknown tool anywhere": {source("", "nothing", ""), fields("/tool/name", "unknown_tool")},
		"missing argument":      {call("send", `{}`), fields("/args/text", "required")},
		"argument of a type":    {call("send", `{"text":{"a":"`+marker+`"}}`), fields("/args/text", "type")},
		"argument too long":     {call("send", `{"text":"`+marker+`"}`), fields("/args/text", "maxLength")},
		"argument too many":     {call("send", `{"text":"a","more":"`+marker+`"}`), fields("/args/more", "unknown_field")},
		"names with slashes":    {call("send", `{"text":"a","a/b~c":"`+marker+`"}`), fields("/args/a~1b~0c", "unknown_field")},
	} {
		a := d.accept(test.proposal)[0]

		invalid, ok := errors.AsType[*envelope.InvalidError](a.Err)
		if !ok || !errors.Is(a.Err, fault.Invalid) {
			t.Errorf("%s: Accept = %v, want *envelope.InvalidError", name, a.Err)
			continue
		}
		if diff := cmp.Diff(test.want, invalid.Fields, cmpopts.IgnoreFields(envelope.FieldError{}, "Message")); diff != "" {
			t.Errorf("%s: fields (-want +got):\n%s", name, diff)
		}
		if strings.Contains(fmt.Sprintf("%v %+v", a.Err, invalid.Fields), marker) {
			t.Errorf("%s: the refusal repeats a value: %v", name, a.Err)
		}
	}
	if a := d.accept(call("broken", `{"a":"`+marker+`"}`))[0]; !errors.Is(a.Err, fault.Invalid) || strings.Contains(a.Err.Error(), marker) {
		t.Errorf("Accept for a tool whose schema is broken = %v, want that there is no such tool", a.Err)
	}
}

func fields(pointer string, rule envelope.Rule) []envelope.FieldError {
	return []envelope.FieldError{{Pointer: pointer, Rule: rule}}
}

func TestSeveralSourcesHaveTheTool(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	p := note("")
	p.Tool.Source = ""

	ambiguous := d.accept(p)[0]
	d.as(disable("second", d.tenant))
	clear := d.accept(p)[0]

	invalid, ok := errors.AsType[*envelope.InvalidError](ambiguous.Err)
	if !ok || invalid.Fields[0].Pointer != "/tool/source" || !strings.Contains(invalid.Fields[0].Message, "first:note, second:note") {
		t.Errorf("Accept = %v, want it to name the sources", ambiguous.Err)
	}
	if clear.Err != nil || d.view(clear.Action).Envelope.Tool.Source != "first" {
		t.Errorf("Accept with one source left = %+v", clear)
	}
}

func TestATokenBindsWhatItProposes(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	by := d.by()
	by.Employee, by.Session = envelope.EmployeeID(d.tenant), "mine"
	with := func(fn func(p *envelope.Proposal)) *envelope.Proposal {
		p := note("")
		fn(p)
		return p
	}

	for name, test := range map[string]struct {
		proposal *envelope.Proposal
		pointer  string
	}{
		"nothing named":  {with(func(*envelope.Proposal) {}), ""},
		"own names":      {with(func(p *envelope.Proposal) { p.TenantID, p.EmployeeID, p.SessionID = d.tenant, by.Employee, "mine" }), ""},
		"other tenant":   {with(func(p *envelope.Proposal) { p.TenantID = envelope.TenantID(uuid.New()) }), "/tenant_id"},
		"other employee": {with(func(p *envelope.Proposal) { p.EmployeeID = envelope.EmployeeID(uuid.New()) }), "/employee_id"},
		"other session":  {with(func(p *envelope.Proposal) { p.SessionID = "theirs" }), "/session_id"},
	} {
		answers, err := d.in.Accept(t.Context(), by, []*envelope.Proposal{test.proposal})
		if err != nil {
			t.Fatal(err)
		}
		if test.pointer == "" {
			e := d.view(answers[0].Action).Envelope
			if e.EmployeeID != by.Employee || e.SessionID != "mine" || e.TenantID != d.tenant {
				t.Errorf("%s: envelope of %s in %q, want the token's", name, e.EmployeeID, e.SessionID)
			}
			continue
		}
		invalid, ok := errors.AsType[*envelope.InvalidError](answers[0].Err)
		if !ok || invalid.Fields[0].Pointer != test.pointer {
			t.Errorf("%s: Accept = %v, want %s refused", name, answers[0].Err, test.pointer)
		}
	}
}

func TestAcceptTakesAThousandAndNoMore(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	many := make([]*envelope.Proposal, intake.MaxBatch+1)
	for i := range many {
		many[i] = note(fmt.Sprint("e", i))
	}

	_, err := d.in.Accept(t.Context(), d.by(), many)
	answers := d.accept(many[:intake.MaxBatch]...)
	none := d.accept()

	if !errors.Is(err, fault.Invalid) {
		t.Errorf("Accept of %d = %v, want fault.Invalid", len(many), err)
	}
	if slices.ContainsFunc(answers, func(a intake.Answer) bool { return a.Err != nil || a.Known }) || len(none) != 0 {
		t.Error("Accept of 1000 refused some")
	}
	if got := d.count("SELECT count(1) FROM outbox WHERE tenant_id = $1", d.tenant.String()); got != intake.MaxBatch || d.woken.Load() != 1 {
		t.Errorf("%d are on the schedule and the fleet was woken %d times, want all and once", got, d.woken.Load())
	}
}

func TestAnUnknownTenantGetsNothing(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	by := d.by()
	by.Tenant = envelope.TenantID(uuid.New())

	_, err := d.in.Accept(t.Context(), by, []*envelope.Proposal{note("")})

	if !errors.Is(err, fault.NotFound) {
		t.Errorf("Accept = %v, want fault.NotFound", err)
	}
}

// Several processes get the same proposals concurrently, each in another
// order: each envelope is new to exactly one of them.
func TestConcurrentDuplicatesAreNewOnce(t *testing.T) {
	t.Parallel()
	const processes, rounds, batch = 4, 6, 25
	d := newSharedFixture(t)

	for n := range 3 {
		d.bucket(fmt.Sprintf("b%d", n))
	}
	for round := range rounds {
		var got [processes][]intake.Answer
		begin := make(chan struct{})
		var wg sync.WaitGroup
		for i := range processes {
			other := newIntakeLike(d)
			wg.Go(func() {
				proposals := make([]*envelope.Proposal, batch)
				for j := range proposals {
					proposals[j] = note(fmt.Sprintf("r%d-%d", round, (j*7+i*11)%batch))
					proposals[j].Constraints.RateBucket = fmt.Sprintf("b%d", ((j*7+i*11)%batch)%3)
				}
				<-begin
				var err error
				if got[i], err = other.Accept(t.Context(), d.by(), proposals); err != nil {
					t.Errorf("Accept = %v", err)
				}
			})
		}
		close(begin)
		wg.Wait()

		news, actions := 0, make(map[envelope.ActionID]bool)
		for i := range processes {
			for _, a := range got[i] {
				if a.Err != nil {
					t.Fatalf("Accept answers %v", a.Err)
				}
				actions[a.Action] = true
				if !a.Known {
					news++
				}
			}
		}
		if news != batch || len(actions) != batch {
			t.Errorf("round %d: %d new, %d distinct; want %d of both", round, news, len(actions), batch)
		}
	}
	if got := d.count("SELECT count(1) FROM outbox"); got != rounds*batch {
		t.Errorf("%d envelopes are on the schedule, want %d", got, rounds*batch)
	}
}
