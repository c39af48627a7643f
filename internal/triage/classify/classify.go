// Package classify is the second tier of triage: small linear models over hashed
// features that say what a message is and how far they are to be believed. The
// weights are a file that is embedded in the binary; corrections of an account's
// owner are further steps on top of them, which can be taken back exactly.
package classify

// Act is what a message does (a speech act).
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

// Category is what a message contains.
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

// Priority is how soon its owner needs to see a message. All but Personal are
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

// Prediction is what the models say of a message. Confidences are calibrated:
// of predictions with confidence p, about the share p is right.
type Prediction struct {
	Act                Act
	ActConfidence      float64
	Category           Category
	CategoryConfidence float64
	// Priority is the choice that is exact most often, and near where it is not.
	Priority Priority
	// Priorities are the probabilities of all five.
	Priorities map[Priority]float64
	// Urgent says that the probability of Urgent is over the cut at which nine in
	// ten urgent messages are found. It holds more often than Priority is Urgent.
	Urgent bool
	// Attention is the probability that the message is urgent or needs a response.
	// NeedsAttention says that it is over the cut at which nearly all are found, or
	// that Urgent or Priority says so.
	Attention      float64
	NeedsAttention bool
	// Request is the highest probability of any sentence to ask for or propose
	// something.
	Request float64
	// Unwanted is the probability that the message is spam or deceives, Phishing
	// that it deceives. Both may only lower what is allowed.
	Unwanted, Phishing float64
	// Model is the digest of the weights.
	Model string
	// Corrections counts the corrections that were applied.
	Corrections int
}

// Confidence returns the probability of the priority that was chosen.
func (p Prediction) Confidence() float64 { return p.Priorities[p.Priority] }
