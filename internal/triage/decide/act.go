package decide

import (
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/internal/triage/classify"
)

// Hint is a way to help the owner with a message, in addition to its bucket.
type Hint string

// The hints.
const (
	// HintSummary suggests reading only a summary.
	HintSummary Hint = "summary"
	// HintCalendar suggests comparing it with the calendar.
	HintCalendar Hint = "calendar"
	// HintFollowUp is for a promise with a date worth keeping.
	HintFollowUp Hint = "follow_up"
	// HintThread suggests reading it with the message that it changes.
	HintThread Hint = "thread"
)

// group is a set of cohorts that the table of acts treats alike.
type group string

const (
	groupBulk          group = "newsletters, social"
	groupTransactional group = "transactional"
	groupNear          group = "intra_org, vip, default"
	groupFar           group = "cross_org, first_contact"
)

func groupOf(c Cohort) group {
	switch c {
	case Newsletters, Social:
		return groupBulk
	case Transactional:
		return groupTransactional
	case IntraOrg, VIP, Default:
		return groupNear
	case CrossOrg, FirstContact:
		return groupFar
	}
	return groupFar
}

// actRow is the effect of an act in a group of cohorts.
type actRow struct {
	// bucket is the message's bucket before priority, mutes and vetoes.
	bucket Bucket
	// deadline makes the bucket Actionable if the message has one.
	deadline bool
	// amended takes the bucket of the message which this one changes, between
	// Informational and Actionable; raised takes one more urgent.
	amended, raised bool
	// sold archives the message if it promotes something.
	sold bool
	// draft wants a draft; confirm makes every action require a person.
	draft, confirm bool
	hint           Hint
}

func actRows() map[classify.Act]map[group]actRow {
	shown := actRow{bucket: Informational}
	handled := actRow{bucket: Archived}
	summarised := actRow{bucket: Archived, hint: HintSummary}
	meeting := map[group]actRow{
		groupBulk:          {bucket: Informational, sold: true},
		groupTransactional: {bucket: Informational, sold: true, hint: HintCalendar},
		groupNear:          {bucket: Actionable, hint: HintCalendar},
		groupFar:           {bucket: Actionable},
	}
	news := map[group]actRow{groupBulk: handled, groupTransactional: summarised, groupNear: shown, groupFar: shown}
	promise := actRow{bucket: Informational, hint: HintFollowUp}
	return map[classify.Act]map[group]actRow{
		classify.Request: {
			groupBulk:          shown,
			groupTransactional: {bucket: Informational, deadline: true},
			groupNear:          {bucket: Actionable, draft: true},
			groupFar:           {bucket: Actionable, confirm: true},
		},
		classify.Deliver: news,
		classify.FYI:     news,
		classify.Propose: meeting,
		classify.Meet:    meeting,
		classify.Commit:  {groupBulk: handled, groupTransactional: handled, groupNear: promise, groupFar: promise},
		classify.Amend: {
			groupBulk:          handled,
			groupTransactional: {bucket: Informational, hint: HintThread},
			groupNear:          {bucket: Informational, amended: true, raised: true, hint: HintThread},
			groupFar:           {bucket: Informational, amended: true, hint: HintThread},
		},
	}
}

// understand takes the predictions of the models. An unknown word becomes the
// one with the least effect, with no confidence.
func (s *state) understand() {
	p, d := s.facts.Prediction, &s.decision
	d.Act, s.act = p.Act, share(p.ActConfidence)
	if !slices.Contains(classify.HeadAct.Classes(), string(d.Act)) {
		d.Act, s.act = classify.FYI, 0
	}
	s.step("act", "", string(d.Act), sureness(s.act))
	d.Category, s.category = p.Category, share(p.CategoryConfidence)
	if !slices.Contains(classify.HeadCategory.Classes(), string(d.Category)) {
		d.Category, s.category = classify.Primary, 0
	}
	s.step("category", "", string(d.Category), sureness(s.category))
	d.Priority = p.Priority
	if !slices.Contains(classify.HeadPriority.Classes(), string(d.Priority)) {
		d.Priority = classify.ForInfo
	}
	s.step("priority", "", string(d.Priority), fmt.Sprintf("the models' score of its need for attention is %.2f", s.attention()))
}

func sureness(p float64) string { return fmt.Sprintf("the models' confidence is %.2f", p) }

func needsOwner(p classify.Priority) bool { return p == classify.Urgent || p == classify.NeedsResponse }

// share returns a probability, or 0 if it is invalid.
func share(p float64) float64 {
	if p >= 0 && p <= 1 {
		return p
	}
	return 0
}

// attention returns the probability that the message needs its owner. An
// invalid one counts as one half, the least certain.
func (s *state) attention() float64 {
	if p := s.facts.Prediction.Attention; p >= 0 && p <= 1 {
		return p
	}
	return 0.5
}
