package wire

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

// TriageMessage is a message with its decision. Subject and sender
// are text of the mail.
type TriageMessage struct {
	ID         uuid.UUID `json:"message_id"`
	Account    string    `json:"account"`
	Sender     string    `json:"sender"`
	SenderName string    `json:"sender_name"`
	Subject    string    `json:"subject"`
	Outgoing   bool      `json:"outgoing"`
	ReceivedAt time.Time `json:"received_at"`
	// DecidedAt is null for a message that was not decided; the members after it are
	// then empty.
	DecidedAt  *time.Time `json:"decided_at"`
	Act        string     `json:"act"`
	Category   string     `json:"category"`
	Priority   string     `json:"priority"`
	Bucket     string     `json:"bucket"`
	Cohort     string     `json:"cohort"`
	Level      string     `json:"level"`
	Confidence float64    `json:"confidence"`
	// Question reports whether its owner is asked to classify the message.
	Question bool `json:"question"`
	// Proposed counts the proposals about it.
	Proposed int `json:"proposed"`
	// Reason is nil for a message that was not decided.
	Reason *TriageReason `json:"reason"`
	// Tags are its action tags that are not gone.
	Tags []TriageTag `json:"tags"`
	// Has lists the kinds of the findings in it: receipt, meeting, task, travel and
	// contact.
	Has []string `json:"has"`
	// CodeEndsAt is when the one-time code in it ends; nil without one. The code is in
	// the findings of one message, while it holds.
	CodeEndsAt *time.Time `json:"code_ends_at"`
	// Labels are those that its owner described, apart from rejected ones.
	Labels []TriageMessageLabel `json:"labels"`
}

// TriageFinding is a finding in a message: a receipt, a meeting, a task, travel, a
// contact, or a one-time code, which is computed for each reader.
type TriageFinding struct {
	Kind string `json:"kind"`
	// StartsAt is the time of a purchase, the start of a meeting or a journey, the day
	// on which a task is due.
	StartsAt *time.Time `json:"starts_at"`
	EndsAt   *time.Time `json:"ends_at"`
	// Cancelled reports that the sender cancelled it, in this message or a later one.
	Cancelled bool                 `json:"cancelled"`
	Fields    []TriageFindingField `json:"fields"`
}

// TriageFindingField is a value of a finding. Part is the part of the message that it
// is from: body, text, subject, header, icalendar, json_ld or microdata.
type TriageFindingField struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Part  string `json:"part"`
	// Span is the range of bytes in a body, a text or a subject; nil in other parts.
	Span *TriageSpan `json:"span,omitempty"`
}

// TriageSpan is a range of bytes: from From up to To.
type TriageSpan struct {
	From int `json:"from"`
	To   int `json:"to"`
}

// TriageMessageDetail is a message with everything that is known of it.
type TriageMessageDetail struct {
	TriageMessage

	// HeaderID is the Message-ID that its sender chose.
	HeaderID  string           `json:"header_id"`
	ThreadID  uuid.UUID        `json:"thread_id"`
	List      string           `json:"list,omitempty"`
	SentAt    *time.Time       `json:"sent_at"`
	Size      int64            `json:"size"`
	Body      string           `json:"body"`
	Locations []TriageLocation `json:"locations"`
	// Decision is the whole decision with its trace, or null.
	Decision json.RawMessage `json:"decision"`
	// DecidedBecause is new, answered, asked, brought_back, copied or corrected; empty
	// without a decision.
	DecidedBecause string         `json:"decided_because,omitempty"`
	Signals        []TriageSignal `json:"signals"`
	// Notes are the removals from the text while reading, Warnings its defects.
	Notes       []TriageNote       `json:"notes"`
	Warnings    []string           `json:"warnings"`
	Attachments []TriageAttachment `json:"attachments"`
	// Skips are wanted actions that were not proposed.
	Skips       []TriageSkip       `json:"skips"`
	Proposals   []TriageProposal   `json:"proposals"`
	Corrections []TriageCorrection `json:"corrections"`
	Texts       []TriageText       `json:"texts"`
	Findings    []TriageFinding    `json:"findings"`
	// TouchedAt is the time at which its owner moved or flagged the message;
	// Undone are the undone actions of triage.
	TouchedAt *time.Time `json:"touched_at"`
	Undone    []string   `json:"undone"`
	// RunID is the run that decided. Tier is the highest tier that the decision rests
	// on, embedded or that of a language model; Model and Prompt are those of the
	// tier.
	RunID  *uuid.UUID `json:"run_id"`
	Tier   string     `json:"tier,omitempty"`
	Model  string     `json:"model,omitempty"`
	Prompt string     `json:"prompt,omitempty"`
	// Answers are the answers of language models. Degraded lists the tiers that
	// the decision lacks, with the reasons.
	Answers  []TriageAnswer `json:"answers"`
	Degraded string         `json:"degraded,omitempty"`
	// Waiting are the tiers that are still to be asked; Withheld reports that nothing
	// is proposed until then.
	Waiting  []string `json:"waiting"`
	Withheld bool     `json:"withheld,omitempty"`
}

// TriageAnswer is the answer of a language model about a message: codes of fixed
// lists, and no text.
type TriageAnswer struct {
	Tier   string `json:"tier"`
	Model  string `json:"model,omitempty"`
	Prompt string `json:"prompt"`
	// Pack is the number of messages in the same question.
	Pack    int            `json:"pack"`
	Choices []TriageChoice `json:"choices"`
	// Failed is the reason for a missing answer.
	Failed string `json:"failed,omitempty"`
}

// TriageChoice is the answer to one question, and its confidence.
type TriageChoice struct {
	Question   string  `json:"question"`
	Code       string  `json:"code"`
	Value      string  `json:"value"`
	Confidence float64 `json:"confidence"`
}

// TriageLocation is the place of a copy of a message.
type TriageLocation struct {
	Folder string   `json:"folder"`
	Flags  []string `json:"flags"`
}

// TriageSignal is a rule that matched. Evidence is text of the mail.
type TriageSignal struct {
	Name     string  `json:"name"`
	Axis     string  `json:"axis"`
	Weight   float64 `json:"weight"`
	Identity bool    `json:"identity,omitempty"`
	Evidence string  `json:"evidence,omitempty"`
}

// TriageNote is a removal by a step of reading.
type TriageNote struct {
	Step       string `json:"step"`
	Kind       string `json:"kind"`
	Count      int    `json:"count"`
	Characters int    `json:"characters"`
}

// TriageAttachment is an attachment as its sender named it.
type TriageAttachment struct {
	Name string `json:"name"`
	// Declared is the media type as sent, Detected the one by content.
	Declared string `json:"declared"`
	Detected string `json:"detected"`
	Size     int64  `json:"size"`
	// Encrypted reports whether it is an archive with encrypted entries.
	Encrypted bool `json:"encrypted,omitempty"`
	Inline    bool `json:"inline,omitempty"`
}

// TriageSkip is a wanted action that was not proposed.
type TriageSkip struct {
	Action  string `json:"action"`
	Because string `json:"because"`
}

// TriageProposal is a proposal about a message, with its outcome.
type TriageProposal struct {
	ExternalID string `json:"external_id"`
	// Repeats is the name of the proposal that expired without a decision, which this
	// one repeats.
	Repeats    string    `json:"repeats,omitempty"`
	Action     string    `json:"action"`
	Tool       string    `json:"tool"`
	ProposedAt time.Time `json:"proposed_at"`
	// Fields are the values of the arguments with their origins.
	Fields []TriageField `json:"fields"`
	// ActionID is the action, with its phase; null while the proposal waits for a
	// worker, and if it was refused. Problem is the reason.
	ActionID *envelope.ActionID `json:"action_id"`
	Phase    string             `json:"phase,omitempty"`
	Problem  string             `json:"problem,omitempty"`
	// Reversals are the actions that took it back.
	Reversals []envelope.ActionID `json:"reversals"`
}

// TriageField is a value of an argument and its origin.
type TriageField struct {
	Pointer string `json:"pointer"`
	Value   string `json:"value"`
	// Origin is header, config, template, enum, calendar, model_text, span, or literal for a
	// number or a boolean of the configuration; Ref is the exact place.
	Origin string `json:"origin"`
	Ref    string `json:"ref"`
}

// TriageCorrection is a person's correction about a message.
type TriageCorrection struct {
	Number int64 `json:"correction_no"`
	// Head is act, category, priority or unwanted; Label is the right answer.
	Head        string         `json:"head"`
	Label       string         `json:"label"`
	MadeBy      envelope.Actor `json:"made_by"`
	MadeAt      time.Time      `json:"made_at"`
	RetractedAt *time.Time     `json:"retracted_at"`
}

// TriageCorrectionInput is a correction to make.
type TriageCorrectionInput struct {
	Head  string `json:"head"`
	Label string `json:"label"`
}

// TriageWhy is the reasons for the treatment of a message.
type TriageWhy struct {
	ID      uuid.UUID `json:"message_id"`
	Account string    `json:"account"`
	// Summary is one sentence, also where nothing happened.
	Summary string `json:"summary"`
	// Reason is nil where nothing was decided.
	Reason *TriageReason   `json:"reason"`
	Steps  []TriageWhyStep `json:"steps"`
}

// TriageWhyStep is a step of the explanation, from the mail to the result.
type TriageWhyStep struct {
	// Stage is reading, signal, rule, skip, proposal, value, policy, outcome, owner or
	// correction.
	Stage string `json:"stage"`
	Text  string `json:"text"`
	// ActionID is the action of the step, whose decision is that of policy.
	ActionID *envelope.ActionID `json:"action_id,omitempty"`
}

// ActionMail is the message that an action of triage is about. Its sender chose
// Sender, SenderName and Subject, which may hold any character; long ones are cut.
type ActionMail struct {
	MessageID  uuid.UUID `json:"message_id"`
	Account    string    `json:"account"`
	Sender     string    `json:"sender"`
	SenderName string    `json:"sender_name"`
	Subject    string    `json:"subject"`
	ReceivedAt time.Time `json:"received_at"`
	// Cohort is empty, and Reason nil, where nothing was decided about the message.
	Cohort string        `json:"cohort,omitzero"`
	Reason *TriageReason `json:"reason,omitempty"`
}

// TriageReason is the reason of a decision about a message. It has no text of the
// mail.
type TriageReason struct {
	// Text is one sentence, and Codes are the codes that it is composed of: the
	// bucket, the act, symbols, vetoes, and question.
	Text  string   `json:"text"`
	Codes []string `json:"codes"`
}
