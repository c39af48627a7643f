package intake

import (
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// identity is what makes two proposals the same envelope: a name that both
// carry, and the same content.
type identity struct {
	action   envelope.ActionID
	chosen   bool // the submitter chose the action id
	external string
	digest   envelope.Digest
}

// hasKey says that the tenant may know the proposal.
func (id identity) hasKey() bool { return id.chosen || id.external != "" }

// compare answers for a proposal that shares a name with an envelope that was
// first: it is that envelope if content and names agree.
func (id identity) compare(first identity) Answer {
	switch {
	case id.external != first.external:
		return Answer{Err: fault.New(fault.Conflict, "the action_id is taken by another envelope")}
	case id.digest != first.digest:
		return Answer{Err: fault.New(fault.Conflict, "an envelope of this external_id or action_id exists with other content: %s", first.action)}
	case id.chosen && id.action != first.action:
		return Answer{Err: fault.New(fault.Conflict, "an envelope of this external_id exists under another action_id: %s", first.action)}
	}
	return Answer{Action: first.action, Known: true}
}

// duplicate is a proposal that shares a name with one before it in its batch, which
// stands at the place firstAt.
type duplicate struct {
	row
	first   identity
	firstAt int
}

// answerDuplicates answers for proposals whose first one was answered for, if it
// was refused: there is no envelope then that they could be.
func answerDuplicates(twins []duplicate, answers []Answer) {
	for _, t := range twins {
		if answers[t.at] = t.identity.compare(t.first); answers[t.firstAt].Err != nil {
			answers[t.at] = answers[t.firstAt]
		}
	}
}

// dedupe separates the proposals whose names are new in their batch from the
// twins.
func dedupe(rows []row) ([]duplicate, []row) {
	type place struct {
		identity
		at int
	}
	byAction := make(map[envelope.ActionID]place, len(rows))
	byExternal := make(map[string]place, len(rows))
	var twins []duplicate
	firsts := rows[:0]
	for _, r := range rows {
		first, ok := byExternal[r.external]
		if !ok || r.external == "" {
			first, ok = byAction[r.action]
		}
		if ok {
			twins = append(twins, duplicate{r, first.identity, first.at})
			continue
		}
		byAction[r.action] = place{r.identity, r.at}
		if r.external != "" {
			byExternal[r.external] = place{r.identity, r.at}
		}
		firsts = append(firsts, r)
	}
	return twins, firsts
}
