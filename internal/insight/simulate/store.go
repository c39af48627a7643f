package simulate

import (
	"cmp"
	"context"
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const (
	// batchRows is the number of envelopes per statement. Each may have 256 KiB
	// of arguments, so they are not read all together.
	batchRows = 250
	// maxBytes bounds the arguments in a page.
	maxBytes = 32 << 20
	// idSkew is the maximum difference between the time in an envelope's id and
	// the time of its insertion.
	idSkew = 10 * time.Minute
)

// Read reads the envelopes of a page, newest first, a few hundred per statement,
// and checks about as many at a time against the do-not-contact list. The
// transaction may be read-only. Token restrictions, do-not-contact entries,
// grants, sessions, trust, drift and quarantine are the current ones.
func Read(ctx context.Context, tx pgx.Tx, cache *settings.Cache, tenant envelope.TenantID, req Request) (*Page, error) {
	snap, state, err := cache.CurrentAndState(ctx, tx, tenant)
	if err != nil {
		return nil, err
	}
	p := &Page{Snapshot: snap}
	params := &dbsqlc.SimulationPageParams{
		TenantID: tenant, Since: req.From, Until: req.To, Source: req.Tool.Source, Tool: req.Tool.Action,
		Before: orLast(req.Before, idAt(req.To.Add(idSkew))), Floor: idAt(req.From.Add(-idSkew)),
	}
	for size := 0; p.examined < req.Limit && size < maxBytes; {
		params.Most = int64(min(batchRows, req.Limit-p.examined))
		rows, err := dbsqlc.New().SimulationPage(ctx, tx, params)
		if err != nil {
			return nil, err
		}
		from := len(p.past)
		for i := range rows {
			p.examined++
			if rows[i].Wanted {
				size += len(rows[i].Args)
				p.past = append(p.past, p.pastFrom(&rows[i], state.Now))
			}
		}
		if err := list(ctx, tx, snap, p.past[from:]); err != nil {
			return nil, err
		}
		for i := range p.past[from:] {
			p.past[from+i].override(req.Overrides)
		}
		p.next = nil
		if int64(len(rows)) < params.Most {
			break
		}
		params.Before = rows[len(rows)-1].ActionID
		p.next = new(params.Before)
	}
	return p, nil
}

func (p *Page) pastFrom(r *dbsqlc.SimulationPageRow, now time.Time) past {
	e := past{
		action: r.ActionID, at: r.CreatedAt.UTC(), key: policy.Key{Source: r.SourceID, Action: r.ToolName},
		then: wire.SimulatedDecision{Mode: envelope.Mode(r.Mode), Source: r.ModeSource}, examined: p.examined,
	}
	tool, ok := p.Snapshot.Tool(e.key)
	if !ok {
		return e
	}
	e.tool, e.asked = tool, envelope.Risk(r.Risk)
	e.proposed = settings.Proposal{
		Automation: r.AutomationID, AskedApproval: r.Asked, Session: r.SessionID, Args: r.Args, Tools: r.Tools, Person: postgres.OrZero(r.Person), Now: now,
		Risk: policy.RaiseRisk(envelope.Risk(r.Risk), tool.Risk.Envelope()),
	}
	if r.EmployeeID != nil {
		e.proposed.Employee = *r.EmployeeID
	}
	return e
}

// override sets the tool and the proposal for the changed policy.
func (e *past) override(all map[policy.Key]catalog.Overrides) {
	e.overridden, e.changed = e.tool, e.proposed
	o, ok := all[e.key]
	if !ok || e.tool == nil {
		return
	}
	tool := *e.tool
	tool.Risk, tool.Effect = cmp.Or(o.Risk, tool.Risk), cmp.Or(o.Effect, tool.Effect)
	e.overridden, e.changed.Risk = &tool, policy.RaiseRisk(e.asked, tool.Risk.Envelope())
}

// list marks the envelopes that address a do-not-contact entry.
func list(ctx context.Context, tx pgx.Tx, snap *settings.Settings, some []past) error {
	actions := make([]*decision.Action, len(some))
	for i, e := range some {
		actions[i] = &decision.Action{Settings: snap, Tool: e.tool, Proposal: e.proposed}
	}
	err := decision.FindRecipients(ctx, tx, actions)
	for i, a := range actions {
		some[i].proposed.Listed = a.Listed
	}
	return err
}

// idAt returns the lowest UUIDv7 of a time.
func idAt(t time.Time) envelope.ActionID {
	var id envelope.ActionID
	const bits = 48
	ms := min(max(t.UnixMilli(), 0), 1<<bits-1)
	binary.BigEndian.PutUint64(id[:8], uint64(ms)<<(64-bits)) // not negative
	return id
}
