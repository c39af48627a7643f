package subscription

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
)

// violations are the faults for the constraints of this package's tables that
// a caller's input can violate.
var violations = postgres.Violations{
	"subscriptions_tenant_id_fkey":           fault.New(fault.NotFound, "no such tenant"),
	"subscriptions_source_id_fkey":           fault.New(fault.NotFound, "no such source"),
	"subscriptions_name_check":               fault.New(fault.Invalid, "a subscription's name must be 1 to 63 of a-z, 0-9, dot, - and _, and start with a letter or a digit"),
	"subscriptions_kinds_check":              fault.New(fault.Invalid, "a subscription must have 1 to 50 kinds of event"),
	"subscriptions_min_risk_check":           fault.New(fault.Invalid, "risk must be low, medium or high"),
	"subscriptions_pkey":                     fault.New(fault.Conflict, "a subscription with that name exists"),
	"subscriptions_subscription_id_key":      fault.New(fault.Conflict, "a subscription with that name exists"),
	"subscriptions_id_key":                   fault.New(fault.Conflict, "a subscription with that name exists"),
	"approval_messages_pkey":                 fault.New(fault.Conflict, "the subscription does not exist any more"),
	"approval_messages_subscription_id_fkey": fault.New(fault.Conflict, "the subscription does not exist any more"),
}

// List returns a tenant's subscriptions, or those with the given names, in order
// of name.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, names ...string) ([]Subscription, error) {
	rows, err := dbsqlc.New().SubscriptionList(ctx, tx, &dbsqlc.SubscriptionListParams{TenantID: tenant, Bound: behindBound, Names: names})
	return postgres.Map(rows, err, func(r dbsqlc.SubscriptionListRow) Subscription {
		return Subscription{
			ID: r.SubscriptionID, Name: r.Name, Source: r.SourceID, Kinds: r.Kinds, Tool: r.Tool, MinRisk: envelope.Risk(r.MinRisk),
			Channel: r.Channel, Link: r.Link, Bucket: r.RateBucket, HasSigningSecret: r.HasSigningSecret, ShowMail: r.ShowMail, Enabled: r.Enabled,
			DisabledReason: r.DisabledReason, Behind: int(r.Behind), CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, UpdatedBy: envelope.Actor(r.UpdatedBy),
		}
	})
}

// Get returns a subscription by its name. An unknown subscription is
// fault.NotFound.
func Get(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, name string) (Subscription, error) {
	all, err := List(ctx, tx, tenant, name)
	switch {
	case err != nil:
		return Subscription{}, err
	case len(all) == 0:
		return Subscription{}, errNone(name)
	}
	return all[0], nil
}

func errNone(name string) error { return fault.New(fault.NotFound, "no subscription %s", name) }

// Put creates a subscription, which receives events from now on, or changes the
// subscription of that name, which keeps its cursor unless fromNow moves it to
// the latest event. s.ID is the id of a new subscription; a secret, if given,
// must be encrypted for it.
func Put(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, s Subscription, encryptedSecret []byte, fromNow bool) error {
	q := dbsqlc.New()
	others, err := q.SubscriptionCount(ctx, tx, &dbsqlc.SubscriptionCountParams{TenantID: tenant, Name: s.Name})
	if err != nil {
		return err
	}
	if others >= maxSubscriptions {
		return fault.New(fault.Conflict, "there are %d subscriptions, which is the limit; delete one first", others)
	}
	at, err := audit.Latest(ctx, tx, tenant)
	if err != nil {
		return err
	}
	id, err := q.SubscriptionPut(ctx, tx, &dbsqlc.SubscriptionPutParams{
		TenantID: tenant, SubscriptionID: s.ID, Name: s.Name, SourceID: s.Source, Kinds: s.Kinds, Tool: s.Tool,
		MinRisk: string(s.MinRisk), Channel: s.Channel, Link: s.Link, RateBucket: s.Bucket, SigningSecret: encryptedSecret,
		ShowMail: s.ShowMail, Enabled: s.Enabled, CursorTxid: at.Tx, CursorEvent: at.Event, UpdatedBy: string(s.UpdatedBy), FromNow: fromNow,
	})
	err = violations.Fault(err)
	if err == nil && id != s.ID {
		return fault.New(fault.Conflict, "another request just created a subscription with that name; try again")
	}
	return err
}

// Delete deletes a subscription. Its deliveries that are not sent are denied
// from then on.
func Delete(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, name string) error {
	n, err := dbsqlc.New().SubscriptionDelete(ctx, tx, &dbsqlc.SubscriptionDeleteParams{TenantID: tenant, Name: name})
	return postgres.Affected(n, err, errNone(name))
}

// ButtonTarget is the subscription of a message whose button was used.
type ButtonTarget struct {
	Tenant envelope.TenantID
	// Subscription has the fields that its messages need.
	Subscription Subscription
	// EncryptedSecret is the signing secret of its Slack app.
	EncryptedSecret []byte
}

// FindButtonTarget returns a subscription with buttons by its id, before the
// tenant is known, in a transaction of the scope postgres.Authenticator. For an
// unknown subscription the error is fault.NotFound.
func FindButtonTarget(ctx context.Context, tx pgx.Tx, id uuid.UUID) (ButtonTarget, error) {
	// sqlc does not see the columns of the function.
	const query = "SELECT tenant_id, name, source_id, signing_secret FROM slack_subscription($1)"
	b := ButtonTarget{Subscription: Subscription{ID: id}}
	var tenant uuid.UUID
	err := tx.QueryRow(ctx, query, id).Scan(&tenant, &b.Subscription.Name, &b.Subscription.Source, &b.EncryptedSecret)
	b.Tenant = envelope.TenantID(tenant)
	return b, postgres.Found(err, fault.New(fault.NotFound, "no such subscription"))
}

// mailOf returns sender and subject of the message that an action is about, and
// false if it is about none, or the subscription shows no mail.
func mailOf(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, subscription uuid.UUID, action envelope.ActionID) (m mail, found bool, err error) {
	// sqlc does not see the columns of the function.
	const query = "SELECT sender, sender_name, subject FROM subscription_mail($1, $2, $3)"
	err = tx.QueryRow(ctx, query, uuid.UUID(tenant), subscription, uuid.UUID(action)).Scan(&m.sender, &m.name, &m.subject)
	if errors.Is(err, pgx.ErrNoRows) {
		return mail{}, false, nil
	}
	return m, err == nil, err
}

// Messages returns the deliveries of a subscription that requested a decision
// about an action.
func Messages(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, subscription uuid.UUID, action envelope.ActionID) ([]envelope.ActionID, error) {
	all, err := findMessages(ctx, tx, tenant, subscription, []uuid.UUID{uuid.UUID(action)}, nil)
	return postgres.Map(all, err, func(m approvalMessage) envelope.ActionID { return m.delivery })
}

// lock locks a delivery until the transaction ends; it ignores a deleted one.
func lock(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, delivery envelope.ActionID) error {
	_, err := dbsqlc.New().ApprovalLock(ctx, tx, &dbsqlc.ApprovalLockParams{TenantID: tenant, ActionIds: []uuid.UUID{uuid.UUID(delivery)}})
	return err
}

// SecretContext returns the name for which a signing secret is encrypted, in
// place of a source's id. No source can have that id.
func SecretContext(subscription uuid.UUID) string { return "subscription:" + subscription.String() }

// cursor is the position up to which events were sent to a subscription.
type cursor struct {
	audit.Position
	// items counts the items of the next event that were sent already.
	items int
}

// claim locks the next due subscription until the transaction ends. It returns
// false if none is found.
func claim(ctx context.Context, tx pgx.Tx) (envelope.TenantID, *Subscription, cursor, bool, error) {
	r, err := dbsqlc.New().SubscriptionClaim(ctx, tx)
	if errors.Is(err, pgx.ErrNoRows) {
		return envelope.TenantID{}, nil, cursor{}, false, nil
	}
	if err != nil {
		return envelope.TenantID{}, nil, cursor{}, false, err
	}
	s := &Subscription{
		ID: r.SubscriptionID, Name: r.Name, Source: r.SourceID, Kinds: r.Kinds, Tool: r.Tool, MinRisk: envelope.Risk(r.MinRisk),
		Channel: r.Channel, Link: r.Link, Bucket: r.RateBucket, ShowMail: r.ShowMail, Enabled: true, UpdatedAt: r.UpdatedAt,
	}
	return r.TenantID, s, cursor{audit.Position{Tx: r.CursorTxid, Event: r.CursorEvent}, int(r.CursorItem)}, true, nil
}

// advance stores the cursor of a subscription.
func advance(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, s *Subscription, to cursor) error {
	return dbsqlc.New().SubscriptionAdvance(ctx, tx, &dbsqlc.SubscriptionAdvanceParams{
		TenantID: tenant, SubscriptionID: s.ID, CursorTxid: to.Tx, CursorEvent: to.Event, CursorItem: int32(to.items),
	})
}

// hold pauses a subscription for a time.
func hold(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, s *Subscription, long time.Duration) error {
	_, err := dbsqlc.New().SubscriptionHold(ctx, tx, &dbsqlc.SubscriptionHoldParams{
		TenantID: tenant, SubscriptionID: s.ID, Seconds: long.Seconds(),
	})
	return err
}

// disable disables a subscription and records an event.
func disable(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, s *Subscription, why string) error {
	n, err := dbsqlc.New().SubscriptionDisable(ctx, tx, &dbsqlc.SubscriptionDisableParams{
		TenantID: tenant, SubscriptionID: s.ID, DisabledReason: why, UpdatedBy: actor,
	})
	if err != nil || n == 0 {
		return err
	}
	return audit.Write(ctx, tx, audit.Event{Tenant: tenant, Kind: audit.Configured, Actor: actor, Items: []audit.Item{{
		Subject: "subscription " + s.Name + " disabled", Note: why, Detail: map[string]any{"subscription": s.Name, "enabled": false},
	}}})
}

// approvalMessage is a message in Slack that requests a decision.
type approvalMessage struct{ about, delivery envelope.ActionID }

// findMessages returns the messages about some actions, and the messages that
// some deliveries send.
func findMessages(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, subscription uuid.UUID, actions, deliveries []uuid.UUID) ([]approvalMessage, error) {
	rows, err := dbsqlc.New().ApprovalMessageList(ctx, tx, &dbsqlc.ApprovalMessageListParams{
		TenantID: tenant, SubscriptionID: subscription, ActionIds: actions, DeliveryIds: deliveries,
	})
	return postgres.Map(rows, err, func(r dbsqlc.ApprovalMessageListRow) approvalMessage {
		return approvalMessage{r.ActionID, envelope.ActionID(r.DeliveryID)}
	})
}

func insertMessages(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, s *Subscription, all []approvalMessage) error {
	if len(all) == 0 {
		return nil
	}
	p := &dbsqlc.ApprovalMessageInsertManyParams{TenantID: tenant, SubscriptionID: s.ID}
	for _, n := range all {
		p.ActionIds, p.DeliveryIds = append(p.ActionIds, uuid.UUID(n.about)), append(p.DeliveryIds, uuid.UUID(n.delivery))
	}
	return violations.Fault(dbsqlc.New().ApprovalMessageInsertMany(ctx, tx, p))
}

func deleteMessages(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, s *Subscription, deliveries []uuid.UUID) error {
	if len(deliveries) == 0 {
		return nil
	}
	return dbsqlc.New().ApprovalMessageDelete(ctx, tx, &dbsqlc.ApprovalMessageDeleteParams{TenantID: tenant, SubscriptionID: s.ID, DeliveryIds: deliveries})
}
