// Package mail is the source of tools that change messages in mailboxes: labels,
// flags, folders and drafts. It deletes no mail, and sends only mail that a person
// approved.
//
// A call identifies a message by a digest of its content. A message with another
// digest is never changed, even if its Message-ID or its key in a folder match.
// Each tool returns the state of the message before and after the call. Its
// declared reversal restores the former if the message is still in the latter.
//
// Results and errors never contain content of a message.
package mail

import (
	"context"
	_ "embed"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// The tools.
const (
	// ToolState reads the folder and the flags of a message.
	ToolState = "message.state"
	// ToolLabel and ToolFlag set and clear keywords and flags. Both are
	// idempotent.
	ToolLabel = "message.label"
	ToolFlag  = "message.flag"
	// ToolArchive and ToolMove move a message from a folder to another. A
	// repeated call changes nothing.
	ToolArchive = "message.archive"
	ToolMove    = "message.move"
	// ToolTrash moves a message to the trash, and never deletes it.
	ToolTrash = "message.trash"
	// ToolSnooze moves a message to the folder of snoozed messages until a time;
	// ToolReturn, which follows at that time, moves it back.
	ToolSnooze = "message.snooze"
	ToolReturn = "message.return"
	// ToolUnsubscribe unsubscribes from the list of a message by RFC 8058.
	ToolUnsubscribe = "message.unsubscribe"
	// ToolRestore restores the state before a call of the tools above.
	ToolRestore = "message.restore"
	// ToolDraft stores a draft. Its Message-ID is derived from the call's key,
	// so a repeated call finds it.
	ToolDraft = "message.draft"
	// ToolSend sends a mail, and ToolSent reports whether that of a call is in the
	// folder for sent mail.
	ToolSend = "message.send"
	ToolSent = "message.sent"
	// ToolRSVP answers the invitation in a message by mail.
	ToolRSVP = "message.rsvp"
	// ToolAway answers a message in its owner's absence, each sender once in a
	// period.
	ToolAway = "message.away"
	// ToolBrief sends a mail to one of the owner's own addresses alone.
	ToolBrief = "message.brief"
	// ToolDraftDelete moves a draft to the trash.
	ToolDraftDelete = "draft.delete"
)

// AlwaysPerson reports whether a person approves every call of a tool, whatever
// policy allows: its effect leaves the mailbox and cannot be taken back. With fixed,
// a grant approves calls as well if it fixes the arguments at these pointers.
func AlwaysPerson(tool string) (always bool, fixed []string) {
	switch tool {
	case ToolUnsubscribe, ToolSend, ToolRSVP:
		return true, nil
	case ToolAway:
		return true, []string{"/account", "/subject", "/text", "/since", "/until"}
	case ToolBrief:
		return true, []string{"/account", "/to"}
	}
	return false, nil
}

//go:embed tools.json
var document []byte

// Config configures a source.
type Config struct {
	// Name is the source's name in errors.
	Name string
	// Accounts are the mailboxes by name.
	Accounts map[string]Account
	// HTTP holds the time limits.
	HTTP rest.Config
	// Resolver queries DNS for the keys of senders; nil means the resolver of the
	// machine.
	Resolver authenticate.Resolver
	// Web connects to the addresses for unsubscribing; nil means a transport that
	// reaches the public internet alone.
	Web http.RoundTripper
}

// Account is a mailbox.
type Account struct {
	// Open connects to the mailbox. The error is one of package mailbox,
	// safehttp.ErrForbidden, or an outage.
	Open func(ctx context.Context) (mailbox.Writer, error)
	// From is the owner's address and the sender of drafts; empty omits the
	// header From.
	From string
	// Addresses are further addresses of the owner, for which invitations and
	// mail in the owner's absence are answered.
	Addresses []string
	// TrustedHost is the authserv-id of the Authentication-Results that prove
	// senders; empty means that only signatures do.
	TrustedHost string
	// LabelPrefix is added to every label.
	LabelPrefix string
	// Folders are the names of folders by use. They override those that the
	// server reports.
	Folders map[mailbox.Use]string
	// Submitter sends its mail.
	Submitter Submitter
}

// Source implements source.Source.
type Source struct {
	*rest.Source
	name     string
	accounts map[string]*account
	resolver authenticate.Resolver
	web      *rest.Client
}

// New returns a source of the accounts in cfg. It does not connect yet.
func New(cfg Config) (*Source, error) {
	if len(cfg.Accounts) == 0 {
		return nil, fault.New(fault.Invalid, "mail source %s: needs an account", cfg.Name)
	}
	s := &Source{name: cfg.Name, accounts: make(map[string]*account, len(cfg.Accounts)), resolver: cfg.Resolver}
	if s.resolver == nil {
		s.resolver = net.DefaultResolver
	}
	s.web = rest.New(cfg.Name, rest.Config{Transport: cfg.Web, MaxBodyBytes: maxUnsubscribeAnswer})
	for name, of := range cfg.Accounts {
		s.accounts[name] = newAccount(of)
	}
	var err error
	s.Source, err = rest.ParseSource(rest.New(cfg.Name, cfg.HTTP), document, map[string]rest.Run{
		ToolState:       rest.WithArgs(s.state),
		ToolLabel:       rest.WithArgs(s.label),
		ToolFlag:        rest.WithArgs(s.flag),
		ToolArchive:     rest.WithArgs(s.archive),
		ToolMove:        rest.WithArgs(s.move),
		ToolTrash:       rest.WithArgs(s.trash),
		ToolSnooze:      rest.WithArgs(s.snooze),
		ToolReturn:      rest.WithArgs(s.comeBack),
		ToolUnsubscribe: rest.WithArgs(s.unsubscribe),
		ToolRestore:     rest.WithArgs(s.restore),
		ToolDraft:       rest.WithArgs(s.draft),
		ToolSend:        rest.WithArgs(s.send),
		ToolSent:        rest.WithArgs(s.wasSent),
		ToolRSVP:        rest.WithArgs(s.rsvp),
		ToolAway:        rest.WithArgs(s.away),
		ToolBrief:       rest.WithArgs(s.brief),
		ToolDraftDelete: rest.WithArgs(s.deleteDraft),
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Close implements source.Source.
func (s *Source) Close() error {
	err := errors.Join(s.Source.Close(), s.web.Close())
	for _, name := range slices.Sorted(maps.Keys(s.accounts)) {
		err = errors.Join(err, s.accounts[name].close())
	}
	return err
}

// with runs a call on an account, one at a time.
func (s *Source) with(ctx context.Context, name string, run func(*session) source.Observation) source.Observation {
	a, ok := s.accounts[name]
	if !ok {
		return s.refuse(source.CodeNotFound, "the source has no account of this name")
	}
	return a.do(ctx, s, run)
}

// refuse returns the observation of a call that was not made and can never be
// made.
func (s *Source) refuse(code, why string) source.Observation {
	return source.Refuse(code, s.name+": "+why)
}

// tagged returns the observation of a call that would set or remove an action tag.
func (s *Source) tagged() source.Observation {
	return s.refuse(source.CodeRejected, "a label that requests an action is set and removed by the owner of the mailbox alone")
}

var _ source.Source = (*Source)(nil)
