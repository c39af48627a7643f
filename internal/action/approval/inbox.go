package approval

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/action/search"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/lookalike"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/headline"
	"github.com/countersign-dev/countersign/internal/tenant/known"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/visible"
)

// InboxKind is the reason why an item is in the inbox.
type InboxKind string

// The kinds.
const (
	// InboxApproval is an action to approve or deny; InboxQuestion one of triage about
	// a message that it is unsure of, and InboxReview a text that triage wrote for
	// its owner.
	InboxApproval InboxKind = "approval"
	InboxQuestion InboxKind = "question"
	InboxReview   InboxKind = "review"
	// InboxUnknown is an action with an unknown outcome to resolve.
	InboxUnknown InboxKind = "unknown"
	// InboxCompensation is a completed step of a workflow whose reversal failed.
	InboxCompensation InboxKind = "compensation"
	// InboxNotify is an action of triage that ran without a person, and that nobody
	// has acknowledged for a week at most. Nothing waits for it, so that only who asks
	// for the kind gets it.
	InboxNotify InboxKind = "notify"
)

// decided are the kinds of actions to approve or deny.
func decided() []InboxKind { return []InboxKind{InboxApproval, InboxQuestion, InboxReview} }

// Decided reports whether items of the kind are approved or denied.
func (k InboxKind) Decided() bool { return slices.Contains(decided(), k) }

// InboxItem is something that waits for a person.
type InboxItem struct {
	Kind   InboxKind
	Action envelope.ActionID
	// Triage reports whether the external id is one of triage.
	Triage   bool
	external string
	Tool     policy.Key
	// Args are as InboxQuery.Show returned them. Of a summary they are nil, and
	// Preview is the beginning of their text, Cut whether that is not all.
	Args       json.RawMessage
	Preview    string
	Cut        bool
	Risk       envelope.Risk
	Session    string
	Automation string
	Employee   envelope.EmployeeID
	// ProposedBy is the proposer; empty for Countersign itself.
	ProposedBy envelope.Actor
	person     uuid.UUID
	// Title is the tool's own.
	Title  string
	Effect envelope.Effect
	// Recipients are the recipients in the shown arguments, by the tool's
	// pointers. RecipientsCut reports whether there are more.
	Recipients    []string
	RecipientsCut bool
	// Headline is one line about the shown arguments.
	Headline string
	// Lookalikes are the names in the shown arguments that may be taken for others.
	Lookalikes []lookalike.Mark
	names      []lookalike.Name
	// Bucket is the rate bucket that it goes through.
	Bucket string
	// MustRunBefore is the deadline in the proposal; zero if none.
	MustRunBefore time.Time
	// Refused is the code of the problem that approving would answer the caller
	// with; empty where the approval would count.
	Refused wire.ProblemCode
	// Since is the time of the proposal or, for an unknown outcome, of its end.
	Since time.Time
	// ExpiresAt is the end of the time to decide, or zero.
	ExpiresAt time.Time
	// Needed and Given count the people who must agree, and do, ApprovedBy
	// names those.
	Needed, Given int
	ApprovedBy    []envelope.Actor
	EditedBy      envelope.Actor
	// Escalated reports whether the item has waited long enough to be escalated.
	Escalated bool
	// Policy names the rule that required approval. Note is the note of its return
	// from the schedule.
	Policy, Note string
	// Drift is the problem of the tool's definition; empty if none.
	Drift string
	// ETag is the version to decide about; empty if there is nothing to decide.
	ETag string
	// Code and Message are the reason of the unknown outcome or the failed
	// reversal.
	Code, Message string
	// Workflow is the workflow of a step that could not be reverted.
	Workflow uuid.UUID
	// Reversible reports whether nothing stays of it, or there is a way to revert
	// it, as its tool is in the catalog now.
	Reversible bool
}

// The words of InboxItem.Drift.
const (
	driftGone     = "its source no longer has the tool: it cannot be approved"
	driftSince    = "the tool's definition, or the address of its source, changed since this was proposed: it cannot be approved, and must be proposed again"
	driftAccepted = "the tool's definition, or the address of its source, is not the accepted one"
)

// InboxOrder is the order of the items of the inbox; InboxPlace is a place in it.
type InboxOrder string

// The orders. Items that do not expire come last; ties are ordered by age,
// oldest first.
const (
	InboxOldest InboxOrder = "oldest"
	InboxNewest InboxOrder = "newest"
	InboxExpiry InboxOrder = "expiry"
	InboxRisk   InboxOrder = "risk"
	// InboxSession and InboxTool are groups, in the order of the bytes of their
	// names. Items without a session are last.
	InboxSession InboxOrder = "session"
	InboxTool    InboxOrder = "tool"
)

// InboxFilter narrows the inbox; its zero fields do not.
type InboxFilter struct {
	Kinds []InboxKind
	// Tool is the name at its source.
	Source, Tool, Session, Automation string
	// Person is who proposed, or the token of nobody; zero selects everybody.
	Person uuid.UUID
	// Cohort selects actions of triage about messages of a cohort.
	Cohort    string
	Risks     []envelope.Risk
	Escalated *bool
	// Words selects items that have them all.
	Words search.Words
	// ExpiresBefore selects items that expire before it.
	ExpiresBefore time.Time
}

// InboxPlace is the place of an item in every order. It stays where it is as long
// as the item waits.
type InboxPlace struct {
	Action envelope.ActionID
	// ExpiresAt is zero where the item does not expire.
	ExpiresAt time.Time
	Risk      envelope.Risk
	Session   string
	Tool      policy.Key
}

// Place returns the item's place.
func (it *InboxItem) Place() InboxPlace {
	return InboxPlace{Action: it.Action, ExpiresAt: it.ExpiresAt, Risk: it.Risk, Session: it.Session, Tool: it.Tool}
}

// compare returns the order of two places, negative where p comes first.
func (p InboxPlace) compare(other InboxPlace, order InboxOrder) int {
	byAge := bytes.Compare(p.Action[:], other.Action[:])
	switch order {
	case InboxOldest:
	case InboxNewest:
		return -byAge
	case InboxExpiry:
		return cmp.Or(expiryOf(p).Compare(expiryOf(other)), byAge)
	case InboxRisk:
		return cmp.Or(cmp.Compare(riskRank(p.Risk), riskRank(other.Risk)), byAge)
	case InboxSession:
		if p.Session == "" || other.Session == "" {
			return cmp.Or(-strings.Compare(p.Session, other.Session), byAge)
		}
		return cmp.Or(strings.Compare(p.Session, other.Session), byAge)
	case InboxTool:
		return cmp.Or(strings.Compare(p.Tool.Source, other.Tool.Source), strings.Compare(p.Tool.Action, other.Tool.Action), byAge)
	}
	return byAge
}

// expiryOf returns when an item expires, as the query InboxItems orders by it.
func expiryOf(p InboxPlace) time.Time {
	if p.ExpiresAt.IsZero() {
		return time.Date(9999, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	return p.ExpiresAt
}

// riskRank returns the rank of a risk, as the query InboxItems orders by it.
func riskRank(r envelope.Risk) int32 {
	return int32(policy.RiskRank(envelope.RiskHigh) - policy.RiskRank(r) + 1) // 1 to 3
}

// InboxQuery selects a part of the inbox.
type InboxQuery struct {
	InboxFilter
	// Order is InboxOldest if it is empty.
	Order InboxOrder
	// After is the place of the last item of the part before; nil begins.
	After *InboxPlace
	Most  int
	// Show returns the arguments of an action as the caller may see them; nil shows
	// all.
	Show func(externalID string, args json.RawMessage) json.RawMessage
	// Preview, if it is not zero, is the number of bytes shown of the arguments in place of
	// all of them.
	Preview int
}

// readAtOnce bounds the items whose arguments are in memory together.
const readAtOnce = 50

// Inbox returns the actions that wait for a person, with the caller's choices: at
// most so much, behind a place, in an order.
func (d *Service) Inbox(ctx context.Context, by Decider, q InboxQuery) ([]InboxItem, error) {
	var all []InboxItem
	err := postgres.InTx(ctx, d.db, postgres.API(by.Tenant).Snapshot(), func(tx pgx.Tx) error {
		snap, err := d.catalog.Current(ctx, tx, by.Tenant)
		if err != nil {
			return err
		}
		if all, err = inboxItems(ctx, tx, by.Tenant, q); err != nil {
			return err
		}
		for part := range slices.Chunk(all, readAtOnce) {
			if err := fill(ctx, tx, by, snap, q, part); err != nil {
				return err
			}
		}
		calls := make([][]lookalike.Name, len(all))
		for i := range all {
			calls[i] = all[i].names
		}
		marks, err := known.Marks(ctx, tx, by.Tenant, snap.Sources(), calls)
		for i, m := range marks {
			all[i].Lookalikes = m
		}
		return err
	})
	return all, err
}

// fill sets the fields of items other than their positions.
func fill(ctx context.Context, tx pgx.Tx, by Decider, snap *settings.Settings, q InboxQuery, part []InboxItem) error {
	ids := make([]envelope.ActionID, len(part))
	for i, it := range part {
		ids[i] = it.Action
	}
	items, err := readUnlocked(ctx, tx, by, ids)
	if err != nil {
		return err
	}
	s := &decisionTx{tx: tx, by: by, settings: snap, items: items}
	s.resolveTools()
	if err := s.decideAll(ctx); err != nil {
		return err
	}
	if err := addDetails(ctx, tx, by, snap, part); err != nil {
		return err
	}
	for i := range part {
		if m, ok := items[part[i].Action]; ok {
			part[i].show(m, by, q)
		}
	}
	return nil
}

// show sets the parts of an action that an item shows.
func (it *InboxItem) show(m *item, by Decider, q InboxQuery) {
	it.Risk, it.Session, it.Automation, it.Employee = m.Risk, m.Session, m.Automation, m.Employee
	it.Reversible = m.Tool != nil && m.Tool.Reversible()
	if it.Kind.Decided() {
		it.Needed, it.Given = m.needed, m.given
		it.Drift = m.drift()
		it.ETag = etag(m.Args, m.toolDigest, m.decided, m.number)
		it.Refused = m.refused(by)
	}
	args := m.Args
	if q.Show != nil {
		args = q.Show(it.external, args)
	}
	it.names = lookalike.Names(args)
	if m.Tool == nil {
		it.Headline = headline.Of(args, nil, nil)
	} else {
		it.Title, it.Headline = m.Tool.Title, m.Tool.Headline(args)
		it.Recipients, it.RecipientsCut = recipients(contact.Find(args, m.Tool.Recipients), q.Preview)
	}
	if it.Args = args; q.Preview > 0 {
		it.Preview, it.Cut = visible.Cut(string(args), q.Preview)
		it.Args = nil
	}
}

// refused returns the code with which an approval by the decider would fail;
// empty if it would succeed.
func (m *item) refused(by Decider) wire.ProblemCode {
	err := m.checkDecider(by)
	if err == nil {
		_, err = m.vote(by)
	}
	if e, ok := errors.AsType[*fault.Error](err); ok {
		return wire.ProblemCode(e.Code)
	}
	return ""
}

// recipients returns the first of some recipients: as many bytes as a check of
// them reads, or as a preview shows.
func recipients(found []string, preview int) (first []string, cut bool) {
	left := cmp.Or(preview, decision.MaxRecipientBytes)
	for i, r := range found {
		if left -= len(r); left < 0 {
			return found[:i], true
		}
	}
	return found, false
}

// drift returns the problem of the tool's definition; empty if none.
func (m *item) drift() string {
	switch {
	case m.Tool == nil:
		return driftGone
	case !m.Tool.Is(m.toolDigest):
		return driftSince
	case m.Tool.Drifted():
		return driftAccepted
	}
	return ""
}
