package limits

import (
	"cmp"
	"slices"
	"strings"

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

// Valid reports whether s is one of the constants.
func (s QuietScope) Valid() bool {
	return slices.Contains([]QuietScope{QuietTenant, QuietEmployee, QuietBucket, QuietRecipient}, s)
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
		if new(envelope.EmployeeID).UnmarshalText([]byte(q.Subject)) != nil {
			p.Add("/subject", envelope.RuleFormat, "must be the UUID of an employee")
		}
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

// Stored returns the quiet hours with the subject and the spread as they are
// stored.
func (q QuietHours) Stored(t Tenant) QuietHours {
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

// quietKey returns the scope and subject of quiet hours of the tenant.
func (t Tenant) quietKey(q QuietHours) string {
	q = q.Stored(t)
	return strings.TrimSuffix(string(q.Scope)+" "+q.Subject, " ")
}

// sortQuiet puts quiet hours into the order of scope and subject.
func sortQuiet(all []QuietHours) {
	slices.SortFunc(all, func(a, b QuietHours) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Subject, b.Subject))
	})
}

// parseRecipient reads a recipient as kind:value.
func parseRecipient(text string, opts contact.Options) (contact.Contact, error) {
	kind, value, _ := strings.Cut(text, ":")
	return contact.ParseAs(contact.Kind(kind), value, opts)
}
