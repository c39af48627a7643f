package subscription

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/deadletter"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source/webhook"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// MaxResends bounds how often a delivery is sent again.
const MaxResends = 20

// KeyOf returns the idempotency key of an action's calls, and how often its
// message was sent again: a resend has the key of its delivery, so that the receiver
// recognizes the message.
func KeyOf(it *outbox.Item) (key string, repeat int) {
	if r, ok := settings.RepeatOf(it.Automation, it.ExternalID); ok {
		return envelope.Key(it.Tenant, r.Of), r.Number
	}
	return it.Key(), 0
}

// Resend proposes to send the message of an ended delivery to its webhook again, in
// the transaction of the caller, who calls committed after the commit. The delivery
// keeps its state and its attempts; the resend is an action of its own. While one
// resend has not ended, another request returns it. The error is fault.Conflict with
// the remedy if the delivery cannot be sent again.
func Resend(ctx context.Context, tx pgx.Tx, in *intake.Intake, snap *settings.Settings, by intake.Submitter, v outbox.View, note string) (a intake.Answer, committed func(), err error) {
	e := &v.Envelope
	s, err := resendable(ctx, tx, snap, by.Tenant, v)
	if err != nil {
		return a, nil, err
	}
	of := e.ActionID
	if r, again := settings.RepeatOf(e.AutomationID, e.ExternalID); again {
		of = r.Of
	}
	// One transaction at a time names the resends of a delivery.
	if err := lock(ctx, tx, by.Tenant, of); err != nil {
		return a, nil, err
	}
	p := &envelope.Proposal{
		Type: envelope.TypeExec, Tool: e.Tool, Args: e.Args, AutomationID: e.AutomationID, Constraints: envelope.Constraints{RateBucket: s.Bucket},
	}
	by.Base, _ = settings.ResendNames(e.AutomationID, of)
	by.Reserved, by.Session, by.Employee = true, "", envelope.EmployeeID{}
	answers, committed, err := in.AcceptTx(ctx, tx, by, []*envelope.Proposal{p}, true)
	if err == nil {
		a, err = answers[0], answers[0].Err
	}
	if err != nil || a.Known {
		return a, committed, err
	}
	if r, _ := settings.RepeatOf(p.AutomationID, p.ExternalID); r.Number > MaxResends {
		return a, nil, fault.New(fault.Conflict, "delivery %s was sent again %d times, the maximum; find out why its receiver does not keep it", of, MaxResends)
	}
	return a, committed, audit.Write(ctx, tx, audit.Event{Tenant: by.Tenant, Kind: audit.Replayed, Actor: by.Actor(), Items: []audit.Item{{
		Action: of, Note: note, Detail: map[string]any{"resend": a.Action.String()},
	}}})
}

// resendable returns the subscription of a delivery that can be sent again.
func resendable(ctx context.Context, tx pgx.Tx, snap *settings.Settings, tenant envelope.TenantID, v outbox.View) (*Subscription, error) {
	e := &v.Envelope
	of, delivery := settings.Delivery(e.AutomationID)
	switch {
	case !delivery:
		return nil, fault.New(fault.Conflict, "action %s is not a delivery of a subscription", e.ActionID)
	case e.Tool.Name != webhook.ToolDeliver:
		return nil, fault.New(fault.Conflict, "delivery %s is a message in Slack, which is not sent again; open the action that it is about", e.ActionID)
	case !envelope.Terminal(e.Result.Status) && v.Phase != envelope.PhaseUnknown:
		return nil, fault.New(fault.Conflict, "delivery %s has not ended; wait for its end", e.ActionID)
	}
	switch _, err := deadletter.Get(ctx, tx, tenant, e.ActionID); {
	case err == nil:
		return nil, fault.New(fault.Conflict, "delivery %s failed; replay it: countersign dlq replay %s", e.ActionID, e.ActionID)
	case fault.KindOf(err) != fault.NotFound:
		return nil, err
	}
	all, err := List(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(s Subscription) bool { return s.ID == of })
	if at < 0 {
		return nil, fault.New(fault.Conflict, "the subscription of delivery %s was deleted; a new one receives new events only", e.ActionID)
	}
	s := &all[at]
	if src, _ := snap.Source(s.Source); s.Source != e.Tool.Source {
		return nil, fault.New(fault.Conflict, "delivery %s was sent by source %s, and subscription %s now sends by %s; change its source back first", e.ActionID, e.Tool.Source, s.Name, s.Source)
	} else if !src.Enabled {
		return nil, fault.New(fault.Conflict, "source %s is disabled; enable it first: countersign source set %s", s.Source, s.Source)
	}
	if s.Enabled {
		return s, nil
	}
	why := ""
	if s.DisabledReason != "" {
		why = " (" + s.DisabledReason + ")"
	}
	return nil, fault.New(fault.Conflict, "subscription %s is off%s; turn it on first: countersign subscription set %s --source %s", s.Name, why, s.Name, s.Source)
}
