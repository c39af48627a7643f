package timeline

import (
	"cmp"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Forecast is the predicted course of an action if it were approved now.
type Forecast struct {
	// GoesOutAt is the predicted time of its call; nil if never or unknown.
	GoesOutAt *time.Time
	// Gates are the checks that delay or end it.
	Gates []wire.Waiting
	// Obstacle is the reason why it would never be sent, as a fault, or nil.
	Obstacle error
}

// ForecastOf returns the forecast of an action that was read in the same transaction.
func ForecastOf(ctx context.Context, tx pgx.Tx, cache *settings.Cache, v outbox.View) (Forecast, error) {
	set, state, err := cache.CurrentAndState(ctx, tx, v.Envelope.TenantID)
	if err != nil {
		return Forecast{}, err
	}
	due := dueOf(set, &v, state.Now)
	o := Forecast{Gates: []wire.Waiting{}, Obstacle: check(ctx, tx, &v, due.Action)}
	if o.Obstacle != nil {
		if fault.KindOf(o.Obstacle) == "" {
			return Forecast{}, o.Obstacle
		}
		return o, nil
	}
	f, err := intake.ForecastOf(ctx, tx, due, state.Now)
	if err != nil {
		return Forecast{}, err
	}
	for _, g := range f.Gates {
		if g.Result == string(preflight.Pass) {
			continue
		}
		o.Gates = append(o.Gates, wire.Waiting{For: g.Code, Message: g.Message, Until: g.Until})
		if g.Result == string(preflight.Skip) && o.Obstacle == nil {
			o.Obstacle = fault.New(fault.Conflict, "it would end without being sent: %s", g.Message)
		}
	}
	if !f.Skipped && !f.Stopped {
		o.GoesOutAt = new(f.GoesOutAt.UTC())
	}
	return o, nil
}

// check returns the reason why an action cannot be sent at any time: it is too
// late, its tool has changed, or policy denies it.
func check(ctx context.Context, tx pgx.Tx, v *outbox.View, a *decision.Action) error {
	if v.Phase != envelope.PhaseApproved {
		if err := v.CheckUndecided(a.Now); err != nil {
			return err
		}
	}
	tool := policy.Key{Source: v.Envelope.Tool.Source, Action: v.Envelope.Tool.Name}
	return approval.CheckApprovable(a.Tool, tool, v.ToolDigest, func() (policy.Decision, error) {
		decisions, err := decision.Decide(ctx, tx, []*decision.Action{a})
		if err != nil {
			return policy.Decision{}, err
		}
		return decisions[0], nil
	})
}

// dueOf returns an action as it will be once approved, as input of the checks.
func dueOf(set *settings.Settings, v *outbox.View, now time.Time) intake.Due {
	e := &v.Envelope
	tool, _ := set.Tool(policy.Key{Source: e.Tool.Source, Action: e.Tool.Name})
	due := intake.Due{
		Action: &decision.Action{Settings: set, Tool: tool, Proposal: settings.Proposal{
			Automation: e.AutomationID, Employee: e.EmployeeID, Risk: e.Risk, Session: e.SessionID, Args: e.Args, Now: now,
		}},
		Bucket: cmp.Or(e.Constraints.RateBucket, limits.DefaultBucket), Urgent: e.Constraints.Urgent,
		NotBefore: e.Constraints.NotBefore, MustRunBefore: e.Constraints.MustRunBefore, CreatedAt: e.Timestamps.CreatedAt,
	}
	if v.NextAttemptAt != nil {
		due.From = *v.NextAttemptAt
	}
	return due
}
