// Package decision decides about sets of actions: it reads what the tenant's
// settings do not hold, the do-not-contact entries, asks policy, and stores the
// answers. Intake, approval, workflows and the worker all decide through it, so
// that no two of them ask policy in different ways. It has no rules of its own,
// and does not change actions.
package decision

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// MaxRecipientBytes bounds the text at the recipient pointers of one call, in
// bytes. Parsing addresses takes time, and an agent chooses the text.
const MaxRecipientBytes = 32 << 10

// Action is what is known of an action, or of a proposal, that is decided about.
type Action struct {
	// Settings are those of its tenant.
	Settings *settings.Settings
	// Tool is nil if its source does not have the tool any more; nothing can be
	// decided then.
	Tool *catalog.Tool
	settings.Proposal
	// Contacts are the recipients, and Match is the do-not-contact entry of one
	// of them. FindRecipients sets both, and Listed.
	Contacts []contact.Contact
	Match    contact.Match
}

// Decide returns the decisions about proposals, in their order. It costs one
// statement if a tenant has a do-not-contact list, and none otherwise.
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

// Decide returns the decision about a proposal whose recipients were found.
func (a *Action) Decide() policy.Decision { return a.Settings.Decide(a.Tool, a.Proposal) }

// Recheck returns the decision about an action that was accepted. It leaves out
// what applies to the proposal alone: that the agent asked for a person (a person
// has decided), the token's tools, and the do-not-contact list, which a check
// just before the call reads anew and answers with its own reason.
func (a *Action) Recheck() policy.Decision {
	p := a.Proposal
	p.AskedApproval, p.Listed, p.Tools = false, false, nil
	return a.Settings.Decide(a.Tool, p)
}

// FindRecipients sets the recipients of actions, and the do-not-contact entries
// that they match. It reads all lists by one statement, and by none if no tenant
// has limits that depend on recipients. An action with more recipients than can
// be checked counts as listed.
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
