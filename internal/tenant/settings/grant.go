package settings

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Bounds of grants.
const (
	// DefaultGrant is the default duration of a grant.
	DefaultGrant = 8 * time.Hour
	// MaxGrant is the maximum duration of a grant.
	MaxGrant = 90 * 24 * time.Hour
	// MaxGrants bounds the active grants of a tenant.
	MaxGrants = 1000
)

// Grant allows calls of one tool in advance. It turns require_approval into
// allow, but never changes deny.
type Grant struct {
	ID uuid.UUID `json:"grant_id"`
	// Tool is the granted tool, and Digest the binding of the tool that the
	// person saw: the grant does not apply to another one.
	Tool   policy.Key `json:"tool"`
	Digest []byte     `json:"digest"`
	// Employee, Session and Automation restrict it to their proposals; empty
	// means any.
	Employee   envelope.EmployeeID `json:"employee_id,omitzero"`
	Session    string              `json:"session_id,omitzero"`
	Automation string              `json:"automation_id,omitzero"`
	// Pins are JSON Pointers into the arguments with required values, and Loose
	// the pointers to members that may differ or be absent, as policy.Exactly
	// returns them.
	Pins   map[string]json.RawMessage `json:"pins"`
	Loose  []string                   `json:"loose"`
	Reason string                     `json:"reason"`
	// From is the action whose approval created the grant; zero if none.
	From envelope.ActionID `json:"from_action,omitzero"`
	// By is the author, and Person the person behind the token, or the token;
	// zero if unknown. The grant does not cover that person's own proposals.
	By     envelope.Actor `json:"created_by"`
	Person uuid.UUID      `json:"-"`
	// For is the duration of a new grant; zero means DefaultGrant. Stored grants
	// have ExpiresAt instead.
	For time.Duration `json:"-"`

	// The fields below are set by the database; RevokedAt and RevokedBy only for
	// a revoked grant.
	CreatedAt time.Time      `json:"created_at"`
	ExpiresAt time.Time      `json:"expires_at"`
	RevokedAt *time.Time     `json:"revoked_at,omitzero"`
	RevokedBy envelope.Actor `json:"revoked_by,omitzero"`
	Version   int64          `json:"version"`
}

// Check returns an error if the grant is invalid.
func (g Grant) Check() error {
	if _, err := policy.ParseKey(g.Tool.String()); err != nil {
		return err
	}
	if len(g.Digest) == 0 {
		return fault.New(fault.Invalid, "a grant must name the definition of its tool")
	}
	if g.For < 0 || g.For > MaxGrant || g.For > 0 && g.For < time.Second {
		return fault.New(fault.Invalid, "a grant must last 1 second to 90 days")
	}
	if len([]rune(g.Reason)) > maxReason {
		return fault.New(fault.Invalid, "a reason must have at most %d characters", maxReason)
	}
	_, err := policy.ParsePins(g.Pins, g.Loose)
	return err
}

// maxReason is the maximum length of a reason, in characters.
const maxReason = 500

// Wide reports whether the grant exceeds the rights of an approver: similar
// calls of one session, with at least one pinned argument.
func (g Grant) Wide() bool {
	pins, err := policy.ParsePins(g.Pins, g.Loose)
	return err != nil || g.Session == "" || pins.Empty()
}

// liveGrant is a grant with parsed pins.
type liveGrant struct {
	Grant
	pins policy.Pins
}

// compileGrants groups grants by their tool, ordered by id. A grant with invalid
// pins allows nothing.
func compileGrants(grants []Grant) map[policy.Key][]liveGrant {
	var compiled map[policy.Key][]liveGrant
	for _, g := range grants {
		pins, err := policy.ParsePins(g.Pins, g.Loose)
		if err != nil {
			continue
		}
		if compiled == nil {
			compiled = make(map[policy.Key][]liveGrant)
		}
		compiled[g.Tool] = append(compiled[g.Tool], liveGrant{g, pins})
	}
	for _, group := range compiled {
		slices.SortFunc(group, func(a, b liveGrant) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	}
	return compiled
}

// covers reports whether the grant covers a proposal.
func (g *liveGrant) covers(t *catalog.Tool, p *Proposal) bool {
	switch {
	case p.Now.IsZero() || !p.Now.Before(g.ExpiresAt):
	case g.Employee != (envelope.EmployeeID{}) && g.Employee != p.Employee:
	case g.Session != "" && g.Session != p.Session:
	case g.Automation != "" && g.Automation != p.Automation:
	case g.Person != uuid.Nil && g.Person == p.Person:
	case !t.Is(g.Digest):
	default:
		return g.pins.Hold(p.Args)
	}
	return false
}

// sessionRules are the modes of one session.
type sessionRules struct {
	all policy.Rules
	// rows are all modes, which are valid at least until first.
	rows  []SessionMode
	first time.Time
}

// compileSessions groups modes by their session.
func compileSessions(modes []SessionMode) map[string]sessionRules {
	if len(modes) == 0 {
		return nil
	}
	compiled := make(map[string]sessionRules)
	for _, m := range modes {
		s := compiled[m.Session]
		s.rows = append(s.rows, m)
		if s.first.IsZero() || m.ExpiresAt.Before(s.first) {
			s.first = m.ExpiresAt
		}
		compiled[m.Session] = s
	}
	for id, s := range compiled {
		s.all = compileSession(s.rows)
		compiled[id] = s
	}
	return compiled
}

func compileSession(modes []SessionMode) policy.Rules {
	rules := make([]policy.Rule, len(modes))
	for i, m := range modes {
		rules[i] = policy.Rule{Key: m.Pattern, Mode: string(m.Mode), Version: versionText(m.Version)}
	}
	return policy.Compile(rules)
}

// at returns the rules that have not expired.
func (s *sessionRules) at(now time.Time) policy.Rules {
	if now.Before(s.first) {
		return s.all
	}
	return compileSession(slices.DeleteFunc(slices.Clone(s.rows), func(m SessionMode) bool { return !now.Before(m.ExpiresAt) }))
}

// reserved reports whether an automation's rules are not stored as modes.
func reserved(automation string) bool { return strings.HasPrefix(automation, subscriptionPrefix) }
