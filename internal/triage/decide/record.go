package decide

import (
	"slices"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// Record holds the facts of a decision that are stored for deciding again under
// other settings. The signals, the authentication and the prediction are stored
// beside it, and the settings are those of the account. It holds addresses and
// labels, and no other text of the mail.
type Record struct {
	Headers      Headers       `json:"headers"`
	Folder       mailbox.Use   `json:"folder"`
	Flags        []string      `json:"flags,omitempty"`
	Sender       signal.Sender `json:"sender"`
	List         signal.Sender `json:"list"`
	OwnerReplied bool          `json:"owner_replied,omitempty"`
	FollowUp     bool          `json:"follow_up,omitempty"`
	Amends       Bucket        `json:"amends,omitempty"`
	Earlier      Earlier       `json:"earlier,omitzero"`
	Built        bool          `json:"built,omitempty"`
	Return       time.Time     `json:"return,omitzero"`
	// Keeps, Named and Unfamiliar are those of the signals, whose JSON omits them.
	Keeps      signal.Keeps `json:"keeps,omitempty"`
	Named      bool         `json:"named,omitempty"`
	Unfamiliar bool         `json:"unfamiliar,omitempty"`
}

// A header with more addresses, or a longer one, is not recorded: a sender chooses
// them.
const (
	maxRecorded       = 200
	maxRecordedLength = 320
)

// RecordOf returns the record of facts, or nil if their header is not recorded.
func RecordOf(f Facts) *Record {
	addresses := slices.Concat(f.Headers.From, f.Headers.To, f.Headers.Cc)
	if len(addresses) > maxRecorded || slices.ContainsFunc(addresses, func(addr string) bool { return len(addr) > maxRecordedLength }) {
		return nil
	}
	return &Record{
		Headers: f.Headers, Folder: f.Folder, Flags: f.Flags, Sender: f.Sender, List: f.List, OwnerReplied: f.OwnerReplied, FollowUp: f.FollowUp,
		Amends: f.Amends, Earlier: f.Earlier, Built: f.Built, Return: f.Return, Keeps: f.Signals.Keeps, Named: f.Signals.Named, Unfamiliar: f.Signals.Unfamiliar,
	}
}

// Facts returns the facts of a record. Settings and Travelling are left to the
// caller.
func (r Record) Facts(found signal.Result, a signal.Authentication, p classify.Prediction) Facts {
	found.Keeps, found.Named, found.Unfamiliar = r.Keeps, r.Named, r.Unfamiliar
	return Facts{
		Headers: r.Headers, Folder: r.Folder, Flags: r.Flags, Authentication: a, Signals: found, Prediction: p, Sender: r.Sender, List: r.List,
		OwnerReplied: r.OwnerReplied, FollowUp: r.FollowUp, Amends: r.Amends, Earlier: r.Earlier, Built: r.Built, Return: r.Return,
	}
}
