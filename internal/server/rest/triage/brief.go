package triage

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/brief"
	"github.com/countersign-dev/countersign/internal/triage/followup"
)

// Brief handles GET /api/v1/triage/accounts/{name}/brief. It returns a brief about an
// account.
func Brief(c *request.Call) error {
	since, err := c.QueryTime("since")
	if err != nil {
		return err
	}
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.TriageBrief, error) {
		a, err := account.Get(ctx, tx, c.By.Tenant, c.R.PathValue("name"))
		if err != nil {
			return wire.TriageBrief{}, err
		}
		about, err := brief.Of(ctx, tx, a.Tenant, a.ID, a.Proposals.Brief, since, time.Now())
		if err != nil {
			return wire.TriageBrief{}, err
		}
		about.Name, about.Own = a.Name, a.Settings.Addresses
		if kind := c.Query.Get("kind"); kind != "" {
			about.Kind = brief.Kind(kind)
		}
		about.ShowMail = about.ShowMail || c.Query.Get("mail") == "true"
		return brief.Read(ctx, tx, about)
	})
}

// Meeting handles GET /api/v1/triage/accounts/{name}/meeting. It prepares for a meeting
// in the calendar of an account.
func Meeting(c *request.Call) error {
	at, err := c.QueryTime("at")
	if err != nil {
		return err
	}
	return request.Answer(c, func(ctx context.Context, tx pgx.Tx) (wire.TriageMeeting, error) {
		a, err := account.Get(ctx, tx, c.By.Tenant, c.R.PathValue("name"))
		if err != nil {
			return wire.TriageMeeting{}, err
		}
		now := time.Now()
		about, err := brief.Of(ctx, tx, a.Tenant, a.ID, a.Proposals.Brief, now, now)
		if err != nil {
			return wire.TriageMeeting{}, err
		}
		about.Name, about.Own = a.Name, a.Settings.Addresses
		about.ShowMail = about.ShowMail || c.Query.Get("mail") == "true"
		return brief.Meeting(ctx, tx, about, at)
	})
}

// FollowUps handles GET /api/v1/triage/accounts/{name}/follow-ups. It lists the
// follow-ups of an account.
func FollowUps(c *request.Call) error {
	return request.AnswerItems(c, func(ctx context.Context, tx pgx.Tx) ([]wire.TriageFollowUp, error) {
		a, err := account.Get(ctx, tx, c.By.Tenant, c.R.PathValue("name"))
		if err != nil {
			return nil, err
		}
		now := time.Now()
		about, err := brief.Of(ctx, tx, a.Tenant, a.ID, a.Proposals.Brief, now, now)
		if err != nil {
			return nil, err
		}
		return followup.List(ctx, tx, followup.Query{
			Tenant: a.Tenant, Account: a.ID, Name: a.Name, Own: a.Settings.Addresses, Zone: brief.Location(about.Settings.Zone), Now: now,
			ArchivingCloses: about.Settings.ArchivingCloses, Closed: c.Query.Get("closed") == "true",
		})
	})
}

// ChangeFollowUp handles POST /api/v1/triage/messages/{id}/follow-up. It closes a
// follow-up, opens it again, or puts it off.
func ChangeFollowUp(c *request.Call, in wire.TriageFollowUpChange) error {
	id, err := c.UUID()
	if err != nil {
		return err
	}
	if err := c.InTx(func(ctx context.Context, tx pgx.Tx) error {
		if err := followup.Change(ctx, tx, c.By.Tenant, id, in, c.By.Actor(), time.Now()); err != nil {
			return err
		}
		c.Detail = map[string]any{"done": in.Done != nil && *in.Done, "later_until": in.LaterUntil}
		return c.RecordChange(ctx, tx, "triage message "+id.String()+" follow-up changed")
	}); err != nil {
		return err
	}
	return c.NoContent()
}
