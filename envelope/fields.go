package envelope

import (
	"strconv"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope/internal/jsonscan"
)

// field is a field of an object in the contract.
type field[T any] struct {
	name     string
	required bool
	// filing marks a field that identifies the proposal and its submitter. No
	// digest covers it.
	filing bool
	// read reads the value into an object.
	read func(reader, *T)
	// write appends the value in canonical form, or nothing if it was not given.
	write func([]byte, *T) []byte
}

// The fields of each object, in canonical order.
var (
	proposalFields = [...]field[Proposal]{
		{name: "action_id", filing: true,
			read:  func(r reader, p *Proposal) { p.ActionID = ActionID(r.id()) },
			write: func(b []byte, p *Proposal) []byte { return appendID(b, uuid.UUID(p.ActionID)) }},
		{name: "approval",
			read:  func(r reader, p *Proposal) { p.Approval = r.approval() },
			write: func(b []byte, p *Proposal) []byte { return appendText(b, string(p.Approval)) }},
		{name: "args", required: true,
			read:  func(r reader, p *Proposal) { p.Args = r.args() },
			write: func(b []byte, p *Proposal) []byte { return append(b, p.Args...) }},
		{name: "automation_id",
			read:  func(r reader, p *Proposal) { p.AutomationID = r.name() },
			write: func(b []byte, p *Proposal) []byte { return appendText(b, p.AutomationID) }},
		{name: "constraints",
			read:  func(r reader, p *Proposal) { r.constraints(&p.Constraints) },
			write: func(b []byte, p *Proposal) []byte { return appendConstraints(b, &p.Constraints) }},
		{name: "employee_id",
			read:  func(r reader, p *Proposal) { p.EmployeeID = EmployeeID(r.id()) },
			write: func(b []byte, p *Proposal) []byte { return appendID(b, uuid.UUID(p.EmployeeID)) }},
		{name: "external_id", filing: true,
			read:  func(r reader, p *Proposal) { p.ExternalID = r.name() },
			write: func(b []byte, p *Proposal) []byte { return appendText(b, p.ExternalID) }},
		{name: "result", read: readOnly},
		{name: "risk",
			read:  func(r reader, p *Proposal) { p.Risk = r.risk() },
			write: func(b []byte, p *Proposal) []byte { return appendText(b, string(p.Risk)) }},
		{name: "session_id", filing: true,
			read:  func(r reader, p *Proposal) { p.SessionID = r.name() },
			write: func(b []byte, p *Proposal) []byte { return appendText(b, p.SessionID) }},
		{name: "tenant_id", filing: true,
			read:  func(r reader, p *Proposal) { p.TenantID = TenantID(r.id()) },
			write: func(b []byte, p *Proposal) []byte { return appendID(b, uuid.UUID(p.TenantID)) }},
		{name: "timestamps", read: readOnly},
		{name: "tool", required: true,
			read:  func(r reader, p *Proposal) { r.tool(&p.Tool) },
			write: func(b []byte, p *Proposal) []byte { return appendObject(b, toolFields[:], &p.Tool, true) }},
		{name: "type", required: true,
			read:  func(r reader, p *Proposal) { p.Type = r.kind() },
			write: func(b []byte, p *Proposal) []byte { return appendText(b, p.Type) }},
		{name: "version", filing: true,
			read: func(r reader, p *Proposal) { p.Version = r.version() },
			write: func(b []byte, p *Proposal) []byte {
				if p.Version == 0 {
					return b
				}
				return strconv.AppendInt(b, int64(p.Version), 10)
			}},
	}
	toolFields = [...]field[Tool]{
		{name: "composio_app",
			read:  func(r reader, t *Tool) { t.ComposioApp = r.name() },
			write: func(b []byte, t *Tool) []byte { return appendText(b, t.ComposioApp) }},
		{name: "name", required: true,
			read:  func(r reader, t *Tool) { t.Name = r.name() },
			write: func(b []byte, t *Tool) []byte { return appendText(b, t.Name) }},
		{name: "source",
			read:  func(r reader, t *Tool) { t.Source = r.slug() },
			write: func(b []byte, t *Tool) []byte { return appendText(b, t.Source) }},
	}
	constraintFields = [...]field[Constraints]{
		{name: "must_run_before",
			read:  func(r reader, c *Constraints) { c.MustRunBefore = r.time() },
			write: func(b []byte, c *Constraints) []byte { return appendTime(b, c.MustRunBefore) }},
		{name: "not_before",
			read:  func(r reader, c *Constraints) { c.NotBefore = r.time() },
			write: func(b []byte, c *Constraints) []byte { return appendTime(b, c.NotBefore) }},
		{name: "rate_bucket",
			read:  func(r reader, c *Constraints) { c.RateBucket = r.slug() },
			write: func(b []byte, c *Constraints) []byte { return appendText(b, c.RateBucket) }},
		{name: "urgent",
			read: func(r reader, c *Constraints) { c.Urgent = r.flag() },
			write: func(b []byte, c *Constraints) []byte {
				if !c.Urgent {
					return b
				}
				return append(b, "true"...)
			}},
	}
	listFields = [...]field[[]Item]{
		{name: "items", required: true, read: func(r reader, items *[]Item) { *items = r.items() }},
	}
)

func readOnly(r reader, _ *Proposal) { r.refuse(RuleReadOnly, "is set by Countersign; leave it out") }

// readObject reads an object, or refuses another value with what it must be.
// unknown says what to do about a field that the object does not have.
func readObject[T any](r reader, object *T, fields []field[T], must, unknown string) {
	if !r.Open('{') {
		r.refuse(RuleType, must)
		return
	}
	var seen uint32 // a bit for each field
	for {
		name, ok := r.Field()
		if !ok {
			break
		}
		i := 0
		for i < len(fields) && fields[i].name != string(name) {
			i++
		}
		if i == len(fields) {
			r.refuse(RuleUnknownField, unknown)
			continue
		}
		if seen&(1<<i) != 0 {
			r.report(RuleDuplicateKey, "occurs more than once in its object; keep one")
		}
		seen |= 1 << i
		fields[i].read(r, object)
	}
	for i := range fields {
		if fields[i].required && seen&(1<<i) == 0 {
			r.ReportField(fields[i].name, string(RuleRequired), "is required; add it")
		}
	}
}

// appendObject appends an object in canonical form: all fields that were given,
// or those of them that a digest covers.
func appendObject[T any](b []byte, fields []field[T], object *T, all bool) []byte {
	b = append(b, '{')
	for i := range fields {
		f := &fields[i]
		if f.write == nil || f.filing && !all {
			continue
		}
		before := len(b)
		if b[before-1] != '{' {
			b = append(b, ',')
		}
		b = append(jsonscan.AppendText(b, f.name), ':')
		value := len(b)
		if b = f.write(b, object); len(b) == value {
			b = b[:before]
		}
	}
	return append(b, '}')
}
