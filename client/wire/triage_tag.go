package wire

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

// TriageAction is an action that a tag has tried: its tool, and whether the
// tool can be called now.
type TriageAction struct {
	Account     string `json:"account"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Source      string `json:"source"`
	Tool        string `json:"tool"`
	// BuiltIn reports whether the action is not of the account's configuration.
	BuiltIn bool `json:"built_in"`
	// State is available, missing, or unreachable while the source does not answer.
	State     string `json:"state"`
	Available bool   `json:"available"`
}

// TriageTag is an action tag of a message.
type TriageTag struct {
	MessageID uuid.UUID `json:"message_id"`
	Account   string    `json:"account"`
	// Subject is text of the mail; nil for callers without mail:read.
	Subject *string `json:"subject"`
	Action  string  `json:"action"`
	// State is due, open, skipped, leaving or gone.
	State string `json:"state"`
	// Try is the number of the open try, or of the next one. Failures counts the
	// consecutive failures before it.
	Try      int `json:"try"`
	Failures int `json:"failures"`
	// Problem is the reason why no try begins, such as a missing tool.
	Problem string `json:"problem,omitempty"`
	// InMailbox reports whether the tag is a keyword of the message.
	InMailbox bool `json:"in_mailbox"`
	// TaggedBy is mailbox, or the person who set the tag or put it back.
	TaggedBy string    `json:"tagged_by"`
	TaggedAt time.Time `json:"tagged_at"`
}

// TriageTry is the end of a try of an action tag.
type TriageTry struct {
	ID        uuid.UUID `json:"log_id"`
	MessageID uuid.UUID `json:"message_id"`
	Account   string    `json:"account"`
	// Subject is text of the mail; nil for callers without mail:read.
	Subject *string `json:"subject"`
	Action  string  `json:"action"`
	Try     int     `json:"try"`
	Source  string  `json:"source"`
	Tool    string  `json:"tool"`
	// Extracted are the arguments with their origins. Callers without mail:read get
	// them without texts.
	Extracted []TriageField `json:"extracted"`
	// Result is the result of the tool; null without one, and for callers without
	// mail:read.
	Result json.RawMessage `json:"result"`
	// Status is success, failed or skipped.
	Status      string    `json:"status"`
	Error       string    `json:"error,omitempty"`
	ProcessedAt time.Time `json:"processed_at"`
	// ActionID is the action of the try; nil if it had none.
	ActionID *envelope.ActionID `json:"action_id"`
}

// ActionDefinition is an action in the interface of other mail programs. Two
// accounts may have one of the same name.
type ActionDefinition struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Server      string `json:"server"`
	Tool        string `json:"tool"`
	Available   bool   `json:"available"`
	Account     string `json:"account"`
}

// ActionLogEntry is a TriageTry in the interface of other mail programs.
type ActionLogEntry struct {
	ID             uuid.UUID       `json:"id"`
	MessageID      uuid.UUID       `json:"message_id"`
	AccountID      uuid.UUID       `json:"account_id"`
	MessageSubject *string         `json:"message_subject"`
	ActionName     string          `json:"action_name"`
	Server         string          `json:"server"`
	Tool           string          `json:"tool"`
	ExtractedData  json.RawMessage `json:"extracted_data"`
	ToolResult     json.RawMessage `json:"tool_result"`
	Status         string          `json:"status"`
	Error          string          `json:"error"`
	ProcessedAt    time.Time       `json:"processed_at"`
}
