// Package classify is the second tier of triage: small linear models over
// hashed features, with calibrated confidences. The weights are a file embedded
// in the binary. Corrections of an account's owner are further steps on top of
// the weights, which can be reversed exactly.
package classify

// Act is the speech act of a message.
type Act string

// The acts.
const (
	Request Act = "request"
	Commit  Act = "commit"
	Deliver Act = "deliver"
	Propose Act = "propose"
	Meet    Act = "meet"
	Amend   Act = "amend"
	FYI     Act = "fyi"
)

// Category is the kind of content of a message.
type Category string

// The categories.
const (
	Primary       Category = "primary"
	Newsletters   Category = "newsletters"
	Notifications Category = "notifications"
	Promotions    Category = "promotions"
	Receipts      Category = "receipts"
	Social        Category = "social"
)

// Priority is the urgency of a message for its owner. All except Personal are
// steps of a ladder, most urgent first.
type Priority string

// The priorities.
const (
	Urgent        Priority = "urgent"
	NeedsResponse Priority = "needs_response"
	ForInfo       Priority = "fyi"
	Promotional   Priority = "promotional"
	Personal      Priority = "personal"
)

// Prediction is the models' prediction for a message. Confidences are
// calibrated: of predictions with confidence p, about the share p is right.
type Prediction struct {
	Act                Act
	ActConfidence      float64
	Category           Category
	CategoryConfidence float64
	// Priority is the choice that is most often exact, and otherwise near.
	Priority Priority
	// Priorities holds the probabilities of all five.
	Priorities map[Priority]float64
	// Urgent reports whether the probability of Urgent is above the cut that
	// finds nine in ten urgent messages. It is set more often than Priority is
	// Urgent.
	Urgent bool
	// Attention is the probability that the message is urgent or needs a
	// response. NeedsAttention reports whether it is above the cut that finds
	// nearly all of them, or Urgent or Priority imply it.
	Attention      float64
	NeedsAttention bool
	// Request is the highest probability that a sentence asks for or proposes
	// something.
	Request float64
	// Unwanted is the probability that the message is spam or deceptive,
	// Phishing that it is deceptive. Both may only lower the level.
	Unwanted, Phishing float64
	// Model is the digest of the weights.
	Model string
	// Corrections counts the corrections that were applied.
	Corrections int
}

// Confidence returns the probability of the chosen priority.
func (p Prediction) Confidence() float64 { return p.Priorities[p.Priority] }
