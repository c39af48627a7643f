// Package plan turns a decision about a message into proposals: a tool, its
// arguments, and the origin of every argument. Text of a message or of a model
// cannot become a recipient, address, link, label or folder, because only the
// constructors of Value return values and Check restricts the origins at each
// place. The package is pure and proposes nothing itself.
package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/brief"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/tag"
)

// Config is the configuration of an account for proposals.
type Config struct {
	// Source is the name of the source with the tools.
	Source string `json:"source"`
	// Account is the name of the account at the source.
	Account string `json:"account"`
	// Labels maps categories to labels. A missing category has its own name as
	// its label, except primary, which has none; an empty label means none.
	Labels map[classify.Category]string `json:"labels,omitempty"`
	// LabelPrefix is the prefix that the source adds to labels.
	LabelPrefix string `json:"label_prefix,omitempty"`
	// Junk is the folder for quarantine, or "".
	Junk string `json:"junk,omitempty"`
	// Away is the answer to messages in the owner's absence; nil means none.
	Away *Away `json:"away,omitempty"`
	// Brief are the briefs that are sent; nil means none.
	Brief *brief.Settings `json:"brief,omitempty"`
	// Actions are the actions of tags in addition to the built-in ones, or in
	// their place.
	Actions map[string]tag.Action `json:"actions,omitempty"`
	// MaxActions is the number of tries that begin in a round; 0 means
	// tag.DefaultMax.
	MaxActions int `json:"max_actions_per_sync,omitzero"`
}

// maxActions bounds the tries that begin in a round.
const maxActions = 1000

// argForm is the form of the names of default arguments.
var labelForm = regexp.MustCompile(`^[A-Za-z0-9$_][A-Za-z0-9$_.+-]{0,63}$`)

// Check returns an error if the configuration is invalid.
func (c Config) Check() error {
	if c.Source == "" || c.Account == "" || len(c.Account) > 100 {
		return fmt.Errorf("proposals need a source, and an account of 1 to 100 characters")
	}
	for name, action := range c.Actions {
		if !tag.ValidName(name) || action.Source == "" || action.Tool == "" || len(action.Source)+len(action.Tool) > 300 || len(action.Prompt) > 1000 || len(action.Description) > 300 {
			return fmt.Errorf("the action %q needs a name of a-z, 0-9, dot, - and _, a source and a tool, and texts of at most 1,000 characters", name)
		}
		if _, err := defaults(name, action); err != nil {
			return err
		}
	}
	if c.MaxActions < 0 || c.MaxActions > maxActions {
		return fmt.Errorf("max_actions_per_sync must be 0 to %d", maxActions)
	}
	for category, label := range c.Labels {
		switch {
		case label == "":
		case !labelForm.MatchString(label):
			return fmt.Errorf("the label of %s must be 1 to 64 letters, digits and . _ + - $", category)
		case asksForAction(label) || asksForAction(c.LabelPrefix+label):
			return fmt.Errorf("the label of %s requests an action; only people set such labels", category)
		}
	}
	if c.Away != nil {
		return c.Away.Check()
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
		return c.Away.at(pointer)
	}
	label, ok := c.Labels[classify.Category(category)]
	return label, ok
}

// Proposal is a call to propose.
type Proposal struct {
	// Action names the proposal; Parts are all actions of the call.
	Action     decide.Action
	Parts      []Part
	Source     string
	Tool       Tool
	Fields     []Field
	ExternalID string
	// Confirm reports whether a person has to approve it. Otherwise policy
	// decides.
	Confirm bool
	// Deadline is the time after which it is not sent; zero means none.
	Deadline time.Time
}

// Part is one action of a call with its target, such as a label.
type Part struct {
	Action decide.Action `json:"action"`
	Target string        `json:"target,omitempty"`
}

// Skip is a wanted action without a proposal.
type Skip struct {
	Action  decide.Action `json:"action"`
	Because string        `json:"because"`
}

// Target is a message with its location and flags.
type Target struct {
	At      mailbox.State
	Message *message.Message
	// Return is the time at which it would return if it were snoozed; zero for
	// none.
	Return time.Time
	// Received is the time at which it arrived.
	Received time.Time
	// Proposed holds the earlier proposals about it.
	Proposed []Part
	// Built reports whether Message is not the original, so that no source can
	// find it by its identity.
	Built bool
}

// Plan returns the wanted actions in as few proposals as possible, or the
// reason why one is skipped. Each call expects the message in its present
// state, so the second of two calls would fail.
func Plan(d decide.Decision, on Target, c Config) ([]Proposal, []Skip) {
	var proposals []Proposal
	var skips []Skip
	wants := slices.Clone(d.Wants)
	slices.SortStableFunc(wants, func(a, b decide.Want) int { return rank(a.Action) - rank(b.Action) })
	for _, want := range wants {
		p, err := propose(want, d.Category, on, c)
		if err == nil {
			proposals, err = join(proposals, p)
		}
		if err != nil {
			skips = append(skips, Skip{want.Action, err.Error()})
		}
	}
	return proposals, skips
}

// rank orders actions: the first of a call names its proposal. A label comes
// last, because nothing depends on it.
func rank(a decide.Action) int {
	return -slices.Index([]decide.Action{decide.Label, decide.Flag, decide.Quarantine, decide.Trash, decide.Snooze, decide.Archive}, a)
}

// join adds a proposal to another one if a single tool can do both, else to the
// list. It returns an error if it leaves a part out.
func join(all []Proposal, p Proposal) ([]Proposal, error) {
	for i := range all {
		tool, ok := both(all[i], p)
		if !ok {
			continue
		}
		if p.Confirm && !all[i].Confirm {
			return all, fmt.Errorf("it needs an approval, and the action %s does not", all[i].Action)
		}
		all[i].Tool, all[i].Confirm = tool, all[i].Confirm || p.Confirm
		all[i].Fields = append(all[i].Fields, p.Fields[len(p.Fields)-1])
		all[i].Parts = append(all[i].Parts, p.Parts...)
		return all, nil
	}
	if p.Tool == ToolLabel && slices.ContainsFunc(all, func(p Proposal) bool { return p.Tool == ToolTrash || p.Tool == ToolSnooze }) {
		return all, errors.New("the call that moves the message sets no labels")
	}
	return append(all, p), nil
}

// both returns the tool that can do both proposals. A call that moves the
// message keeps its tool, since only that one can move it.
func both(a, b Proposal) (Tool, bool) {
	moves := func(t Tool) bool { return t == ToolArchive || t == ToolMove || t == ToolTrash || t == ToolSnooze }
	tools := []Tool{a.Tool, b.Tool}
	if moves(b.Tool) || a.Tool == ToolUnsubscribe || b.Tool == ToolUnsubscribe {
		return "", false
	}
	if moves(a.Tool) {
		tools = tools[:1]
	}
	fields := append(slices.Clone(a.Fields), b.Fields[len(b.Fields)-1])
	at := slices.IndexFunc(tools, func(t Tool) bool { return Check(t, fields) == nil })
	if at < 0 {
		return "", false
	}
	return tools[at], true
}

func propose(want decide.Want, category classify.Category, on Target, c Config) (Proposal, error) {
	if on.Built {
		return Proposal{}, errors.New("the account does not return the original of the message, which a source needs to find it")
	}
	fields, err := address(on, c)
	if err != nil {
		return Proposal{}, err
	}
	if want.Action == decide.Unsubscribe && len(on.Message.From) != 1 {
		return Proposal{}, errors.New("the message does not have exactly one sender")
	}
	tool, target, err := choose(want.Action, category, on, c)
	if err != nil {
		return Proposal{}, err
	}
	if target.Pointer != "" {
		fields = append(fields, target)
	}
	identity := on.Message.Identity
	if want.Action == decide.Unsubscribe {
		// It finds the message in any state, and is proposed once a month for a
		// sender.
		fields = slices.DeleteFunc(fields, func(f Field) bool { return strings.HasPrefix(f.Pointer, "/expected/") })
		identity = sha256.Sum256([]byte(on.Message.From[0].Addr + on.Received.UTC().Format(" 2006-01")))
	}
	if err := Check(tool, fields); err != nil {
		return Proposal{}, err
	}
	part := Part{Action: want.Action, Target: target.Value.text}
	if slices.Contains(on.Proposed, part) {
		return Proposal{}, errors.New("it is already proposed")
	}
	snoozed := slices.ContainsFunc(on.Proposed, func(p Part) bool { return p.Action == decide.Snooze })
	if snoozed && (want.Action == decide.Archive || want.Action == decide.Trash) {
		return Proposal{}, errors.New("it was to return for its event")
	}
	return Proposal{
		Action: want.Action, Parts: []Part{part}, Source: c.Source, Tool: tool, Fields: fields, Confirm: want.Confirm || decide.AlwaysConfirmed(want.Action),
		ExternalID: ExternalID(c.Account, identity, want.Action, target.Value.text),
	}, nil
}

// address returns the fields that identify the message and its expected state.
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
	// A Message-ID only helps to find the message again. An invalid one is
	// omitted.
	if id, err := FromHeader(on.Message, HeaderMessageID, 0); err == nil {
		fields = append(fields, Field{"/message/message_id", id})
	}
	fields = append(fields, Field{"/expected/folder", folder})
	for i, text := range mailbox.Flags(on.At.Flags...) {
		flag, err := line(Value{text, Header, "mailbox/flags"})
		if err != nil {
			return nil, err
		}
		fields = append(fields, Field{fmt.Sprintf("/expected/flags/%d", i), flag})
	}
	return fields, nil
}

// choose returns the tool of an action, and the field with the change. The
// field is empty for Archive, whose folder the source knows.
func choose(action decide.Action, category classify.Category, on Target, c Config) (Tool, Field, error) {
	switch action {
	case decide.Label:
		label, err := labelOf(category, c)
		if err == nil && mailbox.HasFlag(on.At.Flags, c.LabelPrefix+label.text) {
			err = fmt.Errorf("the message already has the label")
		}
		return ToolLabel, Field{"/labels/add/0", label}, err
	case decide.Flag:
		flag, err := Enum(Flags(), mailbox.FlagFlagged)
		if err == nil && mailbox.HasFlag(on.At.Flags, flag.text) {
			err = fmt.Errorf("the message already has the flag")
		}
		return ToolFlag, Field{"/flags/add/0", flag}, err
	case decide.Archive:
		return ToolArchive, Field{}, nil
	case decide.Quarantine:
		junk, err := FromConfig(c, "/junk")
		if err == nil && junk.text == on.At.Folder {
			err = fmt.Errorf("the message is already in that folder")
		}
		return ToolMove, Field{"/folder", junk}, err
	case decide.Draft:
		return "", Field{}, errors.New("a draft is proposed when its text is written")
	case decide.Trash:
		return ToolTrash, Field{}, nil
	case decide.Snooze:
		until, err := FromCalendar(on.Return)
		return ToolSnooze, Field{"/until", until}, err
	case decide.Unsubscribe:
		return ToolUnsubscribe, Field{}, nil
	case decide.Send, decide.RSVP, decide.Away:
	}
	return "", Field{}, fmt.Errorf("triage does not propose the action %s", action)
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

// ExternalID returns the name of a proposal. It depends only on the message and
// the action, so that no later run proposes the same again.
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

// Rows returns the rows of the fields.
func (p Proposal) Rows() []Row { return RowsOf(p.Fields) }

// Args returns the arguments of the call.
func (p Proposal) Args() (json.RawMessage, error) { return Args(p.Rows()) }

// Envelope returns the envelope to propose. If no approval is required here,
// policy decides whether one is.
func (p Proposal) Envelope() (envelope.Proposal, error) {
	args, err := p.Args()
	if err != nil {
		return envelope.Proposal{}, err
	}
	e := envelope.Proposal{
		ExternalID: p.ExternalID, Type: envelope.TypeExec, Tool: envelope.Tool{Source: p.Source, Name: string(p.Tool)},
		Args: args, Risk: envelope.RiskLow,
	}
	e.Constraints.MustRunBefore = p.Deadline
	if p.Confirm {
		e.Approval = envelope.ApprovalRequired
	}
	return e, e.Validate()
}
