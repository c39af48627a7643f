// Package decision decides about sets of actions: it reads the do-not-contact
// entries, which the tenant's settings do not contain, evaluates policy, and
// stores the decisions. Intake, approval, workflows and the worker all use it,
// so that policy is evaluated in one way. It has no rules of its own and does
// not change actions.
package decision

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Insert stores the new ones among the decisions of a tenant, under their ids.
func Insert(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, decisions ...policy.Decision) error {
	// A fixed order prevents deadlocks between transactions.
	decisions = slices.SortedFunc(slices.Values(decisions), func(a, b policy.Decision) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	p := &dbsqlc.DecisionInsertManyParams{TenantID: tenant}
	for i, d := range decisions {
		if i > 0 && d.ID == decisions[i-1].ID {
			continue
		}
		p.DecisionIds, p.Modes = append(p.DecisionIds, d.ID), append(p.Modes, string(d.Mode))
		p.ModeSources, p.Traces = append(p.ModeSources, d.Source), append(p.Traces, d.TraceJSON)
	}
	return dbsqlc.New().DecisionInsertMany(ctx, tx, p)
}

// maxCached is the number of decisions after which a Cache is emptied.
const maxCached = 100_000

// Cache holds the decisions that the database has already, so that a batch
// writes only new ones. The zero value is empty. It is safe for concurrent use.
type Cache struct {
	mu     sync.RWMutex
	stored map[cacheKey]bool
}

type cacheKey struct {
	tenant envelope.TenantID
	id     uuid.UUID
}

// Add adds decisions whose transaction was committed.
func (c *Cache) Add(tenant envelope.TenantID, decisions []policy.Decision) {
	if len(decisions) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stored == nil || len(c.stored) > maxCached {
		c.stored = make(map[cacheKey]bool)
	}
	for _, d := range decisions {
		c.stored[cacheKey{tenant, d.ID}] = true
	}
}

// Insert stores the decisions that the cache does not hold, and returns them for
// Add.
func (c *Cache) Insert(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, decisions []policy.Decision) ([]policy.Decision, error) {
	var missing []policy.Decision
	c.mu.RLock()
	for _, d := range decisions {
		if !c.stored[cacheKey{tenant, d.ID}] {
			missing = append(missing, d)
		}
	}
	c.mu.RUnlock()
	if len(missing) == 0 {
		return nil, nil
	}
	return missing, Insert(ctx, tx, tenant, missing...)
}

// MaxRecipientBytes bounds the text at the recipient pointers of one call, in
// bytes. Parsing addresses takes time, and an agent chooses the text.
const MaxRecipientBytes = 32 << 10

// Action is the input of a decision about an action or a proposal.
type Action struct {
	// Settings are the tenant's.
	Settings *settings.Settings
	// Tool is nil if its source no longer has the tool; no decision is possible
	// then.
	Tool *catalog.Tool
	settings.Proposal
	// Contacts are the recipients, and Match is the do-not-contact entry of one
	// of them. FindRecipients sets both, and Listed.
	Contacts []contact.Contact
	Match    contact.Match
}

// Decide returns the decisions about proposals, in order. It costs one
// statement if a tenant has a do-not-contact list, and none if no tenant has
// one.
func Decide(ctx context.Context, tx pgx.Tx, actions []*Action) ([]policy.Decision, error) {
	if err := findRecipients(ctx, tx, actions, (*limits.Set).HasDoNotContact); err != nil {
		return nil, err
	}
	decisions := make([]policy.Decision, len(actions))
	for i, a := range actions {
		decisions[i] = a.Decide()
	}
	return decisions, nil
}

// Decide returns the decision about a proposal. FindRecipients must have been
// called.
func (a *Action) Decide() policy.Decision { return a.Settings.Decide(a.Tool, a.Proposal) }

// Recheck returns the decision about an accepted action. It leaves out the checks
// for proposals alone: the agent's request for approval (a person has decided),
// the token's tools, and the do-not-contact list, which preflight reads again
// just before the call and reports with a code of its own.
func (a *Action) Recheck() policy.Decision {
	p := a.Proposal
	p.AskedApproval, p.Listed, p.Tools = false, false, nil
	return a.Settings.Decide(a.Tool, p)
}

// FindRecipients sets the recipients of actions and the do-not-contact entries
// that they match. It reads all lists in one statement, or in none if no
// tenant's limits depend on recipients. An action with too many recipients to
// check counts as listed.
func FindRecipients(ctx context.Context, tx pgx.Tx, actions []*Action) error {
	return findRecipients(ctx, tx, actions, (*limits.Set).NeedsRecipients)
}

func findRecipients(ctx context.Context, tx pgx.Tx, actions []*Action, needed func(*limits.Set) bool) error {
	var asks []contact.Ask
	var asked []*Action
	for _, a := range actions {
		a.Contacts, a.Match, a.Listed = nil, contact.Match{}, false
		if a.Tool == nil || !needed(a.Settings.Limits) {
			continue
		}
		listed := a.Settings.Limits.HasDoNotContact()
		if !a.parseRecipients() && listed {
			a.list(contact.Match{Kind: contact.Handle, Reason: "more recipients than can be checked"})
		}
		if len(a.Contacts) > 0 && listed {
			asks, asked = append(asks, contact.Ask{Tenant: a.Settings.Tenant, Contacts: a.Contacts}), append(asked, a)
		}
	}
	if len(asks) == 0 {
		return nil
	}
	matches, err := contact.Matches(ctx, tx, asks)
	if err != nil {
		return fmt.Errorf("do-not-contact: %w", err)
	}
	for _, m := range matches {
		asked[m.Ask].list(contact.Match{Kind: m.Kind, Reason: m.Reason})
	}
	return nil
}

func (a *Action) list(m contact.Match) { a.Match, a.Listed = m, true }

// parseRecipients sets the recipients by the tenant's address options. It
// reports false if there is more text at the recipient pointers than
// MaxRecipientBytes.
func (a *Action) parseRecipients() bool {
	found, size := contact.Find(a.Args, a.Tool.Recipients), 0
	for _, text := range found {
		size += len(text)
	}
	if size > MaxRecipientBytes {
		return false
	}
	a.Contacts = a.Settings.Limits.Contacts(found)
	return true
}
