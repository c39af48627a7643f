// Package cascade asks language models on the user's own servers about messages
// that rules and the embedded models leave open. It decides which questions to
// ask about a message, in which packs, the meaning of an answer, and its
// effect. It owns the prompts, the schemas and the rules for answers; it is
// independent of servers and the database.
//
// A model answers only in codes of fixed lists. An answer changes a
// prediction, as another model would; the decision about a message is made from
// it as usual.
package cascade

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// Tier is a step of the cascade that asks a model.
type Tier string

// The tiers, in the order of asking.
const (
	// T1 asks whether a message is worth showing, and whether it is one of many.
	T1 Tier = "t1"
	// T2a asks for act, category and priority.
	T2a Tier = "t2a"
	// T2b asks how much a message needs its owner, how soon, and why.
	T2b Tier = "t2b"
)

// Tiers returns all tiers in the order of asking.
func Tiers() []Tier { return []Tier{T1, T2a, T2b} }

// Names returns the names of tiers.
func Names(tiers []Tier) []string {
	names := make([]string, len(tiers))
	for i, t := range tiers {
		names[i] = string(t)
	}
	return names
}

// Asker asks one question of one model.
type Asker interface {
	Ask(ctx context.Context, q model.Question) (model.Answer, error)
}

// Mail is a message to ask about.
type Mail struct {
	ID, Account uuid.UUID
	// Subject and Body are text of the mail. Body is the part that is
	// classified.
	Subject, Body string
	// Prediction is that of the embedded models, and Decision the decision
	// based on it, of which cohort, bucket and confidence are used.
	Prediction classify.Prediction
	Decision   decide.Decision
	// Signals is the result of the rules, of which the flags and the sums are
	// used.
	Signals  signal.Result
	Settings decide.Settings
	// Replies holds earlier replies.
	Replies []Reply
}

// Result is the result of asking about a message.
type Result struct {
	ID uuid.UUID
	// Replies holds all replies, including earlier ones.
	Replies []Reply
	// Open holds the tiers that are still to be asked, as known so far.
	Open []Tier
	// Kind is the problem of the server, if it left a tier open.
	Kind model.Kind
}

// Endpoint is the model server of a tier.
type Endpoint struct {
	Asker Asker
	// Server and Model are names. Tiers with different models on one server are
	// asked one after the other, so that the server need not swap models for
	// each question.
	Server, Model string
	// Slots is the number of concurrent questions; 0 means 1.
	Slots int
	// Pack is the largest number of messages in a question; 0 means MaxPack.
	Pack int
}

// MaxPack is the largest number of messages in one question.
const MaxPack = 8

// Config configures the endpoints. A tier without one is not asked.
type Config struct {
	Endpoints map[Tier]Endpoint
	// Calibrations are those of the models; a model without one gets less
	// confidence.
	Calibrations Calibrations
}

// Cascade asks the tiers that have an endpoint. It is safe for concurrent use,
// and all users share its slots.
type Cascade struct {
	config Config
	slots  map[Tier]chan struct{}
	phased bool
}

// New returns a cascade.
func New(config Config) *Cascade {
	c := &Cascade{config: config, slots: map[Tier]chan struct{}{}}
	for tier, endpoint := range config.Endpoints {
		c.slots[tier] = make(chan struct{}, max(1, endpoint.Slots))
		for _, other := range config.Endpoints {
			c.phased = c.phased || endpoint.Server == other.Server && endpoint.Model != other.Model
		}
	}
	return c
}

// Wanted returns the tiers with an endpoint that are still to be asked about a
// message, in order, as known before the first of them answers.
func (c *Cascade) Wanted(m Mail) []Tier {
	var wanted []Tier
	for _, tier := range Wanted(m) {
		if _, ok := c.config.Endpoints[tier]; ok {
			wanted = append(wanted, tier)
		}
	}
	return wanted
}
