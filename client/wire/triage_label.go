package wire

import (
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

// TriageLabel is a label that an account's owner describes, with the number of
// messages in each state.
type TriageLabel struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Words       []string       `json:"words"`
	SetBy       envelope.Actor `json:"set_by"`
	SetAt       time.Time      `json:"set_at"`
	// MatchedAt is when messages were last matched; nil before the first time.
	MatchedAt *time.Time `json:"matched_at"`
	Applied   int64      `json:"applied"`
	Proposed  int64      `json:"proposed"`
	Confirmed int64      `json:"confirmed"`
	Rejected  int64      `json:"rejected"`
}

// TriageLabelInput is the definition of a label.
type TriageLabelInput struct {
	Description string   `json:"description,omitempty"`
	Words       []string `json:"words,omitempty"`
	// For and Against are messages that get the label, and that do not.
	For     []uuid.UUID `json:"for,omitempty"`
	Against []uuid.UUID `json:"against,omitempty"`
	// Untried sets a definition that was not tried.
	Untried bool `json:"untried,omitempty"`
}

// TriageMessageLabel is a label of a message, with the reason of the match.
type TriageMessageLabel struct {
	Label string `json:"label"`
	// State is applied, proposed, confirmed or rejected.
	State string  `json:"state"`
	Score float64 `json:"score"`
	// Because are words of the definition, and "examples".
	Because []string `json:"because"`
}

// TriageLabelDecision confirms or rejects a label of a message.
type TriageLabelDecision struct {
	Holds bool `json:"holds"`
}

// TriageLabelTrial is the result of trying a definition on the messages of the
// past.
type TriageLabelTrial struct {
	Messages int                 `json:"messages"`
	Matched  int                 `json:"matched"`
	Cohorts  []TriageLabelCohort `json:"cohorts"`
	// Items are the newest matches.
	Items []TriageLabelMatch `json:"items"`
}

// TriageLabelCohort counts the messages of a cohort.
type TriageLabelCohort struct {
	Cohort string `json:"cohort"`
	// State is applied or proposed: that of the label on messages of the cohort.
	State    string `json:"state"`
	Messages int    `json:"messages"`
	Matched  int    `json:"matched"`
}

// TriageLabelMatch is a message that would get a label.
type TriageLabelMatch struct {
	MessageID  uuid.UUID `json:"message_id"`
	ReceivedAt time.Time `json:"received_at"`
	Sender     string    `json:"sender"`
	Subject    string    `json:"subject"`
	Cohort     string    `json:"cohort"`
	TriageMessageLabel
}
