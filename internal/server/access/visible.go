package access

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/search"
	"github.com/countersign-dev/countersign/internal/action/subscription"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/lookalike"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/known"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// SeesSession reports whether a caller may see a session's data. Agents see
// their own session; people see every session.
func SeesSession(by identity.Principal, session string) bool {
	return by.Role != identity.RoleAgent || by.Session != "" && session == by.Session
}

// Args returns arguments as a caller may see them: viewers get them redacted, as
// in the execution log. People who decide see the exact arguments, and agents see
// their own.
func Args(by identity.Principal, args json.RawMessage) json.RawMessage {
	if by.Role != identity.RoleViewer || len(args) == 0 {
		return args
	}
	return redact.JSON(args)
}

// ArgsOf is Args of an action. If they are text of mail, only people who may read
// mail see them.
func ArgsOf(by identity.Principal, externalID string, args json.RawMessage) json.RawMessage {
	if !ReadsMail(by) {
		args = redact.Mail(externalID, args)
	}
	return Args(by, args)
}

// ReadsMail reports whether a caller may read senders, subjects and texts of mail:
// a person with the scope, whose token covers all tools, since mail belongs to
// none.
func ReadsMail(by identity.Principal) bool {
	switch by.Role {
	case identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner:
		return by.Tools == nil && by.Has(identity.MailRead)
	case identity.RoleAgent, identity.RoleViewer:
	}
	return false
}

// SeesContacts reports whether a caller may read the addresses in any action: a person
// who gets arguments without redaction, whose token covers all tools.
func SeesContacts(by identity.Principal) bool {
	switch by.Role {
	case identity.RoleOperator, identity.RoleAdmin, identity.RoleOwner:
		return by.Tools == nil && by.Has(identity.ActionsRead)
	case identity.RoleAgent, identity.RoleViewer:
	}
	return false
}

// maxLookalikes bounds the look-alikes of an action.
const maxLookalikes = 100

// Lookalikes returns marks as a caller may see them: without the known name for whom may
// not read contacts, and none for agents, who could find contacts by proposing names that
// resemble them.
func Lookalikes(by identity.Principal, marks []lookalike.Mark) []wire.Lookalike {
	if by.Role == identity.RoleAgent {
		return nil
	}
	var shown []wire.Lookalike
	all := SeesContacts(by)
	for _, m := range marks[:min(len(marks), maxLookalikes)] {
		w := wire.Lookalike{Pointer: m.Name.Pointer, Value: m.Value(), Kind: string(m.Kind), Text: m.Text(all)}
		if all || m.Public {
			w.Like = m.Like
		}
		shown = append(shown, w)
	}
	return shown
}

// Warning returns the first look-alikes of well-known names in arguments, in a line:
// anybody who reads the arguments may read it.
func Warning(args json.RawMessage) string { return lookalike.Warning(args, 3) }

// MarkLookalikes sets the look-alikes of actions, from the arguments that they show. It
// makes one query, by inTx, if these have names.
func MarkLookalikes(inTx func(func(ctx context.Context, tx pgx.Tx) error) error, by identity.Principal, snap *settings.Settings, rows []wire.Action) error {
	if by.Role == identity.RoleAgent {
		return nil
	}
	calls, named := make([][]lookalike.Name, len(rows)), false
	for i := range rows {
		calls[i] = lookalike.Names(rows[i].Envelope.Args)
		named = named || len(calls[i]) > 0
	}
	if !named {
		return nil
	}
	return inTx(func(ctx context.Context, tx pgx.Tx) error {
		marks, err := known.Marks(ctx, tx, by.Tenant, snap.Sources(), calls)
		for i := range marks {
			rows[i].Lookalikes = Lookalikes(by, marks[i])
		}
		return err
	})
}

// Lists returns which tools a caller may list.
func Lists(by identity.Principal) settings.Listing {
	switch {
	case !by.Has(identity.CatalogRead):
		return settings.ListsNone
	case by.Role == identity.RoleAgent:
		return settings.ListsUsable
	}
	return settings.ListsAll
}

// Submitter returns the caller as an intake.Submitter.
func Submitter(by identity.Principal) intake.Submitter {
	sight := intake.SeesOwn
	switch {
	case by.Role == identity.RoleAgent:
		sight = intake.SeesSession
	case by.Has(identity.ActionsRead):
		sight = intake.SeesAll
	}
	return intake.Submitter{
		Tenant: by.Tenant, Token: uuid.UUID(by.Token), Person: by.Person(), Operator: by.Operator, Name: by.Name, Employee: by.Employee,
		Session: by.Session, Tools: by.Tools, Names: by.MayName(), Lists: Lists(by), Sight: sight,
	}
}

// SessionFilter returns the session to list for a caller who asked for a
// session, or for all with "". visible is false if the caller may not see that
// session.
func SessionFilter(by identity.Principal, asked string) (session string, visible bool) {
	if asked == "" && by.Role == identity.RoleAgent {
		asked = by.Session
	}
	return asked, SeesSession(by, asked)
}

// View reads an action that a caller may see. Otherwise the error is
// fault.NotFound, as for an action that does not exist.
func View(ctx context.Context, tx pgx.Tx, by identity.Principal, id envelope.ActionID) (outbox.View, error) {
	views, err := outbox.Get(ctx, tx, by.Tenant, id)
	if err != nil {
		return outbox.View{}, err
	}
	if len(views) == 0 {
		return outbox.View{}, errNoAction(id)
	}
	return visible(by, views[0])
}

// Read is View in a transaction that it may share with other reads.
func Read(ctx context.Context, actions *outbox.Reader, by identity.Principal, id envelope.ActionID) (outbox.View, error) {
	v, found, err := actions.Get(ctx, by.Tenant, id)
	if err == nil && !found {
		err = errNoAction(id)
	}
	if err != nil {
		return outbox.View{}, err
	}
	return visible(by, v)
}

// visible returns a view that a caller may see.
func visible(by identity.Principal, v outbox.View) (outbox.View, error) {
	if !SeesSession(by, v.Envelope.SessionID) {
		return outbox.View{}, errNoAction(v.Envelope.ActionID)
	}
	return v, nil
}

func errNoAction(id envelope.ActionID) error {
	return fault.New(fault.NotFound, "no action %s", id)
}

// Views reads the actions among ids that a caller may see.
func Views(ctx context.Context, tx pgx.Tx, by identity.Principal, ids ...envelope.ActionID) ([]outbox.View, error) {
	if len(ids) == 0 || !by.Has(identity.ActionsRead) {
		return nil, nil
	}
	views, err := outbox.Get(ctx, tx, by.Tenant, ids...)
	return slices.DeleteFunc(views, func(v outbox.View) bool { return !SeesSession(by, v.Envelope.SessionID) }), err
}

// Subject is the part of an action that a Filter needs.
type Subject struct {
	Session string
	Tool    policy.Key
}

// Filter selects the actions whose events a caller receives: those that the
// caller may see and asked for.
type Filter struct {
	by identity.Principal
	// Session restricts it to the actions of a session; "" is every session.
	Session string
	// tools are sets of patterns. In each set one pattern must cover the tool.
	tools [][]policy.Key
}

// NewFilter returns the filter of all actions whose events a caller may see:
// agents see those of their own session, and a token narrowed to tools those of
// its tools.
func NewFilter(by identity.Principal) (*Filter, error) {
	f := &Filter{by: by}
	if by.Tools == nil {
		return f, nil
	}
	return f, f.Tools(by.Tools...)
}

// Tools restricts the filter to actions whose tool matches one of the
// patterns.
func (f *Filter) Tools(texts ...string) error {
	patterns := make([]policy.Key, len(texts))
	for i, text := range texts {
		var err error
		if patterns[i], err = policy.ParsePattern(text); err != nil {
			return fault.Wrap(err, fault.Denied, "the token's tools cannot be read; make another token")
		}
	}
	f.tools = append(f.tools, patterns)
	return nil
}

// PassesAll reports whether every action passes, so that subjects need not be
// read.
func (f *Filter) PassesAll() bool {
	return f.by.Role != identity.RoleAgent && f.Session == "" && len(f.tools) == 0
}

// Passes reports whether an action passes.
func (f *Filter) Passes(of Subject) bool {
	if !SeesSession(f.by, of.Session) || f.Session != "" && of.Session != f.Session {
		return false
	}
	for _, patterns := range f.tools {
		if !slices.ContainsFunc(patterns, func(p policy.Key) bool { return subscription.Matches(p, of.Tool) }) {
			return false
		}
	}
	return true
}

// Words returns the words of the filter q of a list; nil without one. Agents have none:
// actions that they may not see would change their pages.
func Words(by identity.Principal, q string) (search.Words, error) {
	switch words := search.Parse(q); {
	case q == "":
		return nil, nil
	case by.Role == identity.RoleAgent:
		return nil, fault.Coded(wire.CodeRole, fault.Denied, "the filter q needs the role viewer")
	case words == nil:
		return nil, check.Invalid("/query/q", envelope.RuleFormat, "must have a letter or a digit")
	default:
		return words, nil
	}
}
