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

// The bounds of grants.
const (
	// DefaultGrant is how long a grant holds that does not say.
	DefaultGrant = 8 * time.Hour
	// MaxGrant is the longest that one holds.
	MaxGrant = 90 * 24 * time.Hour
	// MaxGrants bounds the live grants of a tenant.
	MaxGrants = 1000
)

// Grant is an always-allow: calls of one tool that a person let through
// beforehand. It turns require_approval into allow, and never turns deny.
type Grant struct {
	ID uuid.UUID `json:"grant_id"`
	// Tool is the tool that may be called, and Digest the binding of the tool that
	// the person saw: with another one the grant does not hold.
	Tool   policy.Key `json:"tool"`
	Digest []byte     `json:"digest"`
	// Employee, Session and Automation narrow it to proposals of theirs; empty
	// is any.
	Employee   envelope.EmployeeID `json:"employee_id,omitzero"`
	Session    string              `json:"session_id,omitzero"`
	Automation string              `json:"automation_id,omitzero"`
	// Pins are JSON Pointers into the arguments with the values that must be
	// there, and Loose the pointers to members that may differ or be absent, as
	// policy.Exactly returns them.
	Pins   map[string]json.RawMessage `json:"pins"`
	Loose  []string                   `json:"loose"`
	Reason string                     `json:"reason"`
	// From is the action whose approval made it; zero for none.
	From envelope.ActionID `json:"from_action,omitzero"`
	// By is who made it, and Person the person behind the token, or the token. It
	// covers nothing that they propose. Person is zero if that is not known.
	By     envelope.Actor `json:"created_by"`
	Person uuid.UUID      `json:"-"`
	// For is how long a new grant holds; zero is DefaultGrant. Stored grants
	// have ExpiresAt instead.
	For time.Duration `json:"-"`

	// The database sets these: RevokedAt and RevokedBy of a revoked grant.
	CreatedAt time.Time      `json:"created_at"`
	ExpiresAt time.Time      `json:"expires_at"`
	RevokedAt *time.Time     `json:"revoked_at,omitzero"`
	RevokedBy envelope.Actor `json:"revoked_by,omitzero"`
	Version   int64          `json:"version"`
}

// Check returns why a grant cannot be made.
func (g Grant) Check() error {
	if _, err := policy.ParseKey(g.Tool.String()); err != nil {
		return err
	}
	if len(g.Digest) == 0 {
		return fault.New(fault.Invalid, "a grant names the definition of its tool")
	}
	if g.For < 0 || g.For > MaxGrant || g.For > 0 && g.For < time.Second {
		return fault.New(fault.Invalid, "a grant holds for 1 second to 90 days")
	}
	if len([]rune(g.Reason)) > maxReason {
		return fault.New(fault.Invalid, "a reason has at most %d characters", maxReason)
	}
	_, err := policy.ParsePins(g.Pins, g.Loose)
	return err
}

// maxReason bounds the reasons that people give, in characters.
const maxReason = 500

// Wide reports whether the grant lets more through than what a person approves
// where they may make it: similar calls of one session, with some argument
// held.
func (g Grant) Wide() bool {
	pins, err := policy.ParsePins(g.Pins, g.Loose)
	return err != nil || g.Session == "" || pins.Empty()
}

// liveGrant is a grant, ready to be held against proposals.
type liveGrant struct {
	Grant
	pins policy.Pins
}

// compileGrants groups grants by their tool, in order of their ids. One whose
// pins cannot be read lets nothing through.
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

// covers reports whether the grant lets a proposal through, as far as it is asked.
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
	// rows are those of all, which hold until first at least.
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
