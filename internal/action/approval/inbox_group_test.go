package approval_test

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Groups are whole across pages in every alphabet, and an item that waits from the
// first page to the last is listed exactly once, whatever is proposed and decided
// between the pages.
func TestGroupsOfTheInboxAreWhole(t *testing.T) {
	t.Parallel()
	o := newFixture(t)
	template := o.propose(1)[0]
	session := rapid.SampledFrom([]string{"", "a", "a b", "a-b", "B", "ä", "ß", "\uffee", "😀", "日本"})
	tool := rapid.SampledFrom([]policy.Key{{Source: "src", Action: "act"}, {Source: "src", Action: "Mail:x"}, {Source: "src-2", Action: "act"}, {Source: "Src", Action: "é"}})
	sequence := rapid.Custom(func(rt *rapid.T) [][2]any {
		var all [][2]any
		for range rapid.IntRange(1, 6).Draw(rt, "n") {
			all = append(all, [2]any{session.Draw(rt, "session"), tool.Draw(rt, "tool")})
		}
		return all
	})
	put := func(of [][2]any) (ids []envelope.ActionID) {
		for _, one := range of {
			id, key := uuid.New(), one[1].(policy.Key)
			o.exec(`INSERT INTO actions (tenant_id, action_id, content_digest, source_id, tool_name, args, risk, effect, decision_id, config_version, tool_digest,
					approval_state, approval_expires_at, bucket_id, max_attempts, session_id)
				SELECT tenant_id, $2, content_digest, $3, $4, args, risk, effect, decision_id, config_version, tool_digest, 'required', approval_expires_at, bucket_id, max_attempts, nullif($5, '')
				FROM actions WHERE action_id = $1`, template.String(), id.String(), key.Source, key.Action, one[0])
			ids = append(ids, envelope.ActionID(id))
		}
		return ids
	}
	o.exec("UPDATE actions SET approval_state = 'denied'")
	for seed := range 12 {
		order := []approval.InboxOrder{approval.InboxSession, approval.InboxTool}[seed%2]
		stay := put(slices.Concat(sequence.Example(seed), sequence.Example(seed+100), sequence.Example(seed+200)))
		var listed []approval.InboxItem
		var after *approval.InboxPlace
		for round := 0; ; round++ {
			page := o.inboxOf(approval.InboxQuery{Order: order, After: after, Most: 1 + (seed+round)%4})
			if len(page) == 0 {
				break
			}
			listed = append(listed, page...)
			last := page[len(page)-1]
			after = new(last.Place())
			// The item of the cursor and one elsewhere are decided; one is proposed.
			for _, gone := range []envelope.ActionID{last.Action, stay[round*5%len(stay)]} {
				if round < 6 {
					o.exec("UPDATE actions SET approval_state = 'denied' WHERE action_id = $1", gone.String())
					stay = slices.DeleteFunc(stay, func(id envelope.ActionID) bool { return id == gone && !slices.Contains(actionsOf(listed), id) })
				}
			}
			if round < 6 {
				put(sequence.Example(seed + 300 + round)[:1])
			}
		}

		ids := actionsOf(listed)
		for _, id := range stay {
			if !slices.Contains(ids, id) {
				t.Errorf("seed %d, order %s: %s is in no page", seed, order, id)
			}
		}
		ended := make(map[any]bool)
		for i, it := range listed {
			if slices.Contains(ids[:i], it.Action) {
				t.Errorf("seed %d, order %s: %s is listed twice", seed, order, it.Action)
			}
			if i > 0 && groupOf(order, listed[i-1]) != groupOf(order, it) {
				ended[groupOf(order, listed[i-1])] = true
			}
			if ended[groupOf(order, it)] {
				t.Errorf("seed %d, order %s: the group %q is in two parts", seed, order, groupOf(order, it))
			}
		}
		if order == approval.InboxSession && slices.IndexFunc(listed, func(it approval.InboxItem) bool { return it.Session == "" }) >= 0 && listed[len(listed)-1].Session != "" {
			t.Errorf("seed %d: the items without a session are not last", seed)
		}
		o.exec("UPDATE actions SET approval_state = 'denied' WHERE approval_state = 'required'")
	}
}

// groupOf returns the group of an item in an order.
func groupOf(order approval.InboxOrder, it approval.InboxItem) any {
	if order == approval.InboxTool {
		return it.Tool
	}
	return it.Session
}
