package events

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// slackTimeout bounds the answer to a button: Slack gives up after three
// seconds, and shows that to the person who pressed it.
const slackTimeout = 2500 * time.Millisecond

// pressedButton is a button that a person pressed in Slack.
type pressedButton struct {
	subscription.Interaction
	of subscription.ButtonTarget
	// by is the operator of the Slack user, and view the current action.
	by   identity.Principal
	view outbox.View
}

// SlackInteraction handles POST /api/v1/slack/interactions/{subscription}. It
// receives a person's interaction with a Slack message. The request is
// authenticated by its signature; the person is part of the signed text.
func SlackInteraction(c *request.Call) error {
	ctx, cancel := context.WithTimeout(c.R.Context(), slackTimeout)
	defer cancel()
	of, err := slackSubscription(ctx, c)
	if err != nil {
		return err
	}
	in, err := subscription.ParseInteraction(c.Body)
	if err != nil {
		return err
	}
	if in.Kind == subscription.InteractionOther {
		return acknowledge(c)
	}
	p := &pressedButton{Interaction: in, of: of}
	err = applyButton(ctx, c.Backend, p)
	switch {
	case err == nil:
		return acknowledge(c)
	case fault.KindOf(err) == "":
		return err
	}
	// Only the person who pressed the button sees the refusal.
	c.Log.InfoContext(ctx, "button refused", slog.String("subscription", of.Subscription.Name), slog.String("action_id", in.Action.String()),
		slog.String("press", string(in.Kind)), slog.Any("reason", err))
	why := "Countersign: " + refusalText(err)
	if in.Kind == subscription.InteractionSubmitReason {
		return c.JSON(http.StatusOK, subscription.FormProblem(why))
	}
	if err := sendEphemeral(ctx, c.Backend, p, why); err != nil {
		return err
	}
	return acknowledge(c)
}

// acknowledge answers with an empty body, as Slack expects.
func acknowledge(c *request.Call) error {
	c.Write(http.StatusOK, "text/plain; charset=utf-8", nil)
	return nil
}

// refusalText returns the text of a refusal for the person.
func refusalText(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Text
	}
	return err.Error()
}

// slackSubscription returns the subscription that a request is for, after
// checking the signature. An unknown subscription is answered like a wrong
// signature, so that ids cannot be probed.
func slackSubscription(ctx context.Context, c *request.Call) (subscription.ButtonTarget, error) {
	id, err := uuid.Parse(c.R.PathValue("subscription"))
	if err != nil {
		return subscription.ButtonTarget{}, request.ErrSignature
	}
	of, err := postgres.InTxReturning(ctx, c.DB, postgres.Authenticator(), func(tx pgx.Tx) (subscription.ButtonTarget, error) {
		return subscription.FindButtonTarget(ctx, tx, id)
	})
	if fault.KindOf(err) == fault.NotFound {
		return subscription.ButtonTarget{}, request.ErrSignature
	}
	if err != nil {
		return subscription.ButtonTarget{}, err
	}
	secret, err := c.Vault.Decrypt(of.Tenant, subscription.SecretContext(id), of.EncryptedSecret)
	if err != nil {
		return subscription.ButtonTarget{}, err
	}
	h := c.R.Header
	if !subscription.VerifySlack(string(secret), h.Get("X-Slack-Request-Timestamp"), h.Get("X-Slack-Signature"), c.Body, time.Now()) {
		return subscription.ButtonTarget{}, request.ErrSignature
	}
	return of, nil
}

// applyButton applies a button, as the operator who pressed it.
func applyButton(ctx context.Context, s *request.Backend, p *pressedButton) error {
	err := postgres.InTx(ctx, s.DB, postgres.API(p.of.Tenant), func(tx pgx.Tx) error { return p.authorize(ctx, tx) })
	if err != nil {
		return err
	}
	by := approval.Decider{Tenant: p.of.Tenant, Token: uuid.UUID(p.by.Token), Person: p.by.Person(), Operator: p.by.Operator, Name: p.by.Name}
	switch p.Kind {
	case subscription.InteractionApprove:
		_, err := s.Approval.Approve(ctx, by, p.Action, approval.Approval{IfMatch: p.ETag})
		return err
	case subscription.InteractionDeny, subscription.InteractionSubmitReason:
		note := p.Reason
		note = cmp.Or(note, "denied in Slack")
		return s.Approval.Deny(ctx, by, p.Action, approval.Denial{Note: note, IfMatch: p.ETag})
	case subscription.InteractionAskReason:
		ask, err := p.of.Subscription.ReasonForm(p.Interaction, time.Now())
		if err != nil {
			return err
		}
		_, err = propose(ctx, s, p.of.Tenant, "subscription "+p.of.Subscription.Name, ask)
		return err
	case subscription.InteractionOther:
	}
	return nil
}

// authorize finds the person who pressed the button and the message, and checks that
// the message shows the current version of the action. A fault has the reason why the
// button does not count.
func (p *pressedButton) authorize(ctx context.Context, tx pgx.Tx) error {
	var err error
	if p.by, err = identity.OperatorBySlack(ctx, tx, p.of.Tenant, p.Team, p.User); err != nil {
		if fault.KindOf(err) == fault.NotFound {
			return fault.New(fault.Denied, "you are not an operator here; an administrator can link this Slack user to an operator")
		}
		return err
	}
	if !mayDecide(p.by.Role) {
		return fault.New(fault.Denied, "the role %s may not decide", p.by.Role)
	}
	deliveries, err := subscription.Messages(ctx, tx, p.of.Tenant, p.of.Subscription.ID, p.Action)
	if err != nil {
		return err
	}
	views, err := outbox.Get(ctx, tx, p.of.Tenant, append(deliveries, p.Action)...)
	if err != nil {
		return err
	}
	var sent []outbox.View
	for _, v := range views {
		if v.Envelope.ActionID == p.Action {
			p.view = v
		} else {
			sent = append(sent, v)
		}
	}
	switch {
	case p.view.Envelope.ActionID == p.Action && p.view.Envelope.Approval != envelope.ApprovalRequired:
		return fault.New(fault.Conflict, "no decision is needed any more: %s", p.view.Outcome())
	case !subscription.HasMessage(sent, p.Interaction):
		return fault.New(fault.Denied, "unknown message; if it has just arrived, try again in a moment")
	case approval.ETag(p.view) != p.ETag:
		return fault.New(fault.Conflict, "it has changed since this message was sent; review it again")
	}
	return nil
}

// mayDecide reports whether a role may decide, as on the routes that do.
func mayDecide(role identity.Role) bool {
	switch role {
	case identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner:
		return true
	case identity.RoleAgent, identity.RoleViewer:
	}
	return false
}

// sendEphemeral sends one person in Slack the reason why a button did nothing.
func sendEphemeral(ctx context.Context, s *request.Backend, p *pressedButton, why string) error {
	message, err := p.of.Subscription.Ephemeral(p.Interaction, why, time.Now())
	if err == nil {
		_, err = propose(ctx, s, p.of.Tenant, "subscription "+p.of.Subscription.Name, message)
	}
	if fault.KindOf(err) == fault.Conflict {
		return nil // already logged in this minute
	}
	return err
}
