// Package plan turns a decision about a message into proposals: which tool is
// called with which arguments, and where every argument comes from. Text of a
// message or of a model becomes no recipient, address, link, label or folder,
// because only the constructors of Value make values and Check knows what each
// place takes. It is pure, and proposes nothing itself.
package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
)

// Config is what proposals take from the configuration of an account.
type Config struct {
	// Source is the name of the source that has the tools.
	Source string `json:"source"`
	// Account is what the source calls the account.
	Account string `json:"account"`
	// Labels are those of the categories. A category that is not there has its own
	// name as its label, and primary none; an empty label is none.
	Labels map[classify.Category]string `json:"labels,omitempty"`
	// LabelPrefix is what the source puts before labels.
	LabelPrefix string `json:"label_prefix,omitempty"`
	// Junk is the folder for quarantine; empty without.
	Junk string `json:"junk,omitempty"`
}

var labelForm = regexp.MustCompile(`^[A-Za-z0-9$_][A-Za-z0-9$_.+-]{0,63}$`)

// Check returns an error that says what is wrong with the configuration.
func (c Config) Check() error {
	if c.Source == "" || c.Account == "" || len(c.Account) > 100 {
		return fmt.Errorf("a configuration for proposals names a source, and an account in 1 to 100 characters")
	}
	for category, label := range c.Labels {
		switch {
		case label == "":
		case !labelForm.MatchString(label):
			return fmt.Errorf("the label of %s has 1 to 64 letters, digits and . _ + - $", category)
		case asksForAction(label) || asksForAction(c.LabelPrefix+label):
			return fmt.Errorf("the label of %s would ask for an action; people set such labels", category)
		}
	}
	return nil
}

// at returns the text at a pointer.
func (c Config) at(pointer string) (string, bool) {
	switch pointer {
	case "/account":
		return c.Account, true
	case "/junk":
		return c.Junk, true
	}
	category, ok := strings.CutPrefix(pointer, "/labels/")
	if !ok {
		return "", false
	}
	label, ok := c.Labels[classify.Category(category)]
	return label, ok
}

// Proposal is a call to propose.
type Proposal struct {
	Action     decide.Action
	Source     string
	Tool       Tool
	Fields     []Field
	ExternalID string
	// Confirm says that a person has to approve it. Without, policy decides.
	Confirm bool
}

// Skip is an action that was wanted and leads to no proposal.
type Skip struct {
	Action  decide.Action `json:"action"`
	Because string        `json:"because"`
}

// Target is a message, where it lies, and its flags.
type Target struct {
	At      mailbox.State
	Message *message.Message
}

// Plan returns a proposal for every action that the decision wants, or says why
// there is none.
func Plan(d decide.Decision, on Target, c Config) ([]Proposal, []Skip) {
	var proposals []Proposal
	var skips []Skip
	for _, want := range d.Wants {
		p, err := propose(want, d.Category, on, c)
		if err != nil {
			skips = append(skips, Skip{want.Action, err.Error()})
			continue
		}
		proposals = append(proposals, p)
	}
	return proposals, skips
}

func propose(want decide.Want, category classify.Category, on Target, c Config) (Proposal, error) {
	fields, err := address(on, c)
	if err != nil {
		return Proposal{}, err
	}
	tool, target, err := choose(want.Action, category, on, c)
	if err != nil {
		return Proposal{}, err
	}
	if target.Pointer != "" {
		fields = append(fields, target)
	}
	if err := Check(tool, fields); err != nil {
		return Proposal{}, err
	}
	return Proposal{
		Action: want.Action, Source: c.Source, Tool: tool, Fields: fields, Confirm: want.Confirm || decide.AlwaysConfirmed(want.Action),
		ExternalID: ExternalID(c.Account, on.Message.Identity, want.Action, target.Value.text),
	}, nil
}

// address returns the fields that say which message is meant.
func address(on Target, c Config) ([]Field, error) {
	account, err := FromConfig(c, "/account")
	if err != nil {
		return nil, err
	}
	folder, key, identity, err := located(on.At.Location, on.Message)
	if err != nil {
		return nil, err
	}
	fields := []Field{
		{"/account", account}, {"/message/folder", folder}, {"/message/key", key}, {"/message/identity", identity},
	}
	// A Message-ID only helps to find the message again. One that cannot be named
	// is left out.
	if id, err := FromHeader(on.Message, HeaderMessageID, 0); err == nil {
		fields = append(fields, Field{"/message/message_id", id})
	}
	return fields, nil
}

// choose returns the tool of an action, and the field that says what to change
// the message to; that is empty for Archive, whose folder the source knows.
func choose(action decide.Action, category classify.Category, on Target, c Config) (Tool, Field, error) {
	switch action {
	case decide.Label:
		label, err := labelOf(category, c)
		if err == nil && mailbox.HasFlag(on.At.Flags, c.LabelPrefix+label.text) {
			err = fmt.Errorf("the message has the label already")
		}
		return ToolLabel, Field{"/labels/add/0", label}, err
	case decide.Flag:
		flag, err := Enum(Flags(), mailbox.FlagFlagged)
		if err == nil && mailbox.HasFlag(on.At.Flags, flag.text) {
			err = fmt.Errorf("the message has the flag already")
		}
		return ToolFlag, Field{"/flags/add/0", flag}, err
	case decide.Archive:
		return ToolArchive, Field{}, nil
	case decide.Quarantine:
		junk, err := FromConfig(c, "/junk")
		if err == nil && junk.text == on.At.Folder {
			err = fmt.Errorf("the message lies in that folder already")
		}
		return ToolMove, Field{"/folder", junk}, err
	case decide.Draft, decide.Snooze, decide.Trash, decide.Report, decide.Send, decide.Forward, decide.Delete,
		decide.Block, decide.Unsubscribe, decide.RSVP:
	}
	return "", Field{}, fmt.Errorf("triage has no tool for the action %s", action)
}

func labelOf(category classify.Category, c Config) (Value, error) {
	if label, set := c.Labels[category]; set && label != "" {
		return FromConfig(c, "/labels/"+string(category))
	} else if set || category == classify.Primary {
		return Value{}, fmt.Errorf("the category %s has no label", category)
	}
	word, err := Enum(Categories(), string(category))
	if err != nil {
		return Value{}, err
	}
	return Template(LabelTemplate, word)
}

// ExternalID returns the name of a proposal. It depends on what is to be done to
// which message alone, so that no later run proposes the same again.
func ExternalID(account string, identity [32]byte, action decide.Action, target string) string {
	h := sha256.New()
	for _, part := range []string{account, string(identity[:]), string(action), target} {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	return "triage:" + hex.EncodeToString(h.Sum(nil))
}

// Rows returns the fields as they are stored.
func (p Proposal) Rows() []Row { return RowsOf(p.Fields) }

// Args returns the arguments of the call.
func (p Proposal) Args() (json.RawMessage, error) { return Args(p.Rows()) }

// Envelope returns the envelope to propose. Where no person has to approve,
// policy decides whether one is asked.
func (p Proposal) Envelope() (envelope.Proposal, error) {
	args, err := p.Args()
	if err != nil {
		return envelope.Proposal{}, err
	}
	e := envelope.Proposal{
		ExternalID: p.ExternalID, Type: envelope.TypeExec, Tool: envelope.Tool{Source: p.Source, Name: string(p.Tool)},
		Args: args, Risk: envelope.RiskLow,
	}
	if p.Confirm {
		e.Approval = envelope.ApprovalRequired
	}
	return e, e.Validate()
}
