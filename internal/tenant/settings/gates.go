package settings

import (
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/preflight"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Gated is an action as the preflight gates see it.
type Gated struct {
	Tool     policy.Key
	Employee envelope.EmployeeID
	// Bucket is the name of its rate bucket.
	Bucket string
	// Urgent reports whether the agent asks to send during quiet hours.
	Urgent                   bool
	MustRunBefore, CreatedAt time.Time
	Contacts                 []preflight.Contact
	Listed                   preflight.Match
}

// Gates returns what the tenant's limits say about an action at a time, for
// the gates to check. It is the same for a preview and just before sending;
// open breakers are the caller's to add.
func (s *Settings) Gates(a Gated, now time.Time) preflight.Facts {
	f := preflight.Facts{
		Now: now, MustRunBefore: a.MustRunBefore, DoNotContact: a.Listed,
		Quiet: s.Limits.Quiet(a.Employee, a.Bucket, a.Contacts, now),
	}
	if len(f.Quiet) > 0 && a.Urgent {
		e, known := s.Limits.Employee(a.Employee)
		f.UrgentAsked, f.UrgentAllowed = true, known && len(preflight.Granted(e.Scopes, []string{string(preflight.ScopeQuietOverride)})) == 0
	}
	if pause, ok := s.Limits.Paused(a.Employee, a.Tool); ok {
		f.Pause = preflight.Pause{
			Scope: string(pause.Scope), Since: pause.At,
			Kill: pause.Kill && pause.KilledAt != nil && !a.CreatedAt.After(*pause.KilledAt),
		}
	}
	return f
}
