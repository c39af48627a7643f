package events

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/server/rest/actions"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

func subscriptionFrom(s subscription.Subscription) wire.Subscription {
	// A subscription without a channel delivers to a webhook, whose source has a
	// secret.
	signed := s.HasSigningSecret || s.Channel == ""
	shown := wire.Subscription{
		ID: s.ID.String(), Name: s.Name, Source: s.Source, Kinds: s.Kinds, Tool: s.Tool, MinRisk: s.MinRisk, Channel: s.Channel, Link: s.Link,
		RateBucket: s.Bucket, HasSigningSecret: signed, ShowMail: s.ShowMail, Enabled: s.Enabled, DisabledReason: s.DisabledReason,
		Behind: s.Behind, CreatedAt: s.CreatedAt.UTC(), UpdatedAt: s.UpdatedAt.UTC(), UpdatedBy: s.UpdatedBy,
	}
	if s.HasSigningSecret {
		shown.Interactions = subscription.SlackInteractionsPath(s.ID)
	}
	return shown
}

// subscriptions is the collection of subscriptions, by name.
var subscriptions = request.Collection[wire.Subscription]{
	Name: "subscriptions", Noun: "subscription",
	Read: func(ctx context.Context, tx pgx.Tx, c *request.Call) ([]wire.Subscription, error) {
		all, err := subscription.List(ctx, tx, c.By.Tenant, c.Named("name")...)
		return request.Map(all, subscriptionFrom), err
	},
	Key:  func(s wire.Subscription) string { return s.Name },
	ETag: func(s *wire.Subscription) *string { return &s.ETag },
	Version: func(s wire.Subscription) any {
		s.Behind = 0
		return s
	},
}

// Subscriptions handles GET /api/v1/subscriptions. It lists the subscriptions.
func Subscriptions(c *request.Call) error { return subscriptions.List(c) }

// PutSubscription handles PUT /api/v1/subscriptions/{name}. It sets a
// subscription.
func PutSubscription(c *request.Call, in wire.SubscriptionInput) error {
	name := c.R.PathValue("name")
	return subscriptions.Put(c, name, "subscription "+name+" stored", func(ctx context.Context, tx pgx.Tx) error {
		sub, encrypted, err := makeSubscription(ctx, tx, c, in)
		if err != nil {
			return err
		}
		c.Detail = map[string]any{
			"source": sub.Source, "kinds": sub.Kinds, "tool": sub.Tool, "min_risk": sub.MinRisk, "channel": request.NilIfZero(sub.Channel),
			"link": request.NilIfZero(sub.Link), "rate_bucket": request.NilIfZero(sub.Bucket), "enabled": sub.Enabled, "from_now": in.FromNow,
			"signing_secret": secretWord(in.SigningSecret), "show_mail": sub.ShowMail,
		}
		return subscription.Put(ctx, tx, c.By.Tenant, sub, encrypted, in.FromNow)
	})
}

func secretWord(given string) string {
	if given == "" {
		return "kept"
	}
	return "set"
}

// makeSubscription returns the requested subscription and its encrypted
// secret.
func makeSubscription(ctx context.Context, tx pgx.Tx, c *request.Call, in wire.SubscriptionInput) (subscription.Subscription, []byte, error) {
	snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
	if err != nil {
		return subscription.Subscription{}, nil, err
	}
	src, ok := snap.Source(in.Source)
	if !ok {
		return subscription.Subscription{}, nil, request.Invalid("/source", "unknown_source", "no such source; set one up of the kind webhook or slack")
	}
	sub := subscription.Subscription{
		Name: c.R.PathValue("name"), Source: in.Source, Kinds: in.Kinds, Tool: cmp.Or(in.Tool, "*"), MinRisk: cmp.Or(in.MinRisk, envelope.RiskLow),
		Channel: in.Channel, Link: in.Link, Bucket: in.RateBucket, HasSigningSecret: in.SigningSecret != "", ShowMail: in.ShowMail,
		Enabled: in.Enabled == nil || *in.Enabled, UpdatedBy: c.By.Actor(),
	}
	if sub.Kinds == nil {
		sub.Kinds = subscription.DefaultKinds(src.Kind)
	}
	if err := sub.Check(src.Kind); err != nil {
		return sub, nil, err
	}
	if sub.ShowMail && !access.ReadsMail(c.By) {
		return sub, nil, fault.Coded(wire.CodeScope, fault.Denied, "show_mail needs the scope %s, and a token for all tools", identity.MailRead)
	}
	if err := checkDeliverable(snap, src); err != nil {
		return sub, nil, err
	}
	if _, known := snap.Limits.Bucket(cmp.Or(sub.Bucket, "default")); !known {
		return sub, nil, request.Invalid("/rate_bucket", "unknown_bucket", snap.Limits.UnknownBucket(sub.Bucket))
	}
	switch old, err := subscription.Get(ctx, tx, c.By.Tenant, sub.Name); {
	case err == nil:
		sub.ID = old.ID
	case fault.KindOf(err) == fault.NotFound:
		if sub.ID, err = uuid.NewV7(); err != nil {
			return sub, nil, err
		}
	default:
		return sub, nil, err
	}
	if in.SigningSecret == "" {
		return sub, nil, nil
	}
	encrypted, err := c.Vault.Encrypt(c.By.Tenant, subscription.SecretContext(sub.ID), []byte(in.SigningSecret))
	return sub, encrypted, err
}

// checkDeliverable rejects a source that cannot deliver with its credentials. A
// source whose tools are not listed yet passes.
func checkDeliverable(snap *settings.Settings, src catalog.Source) error {
	known := hasTools(snap, src.ID)
	for _, name := range settings.DeliveryTools(src.Kind) {
		if _, ok := snap.Tool(policy.Key{Source: src.ID, Action: name}); known && !ok {
			return request.Invalid("/source", "unknown_tool", "the source has no tool "+name+"; a source of the kind slack needs a token for it")
		}
	}
	return nil
}

// hasTools reports whether the tools of a source are listed.
func hasTools(snap *settings.Settings, source string) bool {
	return slices.ContainsFunc(snap.Tools(), func(t *catalog.Tool) bool { return t.Key.Source == source })
}

// DeleteSubscription handles DELETE /api/v1/subscriptions/{name}. It deletes a
// subscription.
func DeleteSubscription(c *request.Call) error {
	name := c.R.PathValue("name")
	return subscriptions.Delete(c, name, "subscription "+name+" removed", func(ctx context.Context, tx pgx.Tx) error {
		return subscription.Delete(ctx, tx, c.By.Tenant, name)
	})
}

// TestSubscription handles POST /api/v1/subscriptions/{name}/test. It sends a
// test message to a subscription.
func TestSubscription(c *request.Call) error {
	var p *envelope.Proposal
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		sub, err := subscription.Get(ctx, tx, c.By.Tenant, c.R.PathValue("name"))
		if err != nil {
			return err
		}
		if !sub.Enabled {
			return fault.New(fault.Conflict, "the subscription %s is off", sub.Name)
		}
		snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		src, _ := snap.Source(sub.Source)
		if !hasTools(snap, sub.Source) {
			return fault.New(fault.Busy, "the source %s has listed no tools yet; if this persists, see the error in the list of sources", sub.Source)
		}
		p, err = sub.TestMessage(src.Kind, c.By.Actor(), time.Now())
		return err
	})
	if err != nil {
		return err
	}
	id, err := propose(c.R.Context(), c.Backend, c.By.Tenant, "subscription "+c.R.PathValue("name"), p)
	if err != nil {
		return err
	}
	return actions.Show(c, id)
}

// ResendDelivery handles POST /api/v1/actions/{id}/resend. It sends the message of an
// ended delivery again.
func ResendDelivery(c *request.Call, in wire.ResendRequest, id envelope.ActionID) error {
	var a intake.Answer
	committed := func() {}
	err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		v, err := access.View(ctx, tx, c.By, id)
		if fault.KindOf(err) == fault.NotFound {
			return fault.New(fault.NotFound, "no delivery %s: it was never made, or retention deleted it", id)
		}
		if err != nil {
			return err
		}
		snap, err := c.Catalog.Current(ctx, tx, c.By.Tenant)
		if err != nil {
			return err
		}
		a, committed, err = subscription.Resend(ctx, tx, c.Intake, snap, c.Submitter(), v, in.Note)
		return err
	})
	if err != nil {
		return err
	}
	committed()
	return actions.Show(c, a.Action)
}

// propose proposes an action of Countersign's own.
func propose(ctx context.Context, s *request.Backend, tenant envelope.TenantID, name string, p *envelope.Proposal) (envelope.ActionID, error) {
	answers, err := s.Intake.Accept(ctx, intake.Submitter{Tenant: tenant, Name: name, Reserved: true}, []*envelope.Proposal{p})
	if err != nil {
		return envelope.ActionID{}, err
	}
	return answers[0].Action, answers[0].Err
}
