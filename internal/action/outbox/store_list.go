package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/search"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// maxScanned bounds the actions that one List goes through for a filter, and maxFound
// those that it goes through of the ones with some words.
const (
	maxScanned = 10_000
	maxFound   = 1_000
)

// Filter narrows a list; its zero fields do not.
type Filter struct {
	Session, Tool, Source, ExternalID string
	Automation                        string
	// Words are words that the actions have; their order is that in which they were
	// indexed.
	Words    search.Words
	Employee envelope.EmployeeID
	Workflow uuid.UUID
	Status   envelope.Status
	Approval envelope.Approval
	// Phases and Risks are any of these.
	Phases []envelope.Phase
	Risks  []envelope.Risk
	// Since and Until bound when it was proposed: from Since on, before Until.
	Since, Until time.Time
	// Oldest lists the oldest first.
	Oldest bool
	// After is where the page before this one ended.
	After envelope.ActionID
	Most  int
	// found are the next actions with the words.
	found []uuid.UUID
}

// Page is a part of a list.
type Page struct {
	Items []View
	// Next is where the next page begins; nil at the end. A page that has a Next
	// may be short or empty, because a page goes through a bounded number of
	// actions.
	Next *envelope.ActionID
}

// selection is a statement that selects the ids of actions. It is put together
// here, and not by sqlc, so that it has only the conditions that are given: each
// filter has its own plan.
type selection struct {
	sql  strings.Builder
	args []any
}

// arg adds a value, and returns its place in the statement.
func (s *selection) arg(v any) string {
	s.args = append(s.args, v)
	return fmt.Sprintf("$%d", len(s.args))
}

// from adds the rows that a filter scans, by an index in the order of ids: the
// smallest set that contains all matches. With matching, only matches are returned.
func (s *selection) from(tenant envelope.TenantID, f *Filter, matching bool) {
	live, only := "actions", ""
	onlyPhases := func(phases ...envelope.Phase) bool {
		return len(f.Phases) > 0 && !slices.ContainsFunc(f.Phases, func(p envelope.Phase) bool { return !slices.Contains(phases, p) })
	}
	switch {
	case f.ExternalID != "":
		only = " AND a.external_id = " + s.arg(f.ExternalID)
	case f.Workflow != uuid.Nil:
		only = " AND a.workflow_id = " + s.arg(f.Workflow)
	case onlyPhases(envelope.PhasePending) || f.Approval == envelope.ApprovalRequired:
		only = " AND a.approval_state = 'required'"
	case onlyPhases(envelope.PhaseApproved, envelope.PhaseExecuting):
		live = "outbox"
	}
	if f.Words == nil {
		fmt.Fprintf(&s.sql, "SELECT a.action_id FROM %s a", live)
	} else {
		fmt.Fprintf(&s.sql, "SELECT a.action_id FROM unnest(%s::uuid[]) WITH ORDINALITY k (action_id, n) JOIN %s a ON a.action_id = k.action_id", s.arg(f.found), live)
	}
	if conditions := f.conditions(); matching && len(conditions) > 0 {
		// LIMIT keeps the planner from joining the whole view.
		s.sql.WriteString(" CROSS JOIN LATERAL (SELECT 1 FROM envelopes e WHERE e.tenant_id = a.tenant_id AND e.action_id = a.action_id")
		for _, c := range conditions {
			fmt.Fprintf(&s.sql, " AND e."+c.text, s.arg(c.value))
		}
		s.sql.WriteString(" LIMIT 1) matching")
	}
	fmt.Fprintf(&s.sql, " WHERE a.tenant_id = %s%s", s.arg(uuid.UUID(tenant)), only)
}

// condition is that of a filter on the view envelopes, with the place of its
// value as %s.
type condition struct {
	text  string
	value any
}

// conditions returns the filter's conditions on the scanned rows. Without
// conditions every row matches.
func (f *Filter) conditions() []condition {
	var all []condition
	add := func(given bool, text string, value any) {
		if given {
			all = append(all, condition{text, value})
		}
	}
	add(f.Session != "", "session_id = %s", f.Session)
	add(f.Tool != "", "tool_name = %s", f.Tool)
	add(f.Source != "", "source_id = %s", f.Source)
	add(f.Automation != "", "automation_id = %s", f.Automation)
	add(f.Employee != envelope.EmployeeID{}, "employee_id = %s", uuid.UUID(f.Employee))
	add(f.Status != "", "status = %s", string(f.Status))
	add(f.Approval != "", "approval_state = %s", string(f.Approval))
	add(len(f.Risks) > 0, "risk = ANY (%s)", postgres.Texts[string](f.Risks))
	add(len(f.Phases) > 0, "phase = ANY (%s)", postgres.Texts[string](f.Phases))
	add(!f.Since.IsZero(), "created_at >= %s", f.Since)
	add(!f.Until.IsZero(), "created_at < %s", f.Until)
	return all
}

// between adds the scanned positions and their order: those after one, up to
// another if that is not nil.
func (s *selection) between(f *Filter, until *uuid.UUID) {
	after, upTo, order, start := "<", ">=", "DESC", uuid.Max
	if f.Oldest {
		after, upTo, order, start = ">", "<=", "ASC", uuid.Nil
	}
	if f.After != (envelope.ActionID{}) {
		start = uuid.UUID(f.After)
	}
	fmt.Fprintf(&s.sql, " AND a.action_id %s %s", after, s.arg(start))
	if until != nil {
		fmt.Fprintf(&s.sql, " AND a.action_id %s %s", upTo, s.arg(*until))
	}
	s.sql.WriteString(" ORDER BY a.action_id " + order)
}

// List returns a page of envelopes, newest first unless the filter has another order.
func List(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f Filter) (Page, error) {
	if f.Words != nil {
		return listFound(ctx, tx, tenant, f)
	}
	until, err := lastScanned(ctx, tx, tenant, f)
	if err != nil {
		return Page{}, err
	}
	var s selection
	s.from(tenant, &f, true)
	s.between(&f, until)
	return s.page(ctx, tx, tenant, f.Most, until)
}

// listFound is List of actions with words.
func listFound(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f Filter) (Page, error) {
	var err error
	if f.found, err = search.Find(ctx, tx, f.Words, f.After, f.Oldest, maxFound); err != nil || len(f.found) == 0 {
		return Page{}, err
	}
	var until *uuid.UUID
	if n := len(f.found); n == maxFound {
		until = &f.found[n-1]
	}
	var s selection
	s.from(tenant, &f, true)
	s.sql.WriteString(" ORDER BY k.n")
	return s.page(ctx, tx, tenant, f.Most, until)
}

// page returns the first of the selected actions. until is where the next page begins if
// the selection has no more.
func (s *selection) page(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, most int, until *uuid.UUID) (Page, error) {
	s.sql.WriteString(" LIMIT " + s.arg(most+1))
	rows, err := tx.Query(ctx, s.sql.String(), s.args...)
	if err != nil {
		return Page{}, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return Page{}, err
	}
	var p Page
	switch {
	case len(ids) > most:
		ids = ids[:most]
		p.Next = new(envelope.ActionID(ids[most-1]))
	case until != nil:
		p.Next = new(envelope.ActionID(*until))
	}
	p.Items, err = inOrder(ctx, tx, tenant, ids)
	return p, err
}

// lastScanned returns where a page of a filter that narrows ends at the latest; nil
// where the rows end before.
func lastScanned(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, f Filter) (*uuid.UUID, error) {
	if len(f.conditions()) == 0 {
		return nil, nil
	}
	var s selection
	s.from(tenant, &f, false)
	s.between(&f, nil)
	fmt.Fprintf(&s.sql, " OFFSET %d LIMIT 1", maxScanned-1)
	var last uuid.UUID
	err := tx.QueryRow(ctx, s.sql.String(), s.args...).Scan(&last)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return &last, err
}

// inOrder returns the envelopes of ids, in their order. Envelopes that
// retention deleted meanwhile are left out.
func inOrder(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, ids []uuid.UUID) ([]View, error) {
	actions := make([]envelope.ActionID, len(ids))
	for i, id := range ids {
		actions[i] = envelope.ActionID(id)
	}
	views, err := Get(ctx, tx, tenant, actions...)
	slices.SortFunc(views, func(a, b View) int {
		return slices.Index(actions, a.Envelope.ActionID) - slices.Index(actions, b.Envelope.ActionID)
	})
	return views, err
}
