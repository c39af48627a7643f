package preflight

import (
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Action is what the checks look at in an action.
type Action struct {
	Tool     policy.Key
	Employee envelope.EmployeeID
	// Bucket is the name of its rate bucket.
	Bucket string
	// Urgent reports whether the agent asks to send during quiet hours.
	Urgent                   bool
	MustRunBefore, CreatedAt time.Time
	Contacts                 []contact.Contact
	Listed                   contact.Match
}

// FactsOf returns what a tenant's limits say about an action at a time. It is
// the same for a preview and just before sending; open breakers are the caller's
// to add.
func FactsOf(set *limits.Set, a Action, now time.Time) Facts {
	f := Facts{
		Now: now, MustRunBefore: a.MustRunBefore, DoNotContact: a.Listed,
		Quiet: set.Quiet(a.Employee, a.Bucket, a.Contacts, now),
	}
	if len(f.Quiet) > 0 && a.Urgent {
		e, known := set.Employee(a.Employee)
		f.UrgentAsked, f.UrgentAllowed = true, known && len(policy.MissingScopes(e.Scopes, []string{string(policy.ScopeQuietOverride)})) == 0
	}
	if pause, ok := set.Paused(a.Employee, a.Tool); ok {
		f.Pause = Pause{
			Scope: string(pause.Scope), Since: pause.At,
			Kill: pause.Kill && pause.KilledAt != nil && !a.CreatedAt.After(*pause.KilledAt),
		}
	}
	return f
}
