package decide

import (
	"fmt"
	"slices"

	"github.com/countersign-dev/countersign/internal/triage/classify"
)

// Hint says what helps the owner with a message, beside its bucket.
type Hint string

// The hints.
const (
	// HintSummary is a message of which a summary says enough.
	HintSummary Hint = "summary"
	// HintCalendar is one to look at beside the calendar.
	HintCalendar Hint = "calendar"
	// HintFollowUp is one with a promise whose date is worth keeping.
	HintFollowUp Hint = "follow_up"
	// HintThread is one to read with what it changes.
	HintThread Hint = "thread"
)

// group is the cohorts that the table of acts does not tell apart.
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

// actRow is what an act means in a group of cohorts.
type actRow struct {
	// bucket is where the message belongs before its priority, mutes and vetoes.
	bucket Bucket
	// deadline says that the bucket is Actionable if the message names one.
	deadline bool
	// amended says that the bucket is that of the message which this one changes,
	// between Informational and Actionable; raised, one more urgent.
	amended, raised bool
	// sold says that the message is put away if it promotes something.
	sold bool
	// draft wants a draft; confirm has every action wait for a person.
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

// understand takes over what the models say. A word that is none of theirs
// becomes the one by which least is done, with no confidence.
func (s *state) understand() {
	p, d := s.facts.Prediction, &s.decision
	d.Act, s.act = p.Act, share(p.ActConfidence)
	if !slices.Contains(acts(), d.Act) {
		d.Act, s.act = classify.FYI, 0
	}
	s.step("act", "", string(d.Act), sureness(s.act))
	d.Category, s.category = p.Category, share(p.CategoryConfidence)
	if !slices.Contains(categories(), d.Category) {
		d.Category, s.category = classify.Primary, 0
	}
	s.step("category", "", string(d.Category), sureness(s.category))
	d.Priority = p.Priority
	if !slices.Contains(priorities(), d.Priority) {
		d.Priority = classify.ForInfo
	}
	s.step("priority", "", string(d.Priority), fmt.Sprintf("the models give it a need for attention of %.2f", s.attention()))
}

func sureness(p float64) string { return fmt.Sprintf("the models are sure of it to %.2f", p) }

func needsOwner(p classify.Priority) bool { return p == classify.Urgent || p == classify.NeedsResponse }

func acts() []classify.Act {
	return []classify.Act{
		classify.Request, classify.Deliver, classify.FYI, classify.Propose, classify.Meet, classify.Commit, classify.Amend,
	}
}

func categories() []classify.Category {
	return []classify.Category{
		classify.Primary, classify.Newsletters, classify.Notifications, classify.Promotions, classify.Receipts, classify.Social,
	}
}

func priorities() []classify.Priority {
	return []classify.Priority{
		classify.Urgent, classify.NeedsResponse, classify.ForInfo, classify.Promotional, classify.Personal,
	}
}

// share returns a probability, or 0 for what is none.
func share(p float64) float64 {
	if p >= 0 && p <= 1 {
		return p
	}
	return 0
}

// attention is how probable it is that the message needs its owner. What is no
// probability counts as one half, which is sure of nothing.
func (s *state) attention() float64 {
	if p := s.facts.Prediction.Attention; p >= 0 && p <= 1 {
		return p
	}
	return 0.5
}
