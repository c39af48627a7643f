package wire

import (
	"time"

	"github.com/google/uuid"
)

// TriagePreviewRequest asks for a comparison with other settings.
type TriagePreviewRequest struct {
	// Settings take the place of those of the account.
	Settings TriageSettings `json:"settings"`
	// Travelling takes the place of the current pause, unless it is nil.
	Travelling *bool `json:"travelling,omitempty"`
	// Since is a week ago if it is zero.
	Since time.Time `json:"since,omitzero"`
}

// TriagePreview compares the decisions about mail since a time with those under
// other settings.
type TriagePreview struct {
	Account string    `json:"account"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	// Recomputed counts the decisions that Was and Would are about, and Changed
	// those that differ. Items lists the newest 100 of these.
	Recomputed int                 `json:"recomputed"`
	Was        TriagePreviewCounts `json:"was"`
	Would      TriagePreviewCounts `json:"would"`
	Changed    int                 `json:"changed"`
	Items      []TriagePreviewItem `json:"items"`
	// Unknown counts the decisions that cannot be recomputed.
	Unknown []TriagePreviewGap `json:"unknown"`
	// Cut reports whether older decisions were left out.
	Cut bool `json:"cut"`
	// Partly names changed settings that also change how the text of mail is
	// judged, which is not recomputed.
	Partly []string `json:"partly"`
}

// TriagePreviewCounts counts decisions: by action that policy decides about (Alone)
// or that a person approves (Asked), and by bucket. Kept counts those without an
// action, Questions those with a question to the owner.
type TriagePreviewCounts struct {
	Alone     map[string]int `json:"alone"`
	Asked     map[string]int `json:"asked"`
	Kept      int            `json:"kept"`
	Questions int            `json:"questions"`
	Buckets   map[string]int `json:"buckets"`
}

// TriagePreviewItem is a message about which the decisions differ. Sender,
// SenderName and Subject are empty for callers without mail:read.
type TriagePreviewItem struct {
	MessageID  uuid.UUID             `json:"message_id"`
	ReceivedAt time.Time             `json:"received_at"`
	Sender     string                `json:"sender,omitempty"`
	SenderName string                `json:"sender_name,omitempty"`
	Subject    string                `json:"subject,omitempty"`
	Was        TriagePreviewDecision `json:"was"`
	Would      TriagePreviewDecision `json:"would"`
}

// TriagePreviewDecision is a decision in a comparison.
type TriagePreviewDecision struct {
	Bucket   string   `json:"bucket"`
	Level    string   `json:"level"`
	Question bool     `json:"question"`
	Alone    []string `json:"alone"`
	Asked    []string `json:"asked"`
}

// TriagePreviewGap counts decisions that cannot be recomputed: not_recorded or
// copies.
type TriagePreviewGap struct {
	Because   string `json:"because"`
	Decisions int    `json:"decisions"`
}

// TriagePurgeRequest erases the data of triage about a mail account.
type TriagePurgeRequest struct {
	// DryRun counts it, and changes nothing.
	DryRun bool `json:"dry_run,omitzero"`
}

// TriagePurge counts the rows that one TriagePurgeRequest erased, or would erase.
type TriagePurge struct {
	Account string     `json:"account"`
	DryRun  bool       `json:"dry_run"`
	Rows    TriageRows `json:"rows"`
	// Open counts messages that are kept, because an action about each can still
	// run. It is counted by a dry run, and when no other messages are left.
	Open int64 `json:"open"`
	// Recorded counts the actions that stay in the record, RecordedTexts those among
	// them whose arguments have text of mail: drafts. A dry run counts them.
	Recorded      int64 `json:"recorded"`
	RecordedTexts int64 `json:"recorded_texts"`
	// Done reports that nothing is left.
	Done bool `json:"done"`
}

// TriageRows counts rows by table.
type TriageRows struct {
	Messages    int64 `json:"messages"`
	References  int64 `json:"references"`
	Locations   int64 `json:"locations"`
	Decisions   int64 `json:"decisions"`
	Corrections int64 `json:"corrections"`
	Proposals   int64 `json:"proposals"`
	Texts       int64 `json:"texts"`
	Senders     int64 `json:"senders"`
	SetAside    int64 `json:"set_aside"`
	Folders     int64 `json:"folders"`
	Runs        int64 `json:"runs"`
	Tags        int64 `json:"tags"`
	Tries       int64 `json:"tries"`
	Labels      int64 `json:"labels"`
}

// TableRows is the number of rows of a table.
type TableRows struct {
	Table string
	Rows  int64
}

// Tables returns the counts with the names of their tables.
func (r TriageRows) Tables() []TableRows {
	return []TableRows{
		{"messages", r.Messages}, {"references", r.References}, {"locations", r.Locations}, {"decisions", r.Decisions}, {"corrections", r.Corrections},
		{"proposals", r.Proposals}, {"texts", r.Texts}, {"senders", r.Senders}, {"set_aside", r.SetAside}, {"folders", r.Folders}, {"runs", r.Runs},
		{"tags", r.Tags}, {"tries", r.Tries}, {"labels", r.Labels},
	}
}

// Sum returns the number of all rows.
func (r TriageRows) Sum() (sum int64) {
	for _, table := range r.Tables() {
		sum += table.Rows
	}
	return sum
}

// Plus adds the counts of another set.
func (r TriageRows) Plus(o TriageRows) TriageRows {
	return TriageRows{
		Messages: r.Messages + o.Messages, References: r.References + o.References, Locations: r.Locations + o.Locations, Decisions: r.Decisions + o.Decisions,
		Corrections: r.Corrections + o.Corrections, Proposals: r.Proposals + o.Proposals, Texts: r.Texts + o.Texts, Senders: r.Senders + o.Senders,
		SetAside: r.SetAside + o.SetAside, Folders: r.Folders + o.Folders, Runs: r.Runs + o.Runs,
		Tags: r.Tags + o.Tags, Tries: r.Tries + o.Tries, Labels: r.Labels + o.Labels,
	}
}
