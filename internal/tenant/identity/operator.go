package identity

import (
	"cmp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// Operator is a person, as tokens, Slack and an issuer of OpenID Connect know
// it.
type Operator struct {
	ID uuid.UUID
	// Name is shown wherever the person did something; 1 to 200 bytes.
	Name string
	// Email is for people to read. Nobody is known by it.
	Email string
	// Issuer and Subject are how the person logs in; both or neither.
	Issuer, Subject string
	// Role is what the last login made of the person; "" if nothing.
	Role Role
	// RoleSet is what was set by hand, and goes before Role; "" if nothing.
	RoleSet Role
	// SlackTeam and SlackUser are the person in Slack; both or neither.
	SlackTeam, SlackUser string
	CreatedAt            time.Time
	// Disabled says that nothing that the person shows is taken.
	Disabled   bool
	DisabledAt *time.Time
	// LastSeenAt is right to about half a minute; nil is never.
	LastSeenAt *time.Time
}

// Effective is the role that the person has; "" if none.
func (o Operator) Effective() Role {
	return cmp.Or(o.RoleSet, o.Role)
}

// principal returns the person without any token.
func (o Operator) principal(tenant envelope.TenantID) Principal {
	return Principal{Token: TokenID(o.ID), Tenant: tenant, Name: o.Name, Role: o.Effective(), Operator: o.ID}
}

func (o Operator) check() error {
	const maxText = 500
	switch {
	case o.Name == "" || len(o.Name) > maxName || plain(o.Name, maxName) != o.Name:
		return fault.New(fault.Invalid, "a person's name is 1 to 200 bytes long, without line breaks or other invisible characters")
	case o.RoleSet != "" && o.RoleSet.rank() == 0:
		return fault.New(fault.Invalid, "a person's role is owner, admin, operator or viewer")
	case (o.Issuer == "") != (o.Subject == ""):
		return fault.New(fault.Invalid, "a person logs in with an issuer and a subject; give both or neither")
	case (o.SlackTeam == "") != (o.SlackUser == ""):
		return fault.New(fault.Invalid, "a person in Slack is a team and a user; give both or neither")
	}
	for _, text := range []string{o.Email, o.Issuer, o.Subject, o.SlackTeam, o.SlackUser} {
		if len(text) > maxText || plain(text, maxText) != text {
			return fault.New(fault.Invalid, "a person's e-mail address, issuer, subject and Slack ids are at most 500 bytes long, without invisible characters")
		}
	}
	return nil
}

// mayChange reports whether a principal may make of one person another: both
// must be what it may make, which of administrators only owners may. was is the
// zero Operator for a new one. Whoever has logged in is only by an owner made
// somebody who logs in otherwise, and thus somebody else. The error is
// fault.Denied.
func (p Principal) mayChange(was, is Operator) error {
	for _, role := range []Role{was.Role, was.RoleSet, is.RoleSet} {
		if role != "" && !p.mayMake(role) {
			return fault.New(fault.Denied, "a token of the role %s may not make or change a person of the role %s", p.Role, role)
		}
	}
	if was.Issuer != "" && (was.Issuer != is.Issuer || was.Subject != is.Subject) && p.Role != RoleOwner {
		return fault.New(fault.Denied, "only an owner may change how a person logs in")
	}
	return nil
}

// plain makes text that came from outside fit to be shown as a name: without
// what cannot be seen, cut between characters to most bytes.
func plain(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}, text)
	text = strings.TrimSpace(text)
	for len(text) > most {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}
