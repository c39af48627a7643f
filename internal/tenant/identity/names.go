package identity

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// everyName is the pattern for all automations, employees or sessions.
const everyName = "*"

// maxPrefix is the maximum length of the prefix of external ids, in bytes.
const maxPrefix = 100

// Names are the automations, employees and sessions that proposals may name,
// since policy may allow more for some of them. The zero Names allow none.
type Names struct {
	// Automations are ids of automations; one that ends in * matches all with
	// that prefix.
	Automations []string
	// Employees are ids of employees, or * for all.
	Employees []string
	// Sessions are ids of sessions, with the same patterns as Automations. They
	// are for proposals of a token without a session of its own.
	Sessions []string
	// ExternalIDPrefix is the required prefix of external ids; empty means none.
	ExternalIDPrefix string `json:"external_id_prefix"`
}

// EveryName returns the names without restrictions.
func EveryName() Names {
	return Names{Automations: []string{everyName}, Employees: []string{everyName}, Sessions: []string{everyName}}
}

// MayName returns the names for the proposals of a principal: those of its
// token, and for a principal that may loosen policy also all of any kind that is
// not set.
func (p Principal) MayName() Names {
	names := p.Names
	if p.MayLoosen() {
		if names.Automations == nil {
			names.Automations = []string{everyName}
		}
		if names.Employees == nil {
			names.Employees = []string{everyName}
		}
		if names.Sessions == nil {
			names.Sessions = []string{everyName}
		}
	}
	return names
}

// CheckAutomation returns nil if a proposal may name an automation; "" means
// none. The error is fault.Denied at /automation_id.
func (n Names) CheckAutomation(id string) error {
	if id == "" || matchesAny(n.Automations, id) {
		return nil
	}
	return fault.At("/automation_id", "token", fault.Denied,
		"the token may not name this automation; leave automation_id out, or have a token made with it: token create --automation")
}

// CheckEmployee returns nil if a proposal may name an employee; the zero id
// means none. The error is fault.Denied at /employee_id.
func (n Names) CheckEmployee(id envelope.EmployeeID) error {
	if id == (envelope.EmployeeID{}) || len(n.Employees) > 0 && (slices.Contains(n.Employees, everyName) || slices.Contains(n.Employees, id.String())) {
		return nil
	}
	return fault.At("/employee_id", "token", fault.Denied,
		"the token may not name this employee; leave employee_id out, or have a token made with it: token create --employee")
}

// CheckSession returns nil if a proposal of a token without a session of its own
// may name a session; "" means none. The error is fault.Denied at /session_id.
func (n Names) CheckSession(id string) error {
	if id == "" || matchesAny(n.Sessions, id) {
		return nil
	}
	return fault.At("/session_id", "token", fault.Denied,
		"the token may not name this session; leave session_id out, or have a token made with it: token create --session")
}

// CheckExternalID returns nil if a proposal or a workflow may have an external
// id; "" means none. The error is fault.Denied at /external_id.
func (n Names) CheckExternalID(id string) error {
	if id == "" || strings.HasPrefix(id, n.ExternalIDPrefix) {
		return nil
	}
	return fault.At("/external_id", "token", fault.Denied, "external ids of this token begin with %q; add the prefix", n.ExternalIDPrefix)
}

// matchesAny reports whether one of the patterns matches an id, or covers
// another pattern.
func matchesAny(patterns []string, id string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, wild := strings.CutSuffix(pattern, everyName)
		return pattern == id || wild && strings.HasPrefix(id, prefix)
	})
}

// covers reports whether a principal that may name n may grant the names of
// another token.
func (n Names) covers(other Names) bool {
	return strings.HasPrefix(other.ExternalIDPrefix, n.ExternalIDPrefix) && !slices.ContainsFunc(other.Automations, func(want string) bool { return !matchesAny(n.Automations, want) }) &&
		!slices.ContainsFunc(other.Sessions, func(want string) bool { return !matchesAny(n.Sessions, want) }) &&
		!slices.ContainsFunc(other.Employees, func(want string) bool {
			return !slices.Contains(n.Employees, want) && !slices.Contains(n.Employees, everyName)
		})
}

// check rejects invalid patterns, and empty lists, which could be mistaken for
// no lists.
func (n Names) check() error {
	const most = 200
	for _, all := range [][]string{n.Automations, n.Employees, n.Sessions} {
		if all != nil && len(all) == 0 || len(all) > most {
			return fault.New(fault.Invalid, "automations, employees and sessions must be 1 to %d each; omit them for none", most)
		}
	}
	if p := n.ExternalIDPrefix; len(p) > maxPrefix || Plain(p, maxPrefix) != p {
		return fault.New(fault.Invalid, "a prefix of external ids must be 1 to %d bytes long, without invisible characters or spaces at its ends", maxPrefix)
	}
	if err := checkPatterns("automation", n.Automations); err != nil {
		return err
	}
	if err := checkPatterns("session", n.Sessions); err != nil {
		return err
	}
	for i, text := range n.Employees {
		var id envelope.EmployeeID
		if text != everyName && (id.UnmarshalText([]byte(text)) != nil || id.String() != text) {
			return fault.New(fault.Invalid, "employee %d is not a UUID in lower case, or * for all", i+1)
		}
	}
	return nil
}

func checkPatterns(what string, patterns []string) error {
	const maxBytes = 200
	for i, text := range patterns {
		id := strings.TrimSuffix(text, everyName)
		if text == "" || len(text) > maxBytes || strings.Contains(id, everyName) || Plain(text, maxBytes) != text {
			return fault.New(fault.Invalid, "%s %d is not an id of 1 to %d bytes, of which the last may be a star", what, i+1, maxBytes)
		}
	}
	return nil
}
