// Package preview compares the decisions about recent mail with those under other
// settings. It decides from the stored facts alone: it reads
// no mail, asks no model, and changes nothing.
package preview

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
	"github.com/countersign-dev/countersign/internal/triage/thread"
)

// Week is the age of the mail that is compared unless another one is given.
const Week = 7 * 24 * time.Hour

const (
	// maxItems limits the messages that a preview lists.
	maxItems = 100
	// MaxDecisions limits the decisions of a preview, newest first.
	MaxDecisions = 20_000
)

// The reasons why a decision is not recomputed.
const (
	// gapFacts is of decisions of an older version, or with very many addresses.
	gapFacts = "not_recorded"
	// gapCopies is of decisions that join those about copies which differ.
	gapCopies = "copies"
)

// Row is a stored decision with its input.
type Row struct {
	Message  uuid.UUID
	Received time.Time
	Decision decide.Decision
	// Facts is nil if they are not recorded.
	Facts *decide.Facts
	// Copies counts the copies that the decision joins, and Answers holds the
	// answers of models.
	Copies  int
	Answers []cascade.Reply
	// Sender, SenderName and Subject are text of the mail.
	Sender, SenderName, Subject string
}

// Preview is a comparison in progress.
type Preview struct {
	settings   decide.Settings
	travelling bool
	result     wire.TriagePreview
	gaps       map[string]int
	seen       int
}

// New returns a comparison with settings in place of the current ones.
func New(account string, current, next decide.Settings, travelling bool, since, until time.Time) *Preview {
	p := &Preview{settings: next, travelling: travelling, gaps: map[string]int{}, result: wire.TriagePreview{
		Account: account, Since: since.UTC(), Until: until.UTC(), Was: counts(), Would: counts(), Items: []wire.TriagePreviewItem{},
		Unknown: []wire.TriagePreviewGap{}, Partly: []string{},
	}}
	// Rules over the text of the mail use these two.
	for name, same := range map[string]bool{
		"addresses": slices.Equal(current.Addresses, next.Addresses), "domains": slices.Equal(current.Domains, next.Domains),
	} {
		if !same {
			p.result.Partly = append(p.result.Partly, name)
		}
	}
	slices.Sort(p.result.Partly)
	return p
}

func counts() wire.TriagePreviewCounts {
	return wire.TriagePreviewCounts{Alone: map[string]int{}, Asked: map[string]int{}, Buckets: map[string]int{}}
}

// Add compares decisions. It reports whether more are wanted.
func (p *Preview) Add(rows []Row) bool {
	for _, r := range rows {
		if p.seen++; p.seen > MaxDecisions {
			p.result.Cut = true
			return false
		}
		switch {
		case r.Facts == nil:
			p.gaps[gapFacts]++
		case r.Copies > 1:
			p.gaps[gapCopies]++
		default:
			p.compare(r)
		}
	}
	return true
}

func (p *Preview) compare(r Row) {
	was, would := shown(r.Decision), shown(Decide(r, p.settings, p.travelling))
	p.result.Recomputed++
	count(&p.result.Was, was)
	count(&p.result.Would, would)
	if same(was, would) {
		return
	}
	if p.result.Changed++; len(p.result.Items) < maxItems {
		p.result.Items = append(p.result.Items, wire.TriagePreviewItem{
			MessageID: r.Message, ReceivedAt: r.Received.UTC(), Sender: r.Sender, SenderName: r.SenderName, Subject: r.Subject, Was: was, Would: would,
		})
	}
}

// Decide returns the decision about a message under other settings, by its stored
// facts.
func Decide(r Row, settings decide.Settings, travelling bool) decide.Decision {
	f := *r.Facts
	f.Settings, f.Travelling = settings, travelling
	f.Sender = thread.Marked(f.Sender, r.Sender, settings)
	return cascade.Decide(f, r.Answers)
}

// Result returns the comparison.
func (p *Preview) Result() wire.TriagePreview {
	for _, because := range []string{gapFacts, gapCopies} {
		if n := p.gaps[because]; n > 0 {
			p.result.Unknown = append(p.result.Unknown, wire.TriagePreviewGap{Because: because, Decisions: n})
		}
	}
	return p.result
}

// shown returns the parts of a decision that people see in a comparison.
func shown(d decide.Decision) wire.TriagePreviewDecision {
	v := wire.TriagePreviewDecision{Bucket: string(d.Bucket), Level: d.Allowed.String(), Question: d.Question, Alone: []string{}, Asked: []string{}}
	for _, w := range d.Wants {
		if w.Confirm {
			v.Asked = append(v.Asked, string(w.Action))
		} else {
			v.Alone = append(v.Alone, string(w.Action))
		}
	}
	return v
}

func same(a, b wire.TriagePreviewDecision) bool {
	return a.Bucket == b.Bucket && a.Level == b.Level && a.Question == b.Question && slices.Equal(a.Alone, b.Alone) && slices.Equal(a.Asked, b.Asked)
}

func count(c *wire.TriagePreviewCounts, d wire.TriagePreviewDecision) {
	c.Buckets[d.Bucket]++
	for _, action := range d.Alone {
		c.Alone[action]++
	}
	for _, action := range d.Asked {
		c.Asked[action]++
	}
	if len(d.Alone)+len(d.Asked) == 0 {
		c.Kept++
	}
	if d.Question {
		c.Questions++
	}
}

// decode fills a row from the columns of a decision.
func (r *Row) decode(decision, found, prediction, answers, facts []byte) error {
	var s struct {
		signal.Result
		Authentication signal.Authentication
	}
	var p classify.Prediction
	var record *decide.Record
	err := errors.Join(json.Unmarshal(decision, &r.Decision), json.Unmarshal(found, &s), json.Unmarshal(prediction, &p), json.Unmarshal(answers, &r.Answers))
	if facts != nil {
		err = errors.Join(err, json.Unmarshal(facts, &record))
	}
	if err != nil {
		return fmt.Errorf("stored decision about %s: %w", r.Message, err)
	}
	if record != nil {
		r.Facts = new(record.Facts(s.Result, s.Authentication, p))
	}
	return nil
}
