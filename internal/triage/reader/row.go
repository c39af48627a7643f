package reader

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/plan"
	"github.com/countersign-dev/countersign/internal/triage/signal"
	"github.com/countersign-dev/countersign/internal/triage/thread"
)

// The rows below are passed to the database as JSON, a whole set at a time.

type messageRow struct {
	thread.Message
	thread.Pledge
	ID        uuid.UUID `json:"message_id"`
	Identity  string    `json:"identity"`
	Thread    uuid.UUID `json:"thread_id"`
	Outgoing  bool      `json:"outgoing"`
	Automated bool      `json:"automated"`
	Awaits    bool      `json:"awaits"`
	Size      int64     `json:"size"`
}

type locationRow struct {
	Key     string    `json:"key"`
	Message uuid.UUID `json:"message_id"`
	Flags   []string  `json:"flags"`
}

type touchedRow struct {
	Message uuid.UUID `json:"message_id"`
	Touched bool      `json:"touched"`
	Undone  []string  `json:"undone"`
}

type outcomeRow struct {
	Message  uuid.UUID `json:"message_id"`
	Accepted int       `json:"accepted"`
	Refused  int       `json:"refused"`
}

type decisionRow struct {
	Message    uuid.UUID           `json:"message_id"`
	Act        classify.Act        `json:"act"`
	Category   classify.Category   `json:"category"`
	Priority   classify.Priority   `json:"priority"`
	Bucket     decide.Bucket       `json:"bucket"`
	Cohort     decide.Cohort       `json:"cohort"`
	Level      int                 `json:"level"`
	Confidence float64             `json:"confidence"`
	Question   bool                `json:"question"`
	Decision   decide.Decision     `json:"decision"`
	Signals    signals             `json:"signals"`
	Prediction classify.Prediction `json:"prediction"`
	Features   []byte              `json:"features"`
	Notes      notes               `json:"notes"`
	Skipped    []plan.Skip         `json:"skipped"`
	Model      string              `json:"model"`
	Reason     reason              `json:"reason"`
	Tier       cascade.Tier        `json:"tier"`
	Prompt     string              `json:"prompt"`
	Degraded   string              `json:"degraded"`
	Answers    []cascade.Reply     `json:"answers"`
	Wanted     []cascade.Tier      `json:"wanted"`
	Withheld   bool                `json:"withheld"`
	Received   thread.Instant      `json:"received_at"`
	Judged     []string            `json:"judged"`
	Facts      *decide.Record      `json:"facts"`
}

// reason is the reason of a decision. SQL writes two more: answered, and
// corrected for a correction of another message of its sender.
type reason string

const (
	reasonNew         reason = "new"
	reasonBroughtBack reason = "brought_back"
	reasonAsked       reason = "asked"
	reasonCopied      reason = "copied"
)

// signals is the stored result of the rules. Evidence is text of the mail.
type signals struct {
	signal.Result
	Authentication signal.Authentication `json:"authentication"`
}

// flag adds the flags of another copy.
func (s *signals) flag(other signal.Result) {
	s.Suspicious, s.Phishing = s.Suspicious || other.Suspicious, s.Phishing || other.Phishing
	s.Injection, s.SecurityAlert = s.Injection || other.Injection, s.SecurityAlert || other.SecurityAlert
}

// notes holds the removals and the warnings of parsing a message.
type notes struct {
	Removed     []message.Note       `json:"removed,omitempty"`
	Warnings    []string             `json:"warnings,omitempty"`
	Attachments []message.Attachment `json:"attachments,omitempty"`
	Language    string               `json:"language,omitempty"`
}

func decisionRowOf(m *mail, d decide.Decision, found signal.Result, p classify.Prediction, f classify.Features, skips []plan.Skip) (decisionRow, error) {
	features, err := f.MarshalBinary()
	if err != nil {
		return decisionRow{}, err
	}
	return decisionRow{
		Message: m.id, Act: d.Act, Category: d.Category, Priority: d.Priority, Bucket: d.Bucket, Cohort: d.Cohort, Level: int(d.Allowed),
		Confidence: d.Confidence, Question: d.Question, Decision: d, Prediction: p, Features: features, Model: p.Model,
		Signals: signals{found, m.authentication},
		Notes: notes{
			Removed: m.message.Notes, Warnings: m.message.Warnings, Attachments: m.message.Attachments, Language: m.message.Language,
		},
		Skipped: append([]plan.Skip{}, skips...),
	}, nil
}

type proposalRow struct {
	External string          `json:"external_id"`
	Message  uuid.UUID       `json:"message_id"`
	Action   decide.Action   `json:"action"`
	Parts    []plan.Part     `json:"parts"`
	Fields   []plan.Row      `json:"fields"`
	Envelope json.RawMessage `json:"envelope"`
}

func proposalRowOf(about uuid.UUID, p plan.Proposal) (proposalRow, error) {
	e, err := p.Envelope()
	if err != nil {
		return proposalRow{}, err
	}
	raw, err := json.Marshal(e)
	return proposalRow{External: p.ExternalID, Message: about, Action: p.Action, Parts: p.Parts, Fields: p.Rows(), Envelope: raw}, err
}

// asideRow is a message set aside.
type asideRow struct {
	Key      string         `json:"key"`
	Received thread.Instant `json:"received_at"`
	Size     int64          `json:"size"`
	Step     step           `json:"step"`
	Reason   string         `json:"reason"`
}

func asideOf(it mailbox.Item, failed step, reason string) asideRow {
	return asideRow{Key: it.Key, Received: thread.InstantOf(it.Received), Size: it.Size, Step: failed, Reason: reason}
}
