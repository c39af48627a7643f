package intake

import (
	"cmp"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// uniqueness identifies an envelope: two proposals are the same if they share a
// key and have the same content.
type uniqueness struct {
	action   envelope.ActionID
	chosen   bool // the submitter chose the action id
	external string
	digest   envelope.Digest
	unseen   bool // the submitter may not learn of it
}

// hasKey reports whether the tenant may have the proposal already.
func (id uniqueness) hasKey() bool { return id.chosen || id.external != "" }

// compare returns the answer for a proposal that shares a key with an earlier
// envelope: it is that envelope if content and keys are equal.
func (id uniqueness) compare(first uniqueness) Answer {
	switch {
	case first.unseen:
		return Answer{Err: ErrTaken()}
	case id.external != first.external:
		return Answer{Err: fault.Coded(wire.CodeExternalIDTaken, fault.Conflict, "the action_id is taken by another envelope")}
	case id.digest != first.digest:
		return Answer{Err: fault.Coded(wire.CodeExternalIDTaken, fault.Conflict, "an envelope with this external_id or action_id exists with other content: %s", first.action)}
	case id.chosen && id.action != first.action:
		return Answer{Err: fault.Coded(wire.CodeExternalIDTaken, fault.Conflict, "an envelope with this external_id exists under another action_id: %s", first.action)}
	}
	return Answer{Action: first.action, Known: true}
}

// shareKeys reports whether submissions that each have one proposal are of the same
// envelope, or would be if their content were equal.
func shareKeys(all []*submission) bool {
	if len(all) == 1 {
		return false
	}
	seen := make(map[any]bool, len(all))
	for _, s := range all {
		p := s.proposals[0]
		name := cmp.Or(s.by.Base, p.ExternalID)
		if seen[name] || seen[p.ActionID] {
			return true
		}
		seen[name], seen[p.ActionID] = name != "", p.ActionID != (envelope.ActionID{})
	}
	return false
}

// duplicate is a proposal that shares a key with an earlier one of its batch, first.
type duplicate struct {
	*row
	first *row
}

// answerDuplicates copies to duplicates the answers of the proposals that they
// duplicate, refusals included.
func answerDuplicates(duplicates []duplicate, answers []Answer) {
	for _, t := range duplicates {
		if answers[t.at] = t.compare(t.first.uniqueness); answers[t.first.at].Err != nil {
			answers[t.at] = answers[t.first.at]
		}
	}
}

// dedupe separates the proposals whose keys are new in their batch from the
// duplicates.
func dedupe(rows []*row) ([]duplicate, []*row) {
	byAction := make(map[envelope.ActionID]*row) // proposals without a chosen id are new
	byExternal := make(map[string]*row, len(rows))
	var duplicates []duplicate
	firsts := rows[:0]
	for _, r := range rows {
		first, ok := byExternal[r.external]
		if !ok || r.external == "" {
			first, ok = byAction[r.action]
		}
		if ok {
			duplicates = append(duplicates, duplicate{r, first})
			continue
		}
		if r.chosen {
			byAction[r.action] = r
		}
		if r.external != "" {
			byExternal[r.external] = r
		}
		firsts = append(firsts, r)
	}
	return duplicates, firsts
}
