package rest

import (
	"errors"
	"net/http"
	"strconv"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// errOtherSession tells an agent of an action that it may not see.
var errOtherSession = fault.New(fault.Conflict, "another session has proposed an action of this external_id; take another one")

// submitter is the caller as intake knows it.
func (c *call) submitter() intake.Submitter {
	return intake.Submitter{
		Tenant: c.by.Tenant, Token: uuid.UUID(c.by.Token), Name: c.by.Name, Employee: c.by.Employee, Session: c.by.Session, Tools: c.by.Tools,
		Origin: Origin(c.r.Context(), execution.ViaAPI),
	}
}

// proposal reads the one proposal of the body and gives it its name.
func (c *call) proposal() (*envelope.Proposal, error) {
	p, err := envelope.Parse(c.body)
	if err != nil {
		return nil, err
	}
	key := c.r.Header.Get("Idempotency-Key")
	switch {
	case key == "" && p.ExternalID == "" && c.query.Get("dry_run") != "true":
		return nil, invalid("/external_id", envelope.RuleRequired, "give the action a name of your own, in external_id or in the header Idempotency-Key, so that sending it again is safe")
	case key != "" && p.ExternalID != "" && key != p.ExternalID:
		return nil, invalid("/external_id", "same", "is not the Idempotency-Key; leave one of them out")
	case key != "":
		p.ExternalID = key
	}
	return p, nil
}

func (s *Server) submitAction(c *call) error {
	p, err := c.proposal()
	if err != nil {
		return err
	}
	if c.query.Get("dry_run") == "true" {
		return s.dryRun(c, p)
	}
	by, err := c.planned(c.query.Get("plan"), "/query/plan")
	if err != nil {
		return err
	}
	answers, err := s.Intake.Accept(c.r.Context(), by, []*envelope.Proposal{p})
	if err != nil {
		return err
	}
	if answers[0].Err != nil {
		return answers[0].Err
	}
	view, err := s.await(c, answers[0].Action)
	if answers[0].Known && errors.Is(err, fault.NotFound) {
		return errOtherSession
	}
	if err != nil {
		return err
	}
	if view.Mode == envelope.ModeDeny {
		return &deniedError{view}
	}
	c.w.Header().Set("Location", "/api/v1/actions/"+view.Envelope.ActionID.String())
	status := http.StatusCreated
	if answers[0].Known {
		status = http.StatusOK
	}
	return c.json(status, actionFromView(view))
}

// batchItem is what became of one proposal of a batch.
type batchItem struct {
	Index   int                `json:"index"`
	Result  string             `json:"result"`
	Action  *envelope.ActionID `json:"action_id,omitempty"`
	Phase   envelope.Phase     `json:"phase,omitzero"`
	Problem *problem           `json:"problem,omitempty"`
}

func (s *Server) submitActions(c *call) error {
	parsed, err := envelope.ParseMany(c.body)
	if err != nil {
		return err
	}
	answered := make([]batchItem, len(parsed))
	proposals, at := named(parsed, answered)
	answers, err := s.Intake.Accept(c.r.Context(), c.submitter(), proposals)
	if err != nil {
		return err
	}
	var known []envelope.ActionID
	for i, a := range answers {
		answered[at[i]] = batchItemOf(at[i], a)
		if a.Known {
			known = append(known, a.Action)
		}
	}
	if err := s.fillKnown(c, answered, known); err != nil {
		return err
	}
	for i := range answered {
		if p := answered[i].Problem; p != nil {
			p.Instance = requestID(c.r.Context())
		}
	}
	return items(c, answered)
}

// named passes on the proposals that can be accepted, with their places, and
// refuses the others.
func named(parsed []envelope.Item, answered []batchItem) (proposals []*envelope.Proposal, at []int) {
	for i, it := range parsed {
		switch {
		case it.Err != nil:
			answered[i] = refusedItem(i, it.Err)
		case it.Proposal.ExternalID == "":
			answered[i] = refusedItem(i, invalid(itemPointer(i)+"/external_id", envelope.RuleRequired, "every proposal of a batch needs a name of your own, so that sending it again is safe"))
		default:
			proposals, at = append(proposals, it.Proposal), append(at, i)
		}
	}
	return proposals, at
}

func batchItemOf(i int, a intake.Answer) batchItem {
	if a.Err != nil {
		return refusedItem(i, below(itemPointer(i), a.Err))
	}
	it := batchItem{Index: i, Result: "accepted", Action: &a.Action, Phase: envelope.PhaseOf(a.Approval, envelope.StatusPending)}
	switch {
	case a.Known:
		it.Result = "known"
	case a.Mode == envelope.ModeDeny:
		why := policy.Denial(a.Source, policy.Denying(a.Trace))
		it.Result, it.Problem = "denied", new(describe(fault.New(fault.Denied, "policy denies this action: %s", why)))
	}
	return it
}

// fillKnown says where envelopes stand that were known already.
func (s *Server) fillKnown(c *call, answered []batchItem, known []envelope.ActionID) error {
	if len(known) == 0 {
		return nil
	}
	views, err := s.views(c, known...)
	if err != nil {
		return err
	}
	found := make(map[envelope.ActionID]outbox.View, len(views))
	for _, v := range views {
		found[v.Envelope.ActionID] = v
	}
	for i := range answered {
		it := &answered[i]
		if it.Result != "known" {
			continue
		}
		if v, ok := found[*it.Action]; ok && c.sees(v) {
			it.Phase = v.Phase
		} else {
			*it = refusedItem(i, errOtherSession)
		}
	}
	return nil
}

func refusedItem(i int, err error) batchItem {
	return batchItem{Index: i, Result: "refused", Problem: new(describe(err))}
}

func itemPointer(i int) string { return "/items/" + strconv.Itoa(i) }
