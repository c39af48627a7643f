package approval_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
)

// various has n actions wait that differ in risk, session and expiry, of which
// some share each, and some are of unknown outcome.
func (o fixture) various(n int) []envelope.ActionID {
	o.t.Helper()
	ids := o.propose(n)
	risks := []string{"low", "medium", "high"}
	for i, id := range ids {
		o.exec("UPDATE actions SET risk = $2, session_id = $3, automation_id = $4, approval_expires_at = now() + make_interval(mins => $5) WHERE action_id = $1",
			id.String(), risks[i*7%3], fmt.Sprint("s-", i%2), fmt.Sprint("a-", i%3), 30+i*5%4*60)
		if i%5 == 0 {
			o.exec("UPDATE approvals SET escalated_at = now() WHERE action_id = $1", id.String())
		}
		if i%6 == 4 {
			o.exec("UPDATE actions SET approval_state = 'granted' WHERE action_id = $1", id.String())
			o.exec("INSERT INTO dead_letters (tenant_id, action_id, reason, attempt) VALUES ($1, $2, 'unknown', 1)", o.tenant.String(), id.String())
		}
	}
	return ids
}

func actionsOf(items []approval.InboxItem) []envelope.ActionID {
	ids := make([]envelope.ActionID, len(items))
	for i := range items {
		ids[i] = items[i].Action
	}
	return ids
}

// Pages form one list in every order, even if items before the cursor are
// removed and items are added meanwhile: an item that stays pending is listed
// exactly once.
func TestPagesOfTheInboxAreOneList(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	o.various(23)
	for _, order := range []approval.InboxOrder{"", approval.InboxOldest, approval.InboxNewest, approval.InboxExpiry, approval.InboxRisk, approval.InboxSession, approval.InboxTool} {
		t.Run(string("order "+order), func(t *testing.T) {
			whole := o.inboxOf(approval.InboxQuery{Order: order, Most: 100})
			var paged []envelope.ActionID
			var gone []envelope.ActionID
			var after *approval.InboxPlace
			for {
				page := o.inboxOf(approval.InboxQuery{Order: order, After: after, Most: 4})
				if len(page) == 0 {
					break
				}
				paged = append(paged, actionsOf(page)...)
				last := page[len(page)-1]
				after = new(last.Place())
				// The last item of the page is decided before the next is read.
				if len(gone) == 0 && last.Kind == approval.InboxApproval {
					gone = append(gone, last.Action)
					if err := o.service.Deny(t.Context(), o.decider("eve"), last.Action, approval.Denial{}); err != nil {
						t.Fatal(err)
					}
				}
			}

			if want := actionsOf(whole); !slices.Equal(paged, want) || len(gone) != 1 {
				t.Errorf("pages = %v, want %v", paged, want)
			}
			if !slices.IsSortedFunc(whole, byOrder(order)) {
				t.Errorf("the inbox is not in the order %q: %+v", order, whole)
			}
		})
	}
}

// byOrder compares items by an order as docs/api.md defines it.
func byOrder(order approval.InboxOrder) func(a, b approval.InboxItem) int {
	return func(a, b approval.InboxItem) int {
		age := slices.Compare(a.Action[:], b.Action[:])
		rank := func(it approval.InboxItem) int {
			return slices.Index([]envelope.Risk{"high", "medium", "low"}, it.Risk)
		}
		expires := func(it approval.InboxItem) int64 {
			if it.ExpiresAt.IsZero() {
				return 1 << 62
			}
			return it.ExpiresAt.UnixMicro()
		}
		switch order {
		case approval.InboxNewest:
			return -age
		case approval.InboxExpiry:
			return compareThen(expires(a), expires(b), age)
		case approval.InboxRisk:
			return compareThen(int64(rank(a)), int64(rank(b)), age)
		case approval.InboxSession:
			return cmp.Or(strings.Compare(cmp.Or(a.Session, "\U0010ffff"), cmp.Or(b.Session, "\U0010ffff")), age)
		case approval.InboxTool:
			return cmp.Or(strings.Compare(a.Tool.Action, b.Tool.Action), age)
		case approval.InboxOldest:
		}
		return age
	}
}

func compareThen(a, b int64, then int) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return then
}

// Every filter selects exactly the documented items, in lists and in counts.
func TestTheInboxIsFiltered(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	o.various(24)
	now := time.Now()
	whole := o.inboxOf(approval.InboxQuery{Most: 100})
	for name, test := range map[string]struct {
		filter approval.InboxFilter
		keeps  func(approval.InboxItem) bool
	}{
		"none":       {approval.InboxFilter{}, func(approval.InboxItem) bool { return true }},
		"kind":       {approval.InboxFilter{Kinds: []approval.InboxKind{approval.InboxUnknown}}, func(it approval.InboxItem) bool { return it.Kind == approval.InboxUnknown }},
		"two kinds":  {approval.InboxFilter{Kinds: []approval.InboxKind{approval.InboxCompensation, approval.InboxApproval}}, func(it approval.InboxItem) bool { return it.Kind == approval.InboxApproval }},
		"source":     {approval.InboxFilter{Source: "src"}, func(approval.InboxItem) bool { return true }},
		"no tool":    {approval.InboxFilter{Source: "src", Tool: "mail"}, func(approval.InboxItem) bool { return false }},
		"session":    {approval.InboxFilter{Session: "s-1"}, func(it approval.InboxItem) bool { return it.Session == "s-1" }},
		"automation": {approval.InboxFilter{Automation: "a-2"}, func(it approval.InboxItem) bool { return it.Automation == "a-2" }},
		"person":     {approval.InboxFilter{Person: o.agent()}, func(approval.InboxItem) bool { return true }},
		"nobody":     {approval.InboxFilter{Person: uuid.New()}, func(approval.InboxItem) bool { return false }},
		"risks": {approval.InboxFilter{Risks: []envelope.Risk{envelope.RiskLow, envelope.RiskHigh}}, func(it approval.InboxItem) bool {
			return it.Risk == envelope.RiskLow || it.Risk == envelope.RiskHigh
		}},
		"escalated":     {approval.InboxFilter{Escalated: new(true)}, func(it approval.InboxItem) bool { return it.Escalated }},
		"not escalated": {approval.InboxFilter{Escalated: new(false)}, func(it approval.InboxItem) bool { return !it.Escalated }},
		"expires before": {approval.InboxFilter{ExpiresBefore: now.Add(time.Hour)}, func(it approval.InboxItem) bool {
			return !it.ExpiresAt.IsZero() && it.ExpiresAt.Before(now.Add(time.Hour))
		}},
		"two at once": {approval.InboxFilter{Session: "s-0", Risks: []envelope.Risk{envelope.RiskHigh}}, func(it approval.InboxItem) bool {
			return it.Session == "s-0" && it.Risk == envelope.RiskHigh
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []envelope.ActionID
			escalated, expiring, unknown := 0, 0, 0
			for _, it := range whole {
				if !test.keeps(it) {
					continue
				}
				want = append(want, it.Action)
				if it.Escalated {
					escalated++
				}
				if !it.ExpiresAt.IsZero() && it.ExpiresAt.Before(now.Add(time.Hour)) {
					expiring++
				}
				if it.Kind == approval.InboxUnknown {
					unknown++
				}
			}

			for _, order := range []approval.InboxOrder{approval.InboxOldest, approval.InboxExpiry, approval.InboxRisk} {
				got := actionsOf(o.inboxOf(approval.InboxQuery{InboxFilter: test.filter, Order: order, Most: 100}))
				slices.SortFunc(got, func(a, b envelope.ActionID) int { return slices.Compare(a[:], b[:]) })
				if !slices.Equal(got, want) {
					t.Errorf("%s = %v, want %v", order, got, want)
				}
			}
			c, err := o.service.InboxCounts(t.Context(), o.tenant, test.filter, now)
			if err != nil {
				t.Fatal(err)
			}
			if c.Total != len(want) || c.Escalated != escalated || c.Expiring != expiring || c.ByKind.Unknown != unknown || c.ByKind.Approval != len(want)-unknown || c.Capped {
				t.Errorf("counts = %+v, want %d, of them %d escalated, %d expiring, %d unknown", c, len(want), escalated, expiring, unknown)
			}
			if len(want) > 0 && (len(c.Tools) != 1 || c.Tools[0].Tool != "src:act" || c.Tools[0].Count != len(want)) || len(want) == 0 && len(c.Tools) > 0 {
				t.Errorf("tools = %+v", c.Tools)
			}
			sessions := make(map[string]int)
			for _, it := range whole {
				if test.keeps(it) {
					sessions[it.Session]++
				}
			}
			for _, s := range c.Sessions {
				if sessions[s.Session] != s.Count {
					t.Errorf("sessions = %+v, want %v", c.Sessions, sessions)
				}
			}
			if len(c.Sessions) != len(sessions) || len(want) > 0 && (len(c.People) != 1 || c.People[0].Person != o.agent() || c.People[0].Count != len(want)) {
				t.Errorf("sessions = %+v, want %v; people = %+v", c.Sessions, sessions, c.People)
			}
		})
	}
}

// Counts stop at 5,000, except for urgent items, which are counted anywhere in
// the list.
func TestCountsOfTheInboxAreCapped(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	o.propose(1)
	o.many(5100)
	const newest = "IN (SELECT action_id FROM actions WHERE tenant_id = $1 AND approval_state = 'required' ORDER BY action_id DESC LIMIT $2)"
	o.exec("UPDATE approvals SET escalated_at = now() WHERE action_id "+newest, o.tenant.String(), 7)
	o.exec("UPDATE actions SET approval_expires_at = now() + interval '10 minutes' WHERE action_id "+newest, o.tenant.String(), 3)
	o.exec("UPDATE actions SET approval_expires_at = now() + interval '2 hours' WHERE approval_expires_at BETWEEN now() + interval '11 minutes' AND now() + interval '2 hours' AND tenant_id = $1", o.tenant.String())

	c, err := o.service.InboxCounts(t.Context(), o.tenant, approval.InboxFilter{}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if !c.Capped || c.Total != 5000 || c.ByKind.Approval != 5000 || c.Escalated != 7 || c.Expiring != 3 {
		t.Errorf("counts = %+v, want 5000, 7 escalated, 3 expiring", c)
	}
	c, err = o.service.InboxCounts(t.Context(), o.tenant, approval.InboxFilter{Escalated: new(true)}, time.Now())
	if err != nil || c.Capped || c.Total != 7 || c.Expiring != 3 {
		t.Errorf("counts of the escalated = %+v, %v", c, err)
	}
}
