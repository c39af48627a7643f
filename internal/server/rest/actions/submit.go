// Package actions handles requests about actions: proposing them, calling
// tools, showing and waiting for them, and undoing them.
package actions

import (
	"net/http"
	"strconv"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/slot"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// deniedError is the error of a proposal that policy denied; the action is
// stored.
type deniedError struct{ view outbox.View }

func (e *deniedError) Error() string {
	return "policy denies this action: " + policy.Because(envelope.ModeDeny, e.view.ModeSource, policy.Denying(e.view.Trace))
}

// Problem returns the problem, with the action.
func (e *deniedError) Problem() wire.Problem {
	p := request.ProblemOf(fault.Coded(wire.CodePolicyDenied, fault.Denied, "%s", e.Error()))
	p.Action = new(ViewOf(e.view))
	return p
}

// proposal parses the body as one proposal and sets its external id.
func proposal(c *request.Call) (*envelope.Proposal, error) {
	p, err := envelope.Parse(c.Body)
	if err != nil {
		return nil, err
	}
	key := c.R.Header.Get("Idempotency-Key")
	switch {
	case key == "" && p.ExternalID == "" && c.Query.Get("dry_run") != "true":
		return nil, request.Invalid("/external_id", envelope.RuleRequired, "set external_id or the header Idempotency-Key, so that sending the action again is safe")
	case key != "" && p.ExternalID != "" && key != p.ExternalID:
		return nil, request.Invalid("/external_id", "same", "differs from the Idempotency-Key; send only one of them")
	case key != "":
		p.ExternalID = key
	}
	return p, nil
}

// accept proposes actions, and sets the session's remaining limits in the
// response's header.
func accept(c *request.Call, by intake.Submitter, proposals ...*envelope.Proposal) ([]intake.Answer, error) {
	answers, quotas, err := c.Intake.AcceptCounted(c.R.Context(), by, proposals)
	request.SetRateLimit(c.W.Header(), quotas...)
	return answers, err
}

// Submit handles POST /api/v1/actions. It proposes an action: 201 if it is new,
// 200 if it is known. With dry_run it returns the expected result instead.
func Submit(c *request.Call) error {
	p, err := proposal(c)
	if err != nil {
		return err
	}
	if c.Query.Get("dry_run") == "true" {
		return answerDryRun(c, p)
	}
	by, err := withPlan(c, c.Query.Get("plan"), "/query/plan")
	if err != nil {
		return err
	}
	by.Awaited = c.WaitFor > 0
	answers, err := accept(c, by, p)
	if err != nil {
		return err
	}
	if answers[0].Err != nil {
		return answers[0].Err
	}
	view, err := awaitProposed(c, answers[0])
	if err != nil {
		return err
	}
	if view.Mode == envelope.ModeDeny {
		return &deniedError{view}
	}
	c.W.Header().Set("Location", "/api/v1/actions/"+view.Envelope.ActionID.String())
	status := http.StatusCreated
	if answers[0].Known {
		status = http.StatusOK
	}
	return c.JSON(status, ViewOf(view))
}

// SubmitMany handles POST /api/v1/actions/batch. It proposes many actions and
// returns a result for each.
func SubmitMany(c *request.Call) error {
	var parsed []envelope.Item
	err := slot.Reading(c.R.Context(), len(c.Body), func() (err error) {
		parsed, err = envelope.ParseMany(c.Body)
		return err
	})
	if err != nil {
		return err
	}
	answered := make([]wire.BatchItem, len(parsed))
	proposals, at := namedProposals(parsed, answered)
	answers, err := accept(c, c.Submitter(), proposals...)
	if err != nil {
		return err
	}
	var known []envelope.ActionID
	for i, a := range answers {
		answered[at[i]] = manyItemOf(at[i], a)
		if a.Known {
			known = append(known, a.Action)
		}
	}
	if err := fillKnown(c, answered, known); err != nil {
		return err
	}
	for i := range answered {
		if p := answered[i].Problem; p != nil {
			p.Instance = request.ID(c.R.Context())
		}
	}
	return request.Items(c, answered)
}

// namedProposals returns the proposals that can be accepted, with their
// indexes, and refuses the others.
func namedProposals(parsed []envelope.Item, answered []wire.BatchItem) (proposals []*envelope.Proposal, at []int) {
	for i, it := range parsed {
		switch {
		case it.Err != nil:
			answered[i] = refusedItem(i, it.Err)
		case it.Proposal.ExternalID == "":
			answered[i] = refusedItem(i, request.Invalid(itemPointer(i)+"/external_id", envelope.RuleRequired, "every proposal of a batch needs an external_id, so that sending it again is safe"))
		default:
			proposals, at = append(proposals, it.Proposal), append(at, i)
		}
	}
	return proposals, at
}

func manyItemOf(i int, a intake.Answer) wire.BatchItem {
	if a.Err != nil {
		return refusedItem(i, request.Below(itemPointer(i), a.Err))
	}
	it := wire.BatchItem{Index: i, Result: wire.ResultAccepted, ActionID: &a.Action, Phase: envelope.PhaseOf(a.Approval, envelope.StatusPending, "")}
	switch {
	case a.Known:
		it.Result = wire.ResultKnown
	case a.Mode == envelope.ModeDeny:
		why := policy.Because(envelope.ModeDeny, a.Source, policy.Denying(a.Trace))
		it.Result, it.Problem = wire.ResultDenied, new(request.ProblemOf(fault.New(fault.Denied, "policy denies this action: %s", why)))
	}
	return it
}

// fillKnown sets the phases of the actions that were known already.
func fillKnown(c *request.Call, answered []wire.BatchItem, known []envelope.ActionID) error {
	if len(known) == 0 {
		return nil
	}
	found, err := Views(c, known...)
	if err != nil {
		return err
	}
	for i := range answered {
		it := &answered[i]
		if it.Result != wire.ResultKnown {
			continue
		}
		if v, ok := found[*it.ActionID]; ok {
			it.Phase = v.Phase
		}
	}
	return nil
}

func refusedItem(i int, err error) wire.BatchItem {
	return wire.BatchItem{Index: i, Result: wire.ResultRefused, Problem: new(request.ProblemOf(err))}
}

func itemPointer(i int) string { return "/items/" + strconv.Itoa(i) }
