package limits

import (
	"fmt"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
)

// Document is all settings of a tenant that belong into a file: not the
// do-not-contact list, which is long and private, and not pauses, which are of
// the moment. A section that is nil is left alone; one that is there is made
// to be exactly that.
type Document struct {
	Settings   *Tenant       `json:"settings,omitempty"`
	Buckets    *[]Bucket     `json:"buckets,omitempty"`
	QuietHours *[]QuietHours `json:"quiet_hours,omitempty"`
	Employees  *[]Employee   `json:"employees,omitempty"`
	Tools      *[]ToolRule   `json:"tools,omitempty"`
}

// Validate checks everything that can be checked without a database. The
// error is an *envelope.InvalidError whose pointers lead into the document.
func (d Document) Validate() error {
	var p check.Problems
	if d.Settings != nil {
		_ = p.Below("/settings", d.Settings.Validate()) // it has no other kind of error
	}
	each(&p, sectionBuckets, d.Buckets, func(b Bucket) string { return b.Name })
	each(&p, sectionQuiet, d.QuietHours, func(h QuietHours) string { return h.settled(Tenant{}).label() })
	each(&p, sectionEmployees, d.Employees, func(e Employee) string { return EmployeeText(e.ID) })
	each(&p, sectionTools, d.Tools, func(r ToolRule) string { return r.Key().String() })
	return p.Err()
}

// each checks the settings of a section, and that none is there twice.
func each[T interface{ Validate() error }](p *check.Problems, section string, all *[]T, name func(T) string) {
	if all == nil {
		return
	}
	first := make(map[string]int, len(*all))
	for i, one := range *all {
		at := fmt.Sprintf("/%s/%d", section, i)
		_ = p.Below(at, one.Validate()) // it has no other kind of error
		if before, ok := first[name(one)]; ok {
			p.Add(at, envelope.RuleDuplicateKey, "must not be of the same %s as item %d", noun(section), before)
			continue
		}
		first[name(one)] = i
	}
}
