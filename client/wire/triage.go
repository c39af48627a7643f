package wire

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

// TriageConnection is where a mail account is: host to security of an account of
// kind imap, url to names of kind mcp, path of the other kinds.
type TriageConnection struct {
	Host     string `json:"host,omitzero"`
	Port     int    `json:"port,omitzero"`
	User     string `json:"user,omitzero"`
	Auth     string `json:"auth,omitzero"`
	Security string `json:"security,omitzero"`
	URL      string `json:"url,omitzero"`
	// Command is the program of an MCP server, with its arguments.
	Command []string `json:"command,omitempty"`
	// SecretName is the header, or the program's variable, for the password.
	SecretName string `json:"secret_name,omitzero"`
	// Server is the kind of MCP server. Names are those of tools, arguments and
	// fields that differ, for the kind generic.
	Server string            `json:"server,omitzero"`
	Names  map[string]string `json:"names,omitempty"`
	// Path is on the machine that triage runs on.
	Path    string   `json:"path,omitzero"`
	Folders []string `json:"folders,omitempty"`
	// TrustedHost is the authserv-id whose Authentication-Results are trusted.
	TrustedHost     string `json:"trusted_host,omitzero"`
	MaxMessageBytes int64  `json:"max_message_bytes,omitzero"`
}

// TriageTextSettings are the texts that a language model writes about an account's mail, and
// how.
type TriageTextSettings struct {
	// Summaries and Drafts set the messages for which they are written:
	// on_request, or wanted for messages that wait for their owner too.
	Summaries string `json:"summaries,omitempty"`
	Drafts    string `json:"drafts,omitempty"`
	// Examples are Message-IDs, without angle brackets, of sent mail whose style
	// drafts follow.
	Examples []string `json:"examples,omitempty"`
	// ExamplesFrom is off, recipient (mail sent to the recipient of the draft) or
	// folder (mail in ExamplesFolder).
	ExamplesFrom   string `json:"examples_from,omitempty"`
	ExamplesFolder string `json:"examples_folder,omitempty"`
	// Signature is the end of every draft.
	Signature string `json:"signature,omitempty"`
}

// TriageTextInput requests a text about a message.
type TriageTextInput struct {
	// Kind is summary or draft.
	Kind string `json:"kind"`
	// Note is the gist of an answer; for drafts.
	Note string `json:"note,omitempty"`
}

// TriageText is a text about a message that a language model writes or wrote.
type TriageText struct {
	Number  int64          `json:"text_no"`
	Kind    string         `json:"kind"`
	Note    string         `json:"note"`
	AskedBy envelope.Actor `json:"asked_by"`
	AskedAt time.Time      `json:"asked_at"`
	// State is waiting, written or failed.
	State   string     `json:"state"`
	EndedAt *time.Time `json:"ended_at"`
	// Text is the written text, Problem the reason for none.
	Text    string `json:"text"`
	Problem string `json:"problem"`
	// Model and Prompt are the model and the prompt that wrote it.
	Model  string `json:"model"`
	Prompt string `json:"prompt"`
	// ExternalID names the proposal that a draft led to.
	ExternalID string `json:"external_id,omitempty"`
}

// TriageSettings are the settings that decisions about an account's mail
// depend on.
type TriageSettings struct {
	Addresses   []string          `json:"addresses,omitempty"`
	Domains     []string          `json:"domains,omitempty"`
	Levels      map[string]string `json:"levels,omitempty"`
	VIP         []string          `json:"vip,omitempty"`
	Muted       []string          `json:"muted,omitempty"`
	Newsletters []string          `json:"newsletters,omitempty"`
	Social      []string          `json:"social,omitempty"`
	TaskLabels  []string          `json:"task_labels,omitempty"`
	ObserveOnly bool              `json:"observe_only,omitempty"`
	Quarantine  bool              `json:"quarantine,omitempty"`
	Snooze      bool              `json:"snooze,omitempty"`
	Trash       bool              `json:"trash,omitempty"`
	Confident   float64           `json:"confident,omitempty"`
	Unsure      float64           `json:"unsure,omitempty"`
}

// TriageProposals is the part of an account's configuration that its proposals
// use.
type TriageProposals struct {
	Source      string            `json:"source,omitempty"`
	Account     string            `json:"account,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	LabelPrefix string            `json:"label_prefix,omitempty"`
	Junk        string            `json:"junk,omitempty"`
	Away        *TriageAway       `json:"away,omitempty"`
	// Brief are the briefs that are sent; nil for none.
	Brief *TriageBriefSettings `json:"brief,omitempty"`
	// Actions are the actions of tags in addition to the built-in ones, or in their
	// place. MaxActions bounds the tries that begin in one round.
	Actions    map[string]TriageActionDefinition `json:"actions,omitempty"`
	MaxActions int                               `json:"max_actions_per_sync,omitzero"`
}

// TriageAway is the answer to mail in the owner's absence. A grant for message.away
// with its subject, text and times approves the answers.
type TriageAway struct {
	Subject string    `json:"subject"`
	Text    string    `json:"text"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until"`
	// Zone is the IANA name of the zone whose days count; empty means UTC.
	Zone string `json:"zone,omitempty"`
	// Cohorts are those whose senders get an answer, each once.
	Cohorts  []string `json:"cohorts"`
	MostADay int      `json:"most_a_day"`
}

// TriageActionDefinition is the tool that an action tag calls.
type TriageActionDefinition struct {
	Description string `json:"description,omitempty"`
	Source      string `json:"source"`
	Tool        string `json:"tool"`
	Prompt      string `json:"prompt,omitempty"`
	// DefaultArgs are texts, numbers, booleans, and lists and objects of these.
	DefaultArgs map[string]json.RawMessage `json:"default_args,omitempty"`
}

// TriageAccount is a mail account that triage reads.
type TriageAccount struct {
	ID         uuid.UUID          `json:"account_id"`
	Name       string             `json:"name"`
	Kind       string             `json:"kind"`
	Connection TriageConnection   `json:"connection"`
	Settings   TriageSettings     `json:"settings"`
	Proposals  TriageProposals    `json:"proposals"`
	Texts      TriageTextSettings `json:"texts"`
	// SecretFrom is the place where the triage process finds the password. HasSecret
	// reports whether the password is stored instead, encrypted.
	SecretFrom   string            `json:"secret_from,omitempty"`
	HasSecret    bool              `json:"has_secret"`
	Enabled      bool              `json:"enabled"`
	Every        envelope.Duration `json:"every"`
	BackfillDays int               `json:"backfill_days"`
	// Operator is the person whose mail it is, who undoes alone what triage did
	// there; nil for none.
	Operator  *uuid.UUID `json:"operator_id,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
	ETag      string     `json:"etag"`
}

// TriageAccountInput is an account to store. A field left out has its default,
// except the password, which is kept for the same server.
type TriageAccountInput struct {
	Kind         string              `json:"kind"`
	Connection   TriageConnection    `json:"connection"`
	Settings     *TriageSettings     `json:"settings,omitempty"`
	Proposals    *TriageProposals    `json:"proposals,omitempty"`
	Texts        *TriageTextSettings `json:"texts,omitempty"`
	SecretFrom   string              `json:"secret_from,omitempty"`
	Secret       string              `json:"secret,omitempty"`
	Enabled      *bool               `json:"enabled,omitempty"`
	Every        *envelope.Duration  `json:"every,omitempty"`
	BackfillDays *int                `json:"backfill_days,omitempty"`
	Operator     *uuid.UUID          `json:"operator_id,omitempty"`
}

// TriageUndoRequest undoes what triage did: at most 100 actions by id, or those of
// a filter, newest first.
type TriageUndoRequest struct {
	ActionIDs []envelope.ActionID `json:"action_ids,omitempty"`
	Filter    *TriageUndoFilter   `json:"filter,omitempty"`
	// Limit bounds the actions of one request, at most 100; zero means 100.
	Limit int `json:"limit,omitzero"`
	// Cursor is the NextCursor of the request before, with the same filter.
	Cursor string `json:"cursor,omitzero"`
	// DryRun changes nothing.
	DryRun bool `json:"dry_run,omitzero"`
}

// TriageUndoFilter selects what triage did in the mail accounts that name the
// caller. A zero field selects all.
type TriageUndoFilter struct {
	Account   string    `json:"account,omitzero"`
	RunID     uuid.UUID `json:"run_id,omitzero"`
	SessionID string    `json:"session_id,omitzero"`
	// Since and Until bound when it was done or, until then, proposed.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
}

// The further results of an undo.
const (
	// ResultWithdrawn is of an action that was not sent, and is not sent now.
	ResultWithdrawn = "withdrawn"
	// ResultWaiting is of an action that is being sent, or whose message has a later
	// one that is undone first.
	ResultWaiting = "waiting"
)

// TriageUndoResult is the result of a TriageUndoRequest. NextCursor gets the next
// part; nil at the end.
type TriageUndoResult struct {
	DryRun     bool             `json:"dry_run"`
	Items      []TriageUndoItem `json:"items"`
	NextCursor *string          `json:"next_cursor"`
}

// TriageUndoItem is the result for one action. Its Result is one of those of a
// RevertItem, withdrawn or waiting.
type TriageUndoItem struct {
	RevertItem
	Account   string     `json:"account,omitzero"`
	MessageID *uuid.UUID `json:"message_id,omitempty"`
}

// TriageStatus is the state of reading an account, with the times and the
// reason.
type TriageStatus struct {
	Account string `json:"account"`
	Kind    string `json:"kind"`
	Enabled bool   `json:"enabled"`
	// State is one of disabled, unseen, running, watching, asked, failing, overdue,
	// waiting and limited; Reason describes it in a sentence.
	State  string `json:"state"`
	Reason string `json:"reason"`
	// RunID is the run that reads the account now.
	RunID         *uuid.UUID `json:"run_id"`
	NextRunAt     *time.Time `json:"next_run_at"`
	AskedAt       *time.Time `json:"asked_at"`
	LastStartedAt *time.Time `json:"last_started_at"`
	LastEndedAt   *time.Time `json:"last_ended_at"`
	// LastReadAt is the time at which all folders were last read without an error,
	// also during a run.
	LastReadAt *time.Time `json:"last_read_at"`
	LastError  string     `json:"last_error,omitempty"`
	// Failures counts runs that failed in a row.
	Failures int `json:"failures"`
	// Folders counts the folders that were read, Backfilled those whose older mail
	// was all read too.
	Folders    int `json:"folders"`
	Backfilled int `json:"backfilled"`
	// Quota is nil for accounts of files, and before the first run.
	Quota *TriageQuota `json:"quota,omitempty"`
	// Models is nil if no language model was ever asked.
	Models *TriageModels `json:"models,omitempty"`
	// SetAside counts the messages that could not be read, judged or stored, and
	// Expired those with a proposal that expired undecided and is not proposed
	// again.
	SetAside int `json:"set_aside"`
	Expired  int `json:"expired"`
}

// TriageSetAside is a message that could not be listed, read, judged or stored.
type TriageSetAside struct {
	Folder string `json:"folder"`
	// Key is the account's name of the message; empty for messages that it lists
	// without a usable key.
	Key        string    `json:"key"`
	ReceivedAt time.Time `json:"received_at"`
	Size       int64     `json:"size"`
	// Step is the failed step: list, read or store.
	Step     string    `json:"step"`
	Reason   string    `json:"reason"`
	Attempts int       `json:"attempts"`
	Since    time.Time `json:"since"`
	TriedAt  time.Time `json:"tried_at"`
	// Again reports whether the next run reads it again.
	Again bool `json:"again"`
}

// TriageModels are the open questions to language models about an account's
// mail, and the state of each model.
type TriageModels struct {
	// Withheld counts the messages without proposals until models are asked,
	// Degraded those decided without models, to be asked as soon as possible. Since
	// is the start of the wait of the first of them.
	Withheld int        `json:"withheld"`
	Degraded int        `json:"degraded"`
	Since    *time.Time `json:"since"`
	// Servers are as the process that read the account last knew them.
	Servers []TriageModel `json:"servers"`
	// Refused is the last server or model that was refused because it is not local,
	// at RefusedAt.
	Refused   string     `json:"refused,omitempty"`
	RefusedAt *time.Time `json:"refused_at"`
}

// TriageModel is a model on a server, with the tiers that it answers.
type TriageModel struct {
	Server string   `json:"server"`
	Model  string   `json:"model"`
	Tiers  []string `json:"tiers"`
	// Usable reports whether it can be asked; otherwise Kind and Why are the reason, and Since
	// its start.
	Usable bool       `json:"usable"`
	Kind   string     `json:"kind,omitempty"`
	Why    string     `json:"why,omitempty"`
	Since  *time.Time `json:"since,omitempty"`
}

// TriageQuota is the rest of a mail provider's quota for triage.
type TriageQuota struct {
	Provider string `json:"provider"`
	// Until is the time at which reading continues, and Reason why it was stopped.
	Until  *time.Time `json:"until,omitempty"`
	Reason string     `json:"reason,omitempty"`
	// Limits are those for an hour or longer.
	Limits []TriageLimit `json:"limits"`
}

// TriageLimit is the share of a limit that triage takes at most, and the rest
// of it.
type TriageLimit struct {
	// Of is units or bytes.
	Of   string            `json:"of"`
	Per  envelope.Duration `json:"per"`
	Most int64             `json:"most"`
	// Left is the quota that could be taken in one go at a time. Used quota
	// returns evenly.
	Left int64     `json:"left"`
	At   time.Time `json:"at"`
}

// TriageRun is one reading of an account.
type TriageRun struct {
	ID        uuid.UUID  `json:"run_id"`
	Kind      string     `json:"kind"`
	StartedAt time.Time  `json:"started_at"`
	EndedAt   *time.Time `json:"ended_at"`
	Error     string     `json:"error,omitempty"`
	Read      int        `json:"read"`
	Decided   int        `json:"decided"`
	Proposed  int        `json:"proposed"`
	Skipped   int        `json:"skipped"`
}
