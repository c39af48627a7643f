// Package cascade asks language models on servers of the user's own about what
// rules and the embedded models leave open: which message is asked what, in
// which pack, what an answer means, and what it may change. It owns the prompts,
// the schemas and the rules by which answers count; it knows neither servers nor
// the database.
//
// A model answers in codes of fixed lists and in nothing else. An answer changes
// a prediction, as another model would have made it; what is done about a message
// is decided as without it.
package cascade

import (
	"context"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// Tier is a step of the cascade at which a model is asked.
type Tier string

// The tiers, in the order in which they are asked.
const (
	// T1 asks whether a message is worth showing, and whether it is one of many.
	T1 Tier = "t1"
	// T2a asks for act, category and priority.
	T2a Tier = "t2a"
	// T2b asks how much a message needs its owner, how soon, and why.
	T2b Tier = "t2b"
)

// Tiers returns all tiers in the order in which they are asked.
func Tiers() []Tier { return []Tier{T1, T2a, T2b} }

// Names returns tiers as they are stored and shown.
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

// Mail is what is known of a message when it is asked about.
type Mail struct {
	ID, Account uuid.UUID
	// Subject and Body are text of the mail. Body is that which is judged.
	Subject, Body string
	// Prediction is that of the embedded models, and Decision what was decided by
	// it; of that the cohort, the bucket and the confidence count.
	Prediction classify.Prediction
	Decision   decide.Decision
	// Signals are what the rules found. Of it the flags and the sums count.
	Signals  signal.Result
	Settings decide.Settings
	// Replies are those that there are already.
	Replies []Reply
}

// Result is what became of a message that was asked about.
type Result struct {
	ID uuid.UUID
	// Replies are all of the message, earlier ones included.
	Replies []Reply
	// Open are the tiers that are still to be asked, as far as that is known now.
	Open []Tier
	// Kind is what was wrong with the server, where that left a tier open.
	Kind model.Kind
}

// Endpoint is where the questions of a tier are asked.
type Endpoint struct {
	Asker Asker
	// Server and Model are names. Tiers with different models on one server are
	// asked one after the other, so that the server need not change its model for
	// each question.
	Server, Model string
	// Slots is how many questions are asked at once; 0 stands for 1.
	Slots int
	// Pack is how many messages a question may have; 0 stands for MaxPack.
	Pack int
}

// MaxPack is the largest number of messages in one question.
const MaxPack = 8

// Config says where tiers are asked. A tier without an endpoint is not asked.
type Config struct {
	Endpoints map[Tier]Endpoint
	// Calibrations are those of the models; a model without one is believed less.
	Calibrations Calibrations
}

// Cascade asks the tiers that have an endpoint. It is safe for concurrent use, and
// its slots are shared by all that use it.
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

// Wanted returns what is still to be asked about a message of the tiers that have
// an endpoint, in order, as far as that is known before the first of them answers.
func (c *Cascade) Wanted(m Mail) []Tier {
	var wanted []Tier
	for _, tier := range Wanted(m) {
		if _, ok := c.config.Endpoints[tier]; ok {
			wanted = append(wanted, tier)
		}
	}
	return wanted
}
