package limit

import (
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/gate"
)

// Tenant is what holds for a whole tenant.
type Tenant struct {
	// Timezone is an IANA name. Calendar buckets without a zone of their own
	// begin anew at its midnight.
	Timezone string `json:"timezone"`
	// PhoneRegion is the country, in two letters, whose phone numbers are
	// written without a country code; empty for none.
	PhoneRegion string `json:"phone_region"`
	// PlusAddressing says that a+anything@b is the same recipient as a@b.
	PlusAddressing bool `json:"plus_addressing"`
}

// Validate checks a tenant's settings. The error is an *envelope.InvalidError.
func (t Tenant) Validate() error {
	var p problems
	p.zone("/timezone", t.Timezone)
	if (gate.ContactOptions{Region: t.PhoneRegion}).Check() != nil {
		p.add("/phone_region", envelope.RuleEnum, "must be a country's two capital letters (ISO 3166-1), such as DE; leave it empty if all numbers are written with their country code")
	}
	return p.err()
}

// contacts is how the tenant's recipients are read.
func (t Tenant) contacts() gate.ContactOptions {
	return gate.ContactOptions{Region: t.PhoneRegion, PlusAddressing: t.PlusAddressing}
}
