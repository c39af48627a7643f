package limits

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
)

// QuietScope is whose quiet hours they are.
type QuietScope string

// The scopes of quiet hours.
const (
	QuietTenant    QuietScope = "tenant"
	QuietEmployee  QuietScope = "employee"
	QuietBucket    QuietScope = "bucket"
	QuietRecipient QuietScope = "recipient"
)

// Valid says that s is one of the constants.
func (s QuietScope) Valid() bool {
	switch s {
	case QuietTenant, QuietEmployee, QuietBucket, QuietRecipient:
		return true
	}
	return false
}

// QuietHours are weekly times in which nothing of a scope is sent.
type QuietHours struct {
	Scope QuietScope `json:"scope"`
	// Subject is the employee's id, the bucket's name, or the recipient as
	// kind:value; empty for the tenant.
	Subject string `json:"subject,omitzero"`
	quiethours.Hours
}

// Validate checks quiet hours. The error is an *envelope.InvalidError.
func (q QuietHours) Validate() error {
	var p check.Problems
	switch q.Scope {
	case QuietTenant:
		if q.Subject != "" {
			p.Add("/subject", envelope.RuleUnknownField, "must be left out: the tenant's quiet hours hold for all of it")
		}
	case QuietEmployee:
		checkEmployee(&p, "/subject", q.Subject)
	case QuietBucket:
		if !check.Slug(q.Subject) {
			p.Add("/subject", envelope.RulePattern, "must be the name of a bucket")
		}
	case QuietRecipient:
		if _, err := parseRecipient(q.Subject, contact.Options{}); err != nil {
			p.Add("/subject", envelope.RuleFormat, "must be kind:value, the kind email, domain, phone or handle, such as email:ana@example.org or domain:example.org")
		}
	default:
		p.Add("/scope", envelope.RuleEnum, "must be tenant, employee, bucket or recipient")
	}
	_, err := q.Compile()
	if err := p.Below("", err); err != nil {
		return err
	}
	return p.Err()
}

// settled is the quiet hours with the subject and the spread as they are
// stored.
func (q QuietHours) settled(t Tenant) QuietHours {
	opts := t.ContactOptions()
	opts.PlusAddressing = false
	switch q.Scope {
	case QuietEmployee:
		q.Subject = strings.ToLower(q.Subject)
	case QuietRecipient:
		if c, err := parseRecipient(q.Subject, opts); err == nil {
			q.Subject = string(c.Kind) + ":" + c.Value
		}
	case QuietTenant, QuietBucket:
	}
	if q.Spread == nil {
		q.Spread = new(envelope.Duration(quiethours.DefaultSpread))
	}
	return q
}

// quietKey tells quiet hours of one tenant apart.
type quietKey struct {
	scope   QuietScope
	subject string
}

func (q QuietHours) key() quietKey { return quietKey{q.Scope, q.Subject} }

// label says in words whose they are.
func (q QuietHours) label() string {
	if q.Scope == QuietTenant {
		return string(q.Scope)
	}
	return string(q.Scope) + " " + q.Subject
}

// sortQuiet puts quiet hours into the order of scope and subject.
func sortQuiet(all []QuietHours) {
	slices.SortFunc(all, func(a, b QuietHours) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Subject, b.Subject))
	})
}

// checkEmployee checks the id of an employee.
func checkEmployee(p *check.Problems, pointer, text string) {
	var id envelope.EmployeeID
	if err := id.UnmarshalText([]byte(text)); err != nil {
		p.Add(pointer, envelope.RuleFormat, "must be the UUID of an employee")
	}
}

// employeeOf reads an id that checkEmployee let through.
func employeeOf(text string) envelope.EmployeeID {
	id, _ := uuid.Parse(text) // checked when it was stored
	return envelope.EmployeeID(id)
}

// parseRecipient reads a recipient as kind:value.
func parseRecipient(text string, opts contact.Options) (contact.Contact, error) {
	kind, value, _ := strings.Cut(text, ":")
	return contact.ParseAs(contact.Kind(kind), value, opts)
}
