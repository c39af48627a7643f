package limits

import (
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/tenant/document"
)

// Document is all settings of a tenant that belong into a file: not the
// do-not-contact list, which is long and private, and not pauses, which are
// temporary. Apply leaves a section that is nil as it is, and makes any other
// exactly what it says.
type Document struct {
	Settings   *Tenant      `json:"settings,omitempty"`
	Buckets    []Bucket     `json:"buckets,omitzero"`
	QuietHours []QuietHours `json:"quiet_hours,omitzero"`
	Employees  []Employee   `json:"employees,omitzero"`
	Tools      []ToolRule   `json:"tools,omitzero"`
}

// The sections of a Document, as they are named in it and in changes.
const (
	sectionBuckets   = "buckets"
	sectionQuiet     = "quiet_hours"
	sectionEmployees = "employees"
	sectionTools     = "tools"
	sectionSettings  = "settings"
)

// The nouns of the entries of a section, in messages and events.
const (
	nounBucket   = "bucket"
	nounQuiet    = "quiet hours of"
	nounEmployee = "employee"
	nounTool     = "tool"
)

// maxEntries bounds a section.
const maxEntries = 100_000

// Validate checks everything that can be checked without a database. The
// error is an *envelope.InvalidError whose pointers lead into the document.
func (d Document) Validate() error {
	var p check.Problems
	if d.Settings != nil {
		_ = p.Below("/settings", d.Settings.Validate()) // it has no other kind of error
	}
	document.Check(&p, sectionBuckets, nounBucket, maxEntries, d.Buckets, Bucket.key, Bucket.Validate)
	document.Check(&p, sectionQuiet, nounQuiet, maxEntries, d.QuietHours, Tenant{}.quietKey, QuietHours.Validate)
	document.Check(&p, sectionEmployees, nounEmployee, maxEntries, d.Employees, Employee.key, Employee.Validate)
	document.Check(&p, sectionTools, nounTool, maxEntries, d.Tools, ToolRule.key, ToolRule.Validate)
	return p.Err()
}
