package identity

import (
	"slices"

	"github.com/countersign-dev/countersign/internal/fault"
)

// Scope is a right of the API that a token can be narrowed to. It never gives
// what the holder's role does not: a route asks for both.
type Scope string

// The scopes. A new route takes the one that fits; a new one is added only for
// a right that is useful on its own.
const (
	// ActionsPropose submits actions, and takes back those of one's own.
	ActionsPropose Scope = "actions:propose"
	// ActionsRead sees actions, what became of them, and events.
	ActionsRead Scope = "actions:read"
	// ApprovalsDecide approves, denies and edits what waits for a person.
	ApprovalsDecide Scope = "approvals:decide"
	// DeadLettersRead sees dead letters.
	DeadLettersRead Scope = "dead_letters:read"
	// DeadLettersManage replays, discards and resolves them.
	DeadLettersManage Scope = "dead_letters:manage"
	// CatalogRead sees sources and tools.
	CatalogRead Scope = "catalog:read"
	// CatalogWrite sets sources and tools up, and accepts definitions.
	CatalogWrite Scope = "catalog:write"
	// PolicyRead sees modes, rules, grants and preferences, and asks why.
	PolicyRead Scope = "policy:read"
	// PolicyWrite changes them.
	PolicyWrite Scope = "policy:write"
	// LimitsRead sees buckets, quiet hours, employees, pauses and settings.
	LimitsRead Scope = "limits:read"
	// LimitsWrite changes them, except pauses.
	LimitsWrite Scope = "limits:write"
	// PausesWrite stops the fleet, in part or whole, and lets it go on.
	PausesWrite Scope = "pauses:write"
	// ContactsRead sees who must not be contacted.
	ContactsRead Scope = "contacts:read"
	// ContactsWrite changes who must not be.
	ContactsWrite Scope = "contacts:write"
	// SubscriptionsRead sees the subscriptions to events.
	SubscriptionsRead Scope = "subscriptions:read"
	// SubscriptionsWrite sets subscriptions up.
	SubscriptionsWrite Scope = "subscriptions:write"
	// AuditRead reads and verifies the record of everything.
	AuditRead Scope = "audit:read"
	// AuditWrite says how long the record is kept.
	AuditWrite Scope = "audit:write"
	// TokensManage lists, makes, rotates and revokes tokens.
	TokensManage Scope = "tokens:manage"
	// OperatorsManage sets up people, and where they log in.
	OperatorsManage Scope = "operators:manage"
)

// Scopes returns all scopes, in the order of their names.
func Scopes() []Scope {
	return []Scope{
		ActionsPropose, ActionsRead, ApprovalsDecide, AuditRead, AuditWrite, CatalogRead, CatalogWrite,
		ContactsRead, ContactsWrite, DeadLettersManage, DeadLettersRead, LimitsRead, LimitsWrite, OperatorsManage,
		PausesWrite, PolicyRead, PolicyWrite, SubscriptionsRead, SubscriptionsWrite, TokensManage,
	}
}

// Valid reports whether s is one of the constants.
func (s Scope) Valid() bool { return slices.Contains(Scopes(), s) }

// Has reports whether a principal is not narrowed to other scopes than s. It says
// nothing about the role, which a route asks for as well.
func (p Principal) Has(s Scope) bool { return p.Scopes == nil || slices.Contains(p.Scopes, s) }

// checkScopes refuses scopes that are none, and a list that is empty: nobody
// could tell it from no list.
func checkScopes(all []Scope) error {
	if all != nil && len(all) == 0 {
		return fault.New(fault.Invalid, "scopes name at least one right; leave them out for all that the role may")
	}
	for i, s := range all {
		if !s.Valid() {
			return fault.New(fault.Invalid, "scope %d is none that there is", i+1)
		}
		if slices.Contains(all[:i], s) {
			return fault.New(fault.Invalid, "scope %d is named twice", i+1)
		}
	}
	return nil
}
