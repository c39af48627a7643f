package subscription

import (
	"cmp"
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
	"github.com/countersign-dev/countersign/internal/lookalike"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/web"
)

const (
	// actor disables subscriptions.
	actor = "countersign"
	// readAtOnce bounds the events of one step, and itemsAtOnce their items: an
	// event may be about thousands of actions.
	readAtOnce  = 100
	itemsAtOnce = 200
	// errorPause is the pause of a subscription after an error, and listingPause
	// the one while its source has not been listed.
	errorPause   = 30 * time.Second
	listingPause = 2 * time.Second
)

// Relay turns events into messages to subscriptions. Any number of processes
// may run one at the same time.
type Relay struct {
	db      postgres.Begins
	catalog *settings.Cache
	intake  *intake.Intake
	links   web.Base
	log     *slog.Logger
}

// NewRelay returns a Relay that proposes messages through an intake. Messages in
// Slack link to the page of links, unless their subscription sets another.
func NewRelay(db postgres.Begins, cache *settings.Cache, in *intake.Intake, links web.Base, log *slog.Logger) *Relay {
	return &Relay{db: db, catalog: cache, intake: in, links: links, log: log}
}

// Step advances one subscription: in one transaction it proposes the
// subscription's next messages and moves its cursor. It reports false if no
// subscription is due.
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
		s.Link = cmp.Or(s.Link, r.links.Actions())
		committed, err = r.relay(ctx, tx, tenant, s, at)
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
	// A subscription with an error must not delay the others.
	r.log.WarnContext(ctx, "subscription paused", slog.String("tenant_id", tenant.String()), slog.String("subscription", s.Name), slog.Any("error", err))
	return true, postgres.InTx(ctx, r.db, postgres.Worker(), func(tx pgx.Tx) error { return hold(ctx, tx, tenant, s, pause) })
}

// step is one step of one subscription.
type step struct {
	*Relay
	tx     pgx.Tx
	tenant envelope.TenantID
	s      *Subscription
	slack  bool
	// tools are the tools of the tenant, for headlines.
	tools *settings.Settings
	// settled and changed are the actions whose end or decision may update a
	// message.
	messages         []message
	settled, changed []uuid.UUID
	views            map[envelope.ActionID]*outbox.View
	proposals        []*envelope.Proposal
	// asked are the actions that messages request a decision about, by index of
	// the proposal.
	asked map[int]envelope.ActionID
	drop  []uuid.UUID
}

func (r *Relay) relay(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, s *Subscription, at cursor) ([]func(), error) {
	current, err := r.catalog.Current(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	src, known := current.Source(s.Source)
	tools := settings.DeliveryTools(src.Kind)
	if known && len(tools) == 0 {
		return nil, disable(ctx, tx, tenant, s, "the kind of its source changed; it must be webhook or slack")
	}
	if !known || !src.Enabled {
		return nil, fault.New(fault.Busy, "the source is disabled")
	}
	for _, name := range tools {
		if _, ok := current.Tool(policy.Key{Source: s.Source, Action: name}); !ok {
			return nil, &fault.Error{Kind: fault.Limited, Text: "the source has not listed the tool " + name, After: listingPause}
		}
	}
	if _, ok := current.Limits.Bucket(s.Bucket); !ok {
		s.Bucket = "" // it was retired
	}
	events, err := audit.Read(ctx, tx, tenant, at.Position, readAtOnce)
	if err != nil {
		return nil, err
	}
	st := &step{
		Relay: r, tx: tx, tenant: tenant, s: s, slack: src.Kind == catalog.KindSlack, tools: current,
		views: make(map[envelope.ActionID]*outbox.View), asked: make(map[int]envelope.ActionID),
	}
	to := st.collect(events, at)
	return st.finish(ctx, to)
}

// collect adds the relevant items of events to the step, and returns the cursor
// behind them.
func (st *step) collect(events []audit.Stored, at cursor) cursor {
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
			if st.add(e, i, it) {
				seen++
			}
		}
		at = cursor{e.Position, 0}
	}
	return at
}

// add adds an item of an event to the step, and reports whether it is relevant.
func (st *step) add(e audit.Stored, i int, it audit.Item) bool {
	name, wanted := st.s.wants(e.Kind, it)
	ended := e.Kind == audit.Settled && it.Code == source.CodeGone
	if wanted || ended {
		if !wanted {
			name = ""
		}
		st.messages = append(st.messages, message{name: name, position: e.Position, item: i, kind: e.Kind, actor: string(e.Actor), at: e.At, it: it})
	}
	if !st.slack {
		return wanted || ended
	}
	switch e.Kind {
	case audit.Settled, audit.Resolved:
		st.settled = append(st.settled, uuid.UUID(it.Action))
	case audit.Undone, audit.Killed:
		st.settled, st.changed = append(st.settled, uuid.UUID(it.Action)), append(st.changed, uuid.UUID(it.Action))
	case audit.Decided, audit.Voted, audit.Edited:
		st.changed = append(st.changed, uuid.UUID(it.Action))
	default:
		return wanted
	}
	return true
}

// finish proposes the messages of the step, and advances the subscription.
func (st *step) finish(ctx context.Context, to cursor) ([]func(), error) {
	var shown []approvalMessage
	if len(st.settled)+len(st.changed) > 0 {
		var err error
		if shown, err = findMessages(ctx, st.tx, st.tenant, st.s.ID, st.changed, st.settled); err != nil {
			return nil, err
		}
	}
	if err := st.read(ctx, shown); err != nil {
		return nil, err
	}
	for i := range st.messages {
		t := &st.messages[i]
		if t.view = st.views[t.it.Action]; t.view != nil && st.endsSubscription(t) {
			return nil, st.disable(ctx, t)
		}
		if err := st.compose(t); err != nil {
			return nil, err
		}
	}
	for _, n := range shown {
		if err := st.updateMessage(n); err != nil {
			return nil, err
		}
	}
	committed, err := st.accept(ctx)
	if err != nil {
		return nil, err
	}
	if err := deleteMessages(ctx, st.tx, st.tenant, st.s, st.drop); err != nil {
		return nil, err
	}
	return committed, advance(ctx, st.tx, st.tenant, st.s, to)
}

// read reads the actions of the step in one query.
func (st *step) read(ctx context.Context, shown []approvalMessage) error {
	var ids []envelope.ActionID
	for _, t := range st.messages {
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
	views, err := outbox.Get(ctx, st.tx, st.tenant, slices.Compact(ids)...)
	for i := range views {
		st.views[views[i].Envelope.ActionID] = &views[i]
	}
	return err
}

// endsSubscription reports whether an item is the end of a delivery of this
// subscription that its receiver answered with 410. Deliveries from before an
// operator enabled the subscription again do not count.
func (st *step) endsSubscription(t *message) bool {
	e := &t.view.Envelope
	return t.kind == audit.Settled && t.it.Code == source.CodeGone &&
		e.AutomationID == settings.SubscriptionAutomation(st.s.ID) && e.Timestamps.CreatedAt.After(st.s.UpdatedAt)
}

// disable disables the subscription and moves its cursor behind the item that
// caused it, in case an operator enables the subscription again.
func (st *step) disable(ctx context.Context, t *message) error {
	if err := advance(ctx, st.tx, st.tenant, st.s, cursor{audit.Position{Tx: t.position.Tx, Event: t.position.Event - 1}, t.item + 1}); err != nil {
		return err
	}
	return disable(ctx, st.tx, st.tenant, st.s, "the receiver answered 410: it wants no more messages")
}

// compose proposes the message about an item, if there is one. There are no
// messages about deliveries, of any subscription.
func (st *step) compose(t *message) error {
	switch {
	case t.name == "":
		return nil
	case t.it.Action == (envelope.ActionID{}):
		if !st.s.wantsAll() {
			return nil
		}
	case t.view == nil: // deleted by retention
		return nil
	default:
		if _, delivery := settings.Delivery(t.view.Envelope.AutomationID); delivery || !st.s.covers(&t.view.Envelope) {
			return nil
		}
	}
	if !st.slack {
		p, err := st.s.deliver(t)
		return st.propose(p, err)
	}
	asking := t.view != nil && requestsDecision(t)
	if t.name == ApprovalRequest && !asking {
		return nil // it has been decided in the meantime
	}
	if asking {
		st.asked[len(st.proposals)] = t.it.Action
	}
	p, err := st.s.slackMessage(t, st.headline(t.view))
	return st.propose(p, err)
}

func (st *step) propose(p *envelope.Proposal, err error) error {
	if err == nil {
		st.proposals = append(st.proposals, p)
	}
	return err
}

// mostMarks bounds the look-alikes in a message.
const mostMarks = 3

// headline returns one line about the arguments of an action, redacted as they are, and
// the names that may be taken for well-known ones: a channel may not read contacts.
func (st *step) headline(v *outbox.View) string {
	if v == nil {
		return ""
	}
	args := redact.JSON(v.Envelope.Args)
	line := st.tools.Headline(policy.Key{Source: v.Envelope.Tool.Source, Action: v.Envelope.Tool.Name}, args)
	return line + lookalike.Warning(args, mostMarks)
}

// updateMessage updates a message that requests a decision: with the number of
// votes, with edits, and at the end with the decision. A message that has not
// been sent yet is updated when it has been.
func (st *step) updateMessage(n approvalMessage) error {
	about, delivery := st.views[n.about], st.views[n.delivery]
	if about == nil || delivery == nil {
		st.drop = append(st.drop, uuid.UUID(n.delivery))
		return nil
	}
	channel, ts, out := messageOf(delivery)
	waits := about.Envelope.Approval == envelope.ApprovalRequired
	status := delivery.Envelope.Result.Status
	switch {
	case !out && (envelope.Terminal(status) || status == envelope.StatusUnknown && !waits):
		st.drop = append(st.drop, uuid.UUID(n.delivery))
		return nil
	case !out || waits && current(delivery, about):
		return nil
	case waits:
		p, err := st.s.update(channel, ts, n.delivery, stateOf(about), st.s.request(*about, titleOf(""), st.headline(about)))
		return st.propose(p, err)
	}
	st.drop = append(st.drop, uuid.UUID(n.delivery))
	p, err := st.s.update(channel, ts, n.delivery, string(about.Envelope.Approval), st.s.decisionMessage(*about, st.headline(about)))
	return st.propose(p, err)
}

// accept submits the proposals in as few batches as possible.
func (st *step) accept(ctx context.Context) (committed []func(), err error) {
	by := intake.Submitter{Tenant: st.tenant, Name: "subscription " + st.s.Name, Reserved: true, Origin: json.RawMessage(`{"via":"system"}`)}
	var kept []approvalMessage
	for at := 0; at < len(st.proposals); at += intake.MaxBatch {
		batch := st.proposals[at:min(at+intake.MaxBatch, len(st.proposals))]
		answers, done, err := st.intake.AcceptTx(ctx, st.tx, by, batch, true)
		if err != nil {
			return nil, err
		}
		committed = append(committed, done)
		for i, a := range answers {
			about, asking := st.asked[at+i]
			switch {
			case a.Err == nil && asking:
				kept = append(kept, approvalMessage{about, a.Action})
			case a.Err != nil && !errors.Is(a.Err, fault.Conflict):
				// This message can never be sent; the others can.
				st.log.ErrorContext(ctx, "message not accepted", slog.String("subscription", st.s.Name),
					slog.String("external_id", batch[i].ExternalID), slog.Any("error", a.Err))
			}
		}
	}
	return committed, insertMessages(ctx, st.tx, st.tenant, st.s, kept)
}
