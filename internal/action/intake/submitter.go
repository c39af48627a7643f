package intake

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Submitter is the proposer.
type Submitter struct {
	Tenant envelope.TenantID
	// Token identifies the submitter, so that nobody approves their own proposal;
	// the zero UUID is the system itself.
	Token uuid.UUID
	// Person is the person behind the token, the same for all their tokens: none of
	// their grants covers the proposals. Zero means unknown; the token then stands for
	// the person.
	Person uuid.UUID
	// Operator is the person in the audit log; zero if unknown.
	Operator uuid.UUID
	// Name is the token's name, or Countersign's own in this role.
	Name string
	// Employee and Session, if set, bind the submitter: proposals get them,
	// and may not name others.
	Employee envelope.EmployeeID
	Session  string
	// Names are the automations, employees and sessions that its proposals may
	// name, in addition to Employee and where Session is not set.
	Names identity.Names
	// Tools are the patterns of the tools that there are for the submitter; nil is
	// all.
	Tools []string
	// Lists is which tools the submitter may list: errors suggest these for unknown
	// names.
	Lists settings.Listing
	// Sight limits the proposals of others that the submitter sees. Bindings are the
	// tokens under which it proposed before: a database login gets a new one each
	// time it is bound.
	Sight    Sight
	Bindings []uuid.UUID
	// Origin is the request that the proposals came with, as a JSON object;
	// nil if it was not recorded.
	Origin json.RawMessage
	// Workflow is the workflow that the proposals are steps of; zero for none.
	Workflow uuid.UUID
	// IDs are the ids of new actions, in order of the proposals; nil generates
	// them. Unlike an id in a proposal they do not identify it.
	IDs []envelope.ActionID
	// Plan is of the only proposal, as a dry run found it; nil if none is
	// presented. A change since then rejects the proposal.
	Plan *Plan
	// Base, if set, names the only proposal: its external id is Base and twelve digits,
	// which are those of the latest such envelope until it ends.
	Base string
	// Awaited reports whether the request that makes the proposals stays open until
	// the actions end. Those that may run then pass the other rows of their bucket.
	// The caller must call outbox.EndWait for actions that have not ended when it
	// stops waiting.
	Awaited bool
	// Reserved reports whether Countersign itself writes the proposals, perhaps on
	// behalf of another submitter. They may name any employee and session,
	// automations that begin with reservedPrefix, and reserved envelope names.
	Reserved bool
}

// Proposer returns who is behind the token, or the token if that is not known.
func (by Submitter) Proposer() uuid.UUID {
	return cmp.Or(by.Person, by.Token)
}

// Actor returns the submitter as the record names it.
func (by *Submitter) Actor() envelope.Actor {
	return envelope.NewActor(by.Name, by.Token, by.Operator)
}

// Sight is the part of the tenant's actions that a submitter sees.
type Sight int

const (
	// SeesOwn is the submitter's own proposals.
	SeesOwn Sight = iota
	// SeesSession also shows the proposals of others in the submitter's session.
	SeesSession
	// SeesAll is everything of the tenant.
	SeesAll
)

// Sees reports whether the submitter sees the proposals of a token in a session.
func (by *Submitter) Sees(token uuid.UUID, session string) bool {
	return by.Reserved || by.Workflow != uuid.Nil || by.Sight == SeesAll || token == by.Token || slices.Contains(by.Bindings, token) ||
		by.Sight == SeesSession && by.Session != "" && session == by.Session
}

// Suggest returns a Suggester of the tools that the submitter may list.
func (by *Submitter) Suggest(snap *settings.Settings, now time.Time) *settings.Suggester {
	return snap.Suggest(settings.Viewer{Employee: by.Employee, Session: by.Session, Tools: by.Tools, Lists: by.Lists, Now: now})
}

// ErrTaken returns the error for a name of something that the submitter does not see. It
// is the same for everything unseen.
func ErrTaken() error {
	return fault.Coded(wire.CodeExternalIDTaken, fault.Conflict, "this external_id or action_id is already in use; choose another one")
}
