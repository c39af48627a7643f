package subscription

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const (
	// actor is who switches a subscription off.
	actor = "countersign"
	// readAtOnce bounds the events of one step, and itemsAtOnce the items of
	// them that it looks into: an event may be about thousands of envelopes.
	readAtOnce  = 100
	itemsAtOnce = 200
	// heldFor is how long a subscription is left alone that could not go on,
	// and unlistedFor if that is because its source is new.
	errorPause   = 30 * time.Second
	listingPause = 2 * time.Second
)

// Relay follows events on behalf of subscriptions. Any number of processes may
// run one at the same time.
type Relay struct {
	db      postgres.Begins
	catalog *settings.Cache
	intake  *intake.Intake
	log     *slog.Logger
}

// NewRelay returns a Relay that proposes messages through an intake.
func NewRelay(db postgres.Begins, cache *settings.Cache, in *intake.Intake, log *slog.Logger) *Relay {
	return &Relay{db: db, catalog: cache, intake: in, log: log}
}

// Step takes one subscription some way on, in one transaction: what it is to
// be told is proposed, and its cursor moved, together or not at all. It
// reports false if there was nothing to tell anybody.
func (r *Relay) Step(ctx context.Context) (bool, error) {
	var tenant envelope.TenantID
	var s *Subscription
	var committed []func()
	err := postgres.InTx(ctx, r.db, postgres.Worker(), func(tx pgx.Tx) error {
		committed = nil
		of, claimed, at, ok, err := claim(ctx, tx)
		if err != nil || !ok {
			s = nil
			return err
		}
		tenant, s = of, claimed
		committed, err = r.tell(ctx, tx, tenant, s, at)
		return err
	})
	switch {
	case err == nil:
		for _, done := range committed {
			done()
		}
		return s != nil, nil
	case s == nil || ctx.Err() != nil:
		return false, err
	}
	pause := errorPause
	if f, ok := errors.AsType[*fault.Error](err); ok && f.After > 0 {
		pause = f.After
	}
	// The others must not wait for one that cannot go on.
	r.log.WarnContext(ctx, "subscription held", slog.String("tenant_id", tenant.String()), slog.String("subscription", s.Name), slog.Any("error", err))
	return true, postgres.InTx(ctx, r.db, postgres.Worker(), func(tx pgx.Tx) error { return hold(ctx, tx, tenant, s, pause) })
}

// round is one step of one subscription.
type step struct {
	*Relay
	tx     pgx.Tx
	tenant envelope.TenantID
	s      *Subscription
	slack  bool
	// told are the items to tell of, and settled and changed the envelopes
	// whose end, or decision, may have to show in a message.
	messages         []message
	settled, changed []uuid.UUID
	views            map[envelope.ActionID]*outbox.View
	proposals        []*envelope.Proposal
	// asked are, by place among the proposals, what they ask for a decision
	// about.
	asked map[int]envelope.ActionID
	drop  []uuid.UUID
}

func (r *Relay) tell(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, s *Subscription, at cursor) ([]func(), error) {
	snap, err := r.catalog.Current(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	src, known := snap.Source(s.Source)
	tools := settings.DeliveryTools(src.Kind)
	if known && len(tools) == 0 {
		return nil, disable(ctx, tx, tenant, s, "its source is neither a webhook nor Slack any more")
	}
	if !known || !src.Enabled {
		return nil, errPaused("the source is off")
	}
	for _, name := range tools {
		if _, ok := snap.Tool(policy.Key{Source: s.Source, Action: name}); !ok {
			return nil, fault.Limit(listingPause, "the source has not listed the tool %s", name)
		}
	}
	if _, ok := snap.Limits.Bucket(s.Bucket); !ok {
		s.Bucket = "" // it was retired
	}
	events, err := audit.Read(ctx, tx, tenant, at.Position, readAtOnce)
	if err != nil {
		return nil, err
	}
	rd := &step{
		Relay: r, tx: tx, tenant: tenant, s: s, slack: src.Kind == catalog.KindSlack,
		views: make(map[envelope.ActionID]*outbox.View), asked: make(map[int]envelope.ActionID),
	}
	to := rd.gather(events, at)
	return rd.finish(ctx, to)
}

// gather picks what is of interest out of events, and returns how far it got.
func (rd *step) gather(events []audit.Stored, at cursor) cursor {
	seen := 0
	for _, e := range events {
		for i, it := range e.Items {
			if e.Position.Compare(events[0].Position) == 0 && i < at.items {
				continue
			}
			if seen == itemsAtOnce {
				if i == 0 {
					return at
				}
				return cursor{at.Position, i}
			}
			if rd.pick(e, i, it) {
				seen++
			}
		}
		at = cursor{e.Position, 0}
	}
	return at
}

// pick says whether an item is of interest.
func (rd *step) pick(e audit.Stored, i int, it audit.Item) bool {
	name, wanted := rd.s.wants(e.Kind, it)
	ended := e.Kind == audit.Settled && it.Code == source.CodeGone
	if wanted || ended {
		if !wanted {
			name = ""
		}
		rd.messages = append(rd.messages, message{name: name, place: e.Position, item: i, kind: e.Kind, actor: e.Actor, at: e.At, it: it})
	}
	if !rd.slack {
		return wanted || ended
	}
	switch e.Kind {
	case audit.Settled, audit.Resolved:
		rd.settled = append(rd.settled, uuid.UUID(it.Action))
	case audit.Undone, audit.Killed:
		rd.settled, rd.changed = append(rd.settled, uuid.UUID(it.Action)), append(rd.changed, uuid.UUID(it.Action))
	case audit.Decided, audit.Voted, audit.Edited:
		rd.changed = append(rd.changed, uuid.UUID(it.Action))
	case audit.Proposed, audit.Expiring, audit.Escalated, audit.ReturnedToApproval, audit.Replayed, audit.Discarded, audit.Configured,
		audit.Noticed, audit.Pruned, audit.WorkflowChanged:
		return wanted
	}
	return true
}

// finish proposes what follows from what was gathered, and moves the
// subscription on.
func (rd *step) finish(ctx context.Context, to cursor) ([]func(), error) {
	var shown []approvalMessage
	if len(rd.settled)+len(rd.changed) > 0 {
		var err error
		if shown, err = findMessages(ctx, rd.tx, rd.tenant, rd.s.ID, rd.changed, rd.settled); err != nil {
			return nil, err
		}
	}
	if err := rd.read(ctx, shown); err != nil {
		return nil, err
	}
	for i := range rd.messages {
		t := &rd.messages[i]
		if t.view = rd.views[t.it.Action]; t.view != nil && rd.refused(t) {
			return nil, rd.end(ctx, t)
		}
		if err := rd.compose(t); err != nil {
			return nil, err
		}
	}
	for _, n := range shown {
		if err := rd.show(n); err != nil {
			return nil, err
		}
	}
	committed, err := rd.accept(ctx)
	if err != nil {
		return nil, err
	}
	if err := deleteMessages(ctx, rd.tx, rd.tenant, rd.s, rd.drop); err != nil {
		return nil, err
	}
	return committed, advance(ctx, rd.tx, rd.tenant, rd.s, to)
}

// read looks up every envelope that matters in one query.
func (rd *step) read(ctx context.Context, shown []approvalMessage) error {
	var ids []envelope.ActionID
	for _, t := range rd.messages {
		if t.it.Action != (envelope.ActionID{}) {
			ids = append(ids, t.it.Action)
		}
	}
	for _, n := range shown {
		ids = append(ids, n.about, n.delivery)
	}
	if len(ids) == 0 {
		return nil
	}
	slices.SortFunc(ids, func(a, b envelope.ActionID) int { return slices.Compare(a[:], b[:]) })
	views, err := outbox.Get(ctx, rd.tx, rd.tenant, slices.Compact(ids)...)
	for i := range views {
		rd.views[views[i].Envelope.ActionID] = &views[i]
	}
	return err
}

// refused says that an item is the end of a delivery of this subscription
// whose receiver wants no more. One from before an operator switched it on
// again says nothing of now.
func (rd *step) refused(t *message) bool {
	e := &t.view.Envelope
	return t.kind == audit.Settled && t.it.Code == source.CodeGone &&
		e.AutomationID == settings.SubscriptionAutomation(rd.s.ID) && e.Timestamps.CreatedAt.After(rd.s.UpdatedAt)
}

// end switches the subscription off. It stands behind the item that said so,
// should somebody switch it on again.
func (rd *step) end(ctx context.Context, t *message) error {
	if err := advance(ctx, rd.tx, rd.tenant, rd.s, cursor{audit.Position{Tx: t.place.Tx, Event: t.place.Event - 1}, t.item + 1}); err != nil {
		return err
	}
	return disable(ctx, rd.tx, rd.tenant, rd.s, "the receiver answered 410: it wants no more messages")
}

// compose proposes the message about an item, if there is to be one: never
// about a delivery, whosever it is.
func (rd *step) compose(t *message) error {
	switch {
	case t.name == "":
		return nil
	case t.it.Action == (envelope.ActionID{}):
		if !rd.s.wantsAll() {
			return nil
		}
	case t.view == nil: // retention took it
		return nil
	default:
		if _, delivery := settings.Delivery(t.view.Envelope.AutomationID); delivery || !rd.s.covers(&t.view.Envelope) {
			return nil
		}
	}
	if !rd.slack {
		p, err := rd.s.deliver(t)
		return rd.propose(p, err)
	}
	asking := t.view != nil && asks(t)
	if t.name == ApprovalRequest && !asking {
		return nil // somebody has decided meanwhile
	}
	if asking {
		rd.asked[len(rd.proposals)] = t.it.Action
	}
	p, err := rd.s.announce(t)
	return rd.propose(p, err)
}

func (rd *step) propose(p *envelope.Proposal, err error) error {
	if err == nil {
		rd.proposals = append(rd.proposals, p)
	}
	return err
}

// show brings a message that asks for a decision up to date: how many have
// agreed, what was edited, and at last what was decided. A message that is not
// out yet comes here again when it is.
func (rd *step) show(n approvalMessage) error {
	about, delivery := rd.views[n.about], rd.views[n.delivery]
	if about == nil || delivery == nil {
		rd.drop = append(rd.drop, uuid.UUID(n.delivery))
		return nil
	}
	channel, ts, out := messageOf(delivery)
	waits := about.Envelope.Approval == envelope.ApprovalRequired
	status := delivery.Envelope.Result.Status
	switch {
	case !out && (envelope.Terminal(status) || status == envelope.StatusUnknown && !waits):
		rd.drop = append(rd.drop, uuid.UUID(n.delivery))
		return nil
	case !out || waits && current(delivery, about):
		return nil
	case waits:
		p, err := rd.s.update(channel, ts, n.delivery, stateOf(about), rd.s.request(*about, headline("")))
		return rd.propose(p, err)
	}
	rd.drop = append(rd.drop, uuid.UUID(n.delivery))
	p, err := rd.s.update(channel, ts, n.delivery, string(about.Envelope.Approval), rd.s.verdict(*about))
	return rd.propose(p, err)
}

// accept proposes everything in as few batches as can be.
func (rd *step) accept(ctx context.Context) (committed []func(), err error) {
	by := intake.Submitter{Tenant: rd.tenant, Name: "subscription " + rd.s.Name, Reserved: true, Origin: json.RawMessage(`{"via":"system"}`)}
	var kept []approvalMessage
	for at := 0; at < len(rd.proposals); at += intake.MaxBatch {
		batch := rd.proposals[at:min(at+intake.MaxBatch, len(rd.proposals))]
		answers, done, err := rd.intake.AcceptTx(ctx, rd.tx, by, batch)
		if err != nil {
			return nil, err
		}
		committed = append(committed, done)
		for i, a := range answers {
			about, asking := rd.asked[at+i]
			switch {
			case a.Err == nil && asking:
				kept = append(kept, approvalMessage{about, a.Action})
			case a.Err != nil && !errors.Is(a.Err, fault.Conflict):
				// The message cannot be sent, now or ever; the others can.
				rd.log.ErrorContext(ctx, "message not accepted", slog.String("subscription", rd.s.Name),
					slog.String("external_id", batch[i].ExternalID), slog.Any("error", a.Err))
			}
		}
	}
	return committed, insertMessages(ctx, rd.tx, rd.tenant, rd.s, kept)
}
