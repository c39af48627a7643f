package envelope

import (
	"bytes"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope/internal/jsonscan"
)

const (
	maxName = 200 // characters
	maxSlug = 100 // characters
)

// Parse reads one proposal, strictly: at most MaxBytes of UTF-8 with nothing
// after it, no more than MaxDepth levels deep, with the fields of Proposal and
// no others, none of them null or twice, here and inside args. The error is an
// *InvalidError that lists all problems, as far as the text can be parsed.
func Parse(raw []byte) (*Proposal, error) { return new(Parser).Parse(raw) }

// Parser reads one proposal after another in the same memory. The zero value is ready.
// It is not safe for use by several goroutines.
type Parser struct{ scanner jsonscan.Scanner }

// Parse is the function Parse, with reused memory.
func (s *Parser) Parse(raw []byte) (*Proposal, error) {
	p, err := s.parse(raw)
	if err != nil {
		return nil, err
	}
	return p, nil
}

func parse(raw []byte) (*Proposal, *InvalidError) { return new(Parser).parse(raw) }

func (s *Parser) parse(raw []byte) (*Proposal, *InvalidError) {
	if len(raw) > MaxBytes {
		return nil, &InvalidError{[]FieldError{{"", RuleSize, sizeMessage}}}
	}
	s.scanner.Reset(raw)
	r := reader{&s.scanner}
	p := r.proposal()
	r.End()
	if err := invalid("", r.Cut(0)); err != nil {
		return nil, err
	}
	return p, nil
}

const sizeMessage = "must be at most 262144 bytes long"

// reader reads the parts of an envelope and reports those that break a rule.
// Every method reads exactly one value of any kind.
type reader struct {
	*jsonscan.Scanner
}

// fields is a set of the fields that an object had so far.
type fields uint32

const (
	fieldVersion fields = 1 << iota
	fieldActionID
	fieldExternalID
	fieldTenantID
	fieldEmployeeID
	fieldType
	fieldTool
	fieldArgs
	fieldRisk
	fieldApproval
	fieldSessionID
	fieldAutomationID
	fieldConstraints
	fieldName
	fieldSource
	fieldComposioApp
	fieldRateBucket
	fieldMustRunBefore
	fieldNotBefore
	fieldUrgent
	fieldItems
)

// see adds a field to the set, and reports it if it was there.
func (r reader) see(seen *fields, f fields) {
	if *seen&f != 0 {
		r.report(RuleDuplicateKey, "occurs more than once in its object; keep one")
	}
	*seen |= f
}

// need reports a field of the object just read that is not in the set.
func (r reader) need(seen, f fields, name string) {
	if seen&f == 0 {
		r.ReportField(name, string(RuleRequired), "is required; add it")
	}
}

func (r reader) report(rule Rule, message string) { r.Report(string(rule), message) }

// refuse reads a value that should not be there, or not like this.
func (r reader) refuse(rule Rule, message string) {
	r.Skip()
	r.report(rule, message)
}

// proposal reads one proposal. Its limits count from where it begins.
func (r reader) proposal() *Proposal {
	r.Peek()
	start := r.Offset()
	r.Limit(MaxDepth, MaxBytes)
	p := &Proposal{}
	if !r.Open('{') {
		r.refuse(RuleType, "must be an object")
		return p
	}
	var seen fields
	for name, ok := r.Field(); ok; name, ok = r.Field() {
		switch string(name) {
		case "version":
			r.see(&seen, fieldVersion)
			p.Version = r.version()
		case "action_id":
			r.see(&seen, fieldActionID)
			p.ActionID = ActionID(r.id())
		case "external_id":
			r.see(&seen, fieldExternalID)
			p.ExternalID = r.name()
		case "tenant_id":
			r.see(&seen, fieldTenantID)
			p.TenantID = TenantID(r.id())
		case "employee_id":
			r.see(&seen, fieldEmployeeID)
			p.EmployeeID = EmployeeID(r.id())
		case "type":
			r.see(&seen, fieldType)
			p.Type = r.kind()
		case "tool":
			r.see(&seen, fieldTool)
			p.Tool = r.tool()
		case "args":
			r.see(&seen, fieldArgs)
			p.Args = r.args()
		case "risk":
			r.see(&seen, fieldRisk)
			p.Risk = r.risk()
		case "approval":
			r.see(&seen, fieldApproval)
			p.Approval = r.approval()
		case "session_id":
			r.see(&seen, fieldSessionID)
			p.SessionID = r.name()
		case "automation_id":
			r.see(&seen, fieldAutomationID)
			p.AutomationID = r.name()
		case "constraints":
			r.see(&seen, fieldConstraints)
			p.Constraints = r.constraints()
		case "result", "timestamps":
			r.refuse(RuleReadOnly, "is set by Countersign; omit it")
		default:
			r.refuse(RuleUnknownField, "is not a field of an envelope; what a tool needs goes into args")
		}
	}
	r.need(seen, fieldType, "type")
	r.need(seen, fieldTool, "tool")
	r.need(seen, fieldArgs, "args")
	if r.Offset()-start > MaxBytes {
		r.report(RuleSize, sizeMessage)
	}
	return p
}

func (r reader) tool() (t Tool) {
	if !r.Open('{') {
		r.refuse(RuleType, "must be an object with a name")
		return t
	}
	var seen fields
	for name, ok := r.Field(); ok; name, ok = r.Field() {
		switch string(name) {
		case "name":
			r.see(&seen, fieldName)
			t.Name = r.name()
		case "source":
			r.see(&seen, fieldSource)
			t.Source = r.slug()
		case "composio_app":
			r.see(&seen, fieldComposioApp)
			t.ComposioApp = r.name()
		default:
			r.refuse(RuleUnknownField, "is not a field of tool; it has name, source and composio_app")
		}
	}
	r.need(seen, fieldName, "name")
	return t
}

func (r reader) constraints() (c Constraints) {
	if !r.Open('{') {
		r.refuse(RuleType, "must be an object")
		return c
	}
	var seen fields
	for name, ok := r.Field(); ok; name, ok = r.Field() {
		switch string(name) {
		case "rate_bucket":
			r.see(&seen, fieldRateBucket)
			c.RateBucket = r.slug()
		case "must_run_before":
			r.see(&seen, fieldMustRunBefore)
			c.MustRunBefore = r.time()
		case "not_before":
			r.see(&seen, fieldNotBefore)
			c.NotBefore = r.time()
		case "urgent":
			r.see(&seen, fieldUrgent)
			c.Urgent = r.flag()
		default:
			r.refuse(RuleUnknownField, "is not a field of constraints; it has rate_bucket, must_run_before, not_before and urgent")
		}
	}
	return c
}

func (r reader) version() int {
	if c := r.Peek(); c != '-' && (c < '0' || c > '9') {
		r.refuse(RuleType, "must be the number 1")
		return 0
	}
	if string(r.Value()) != "1" {
		r.report(RuleEnum, "must be the number 1")
	}
	return SchemaVersion
}

func (r reader) args() []byte {
	if r.Peek() != '{' {
		r.refuse(RuleType, "must be an object; a tool without arguments takes {}")
		return nil
	}
	return bytes.Clone(r.Value())
}

// text reads a string. It is valid until the next value is read.
func (r reader) text() ([]byte, bool) {
	if r.Peek() != '"' {
		r.refuse(RuleType, "must be a string; omit it to leave it empty")
		return nil, false
	}
	return r.Text(), true
}

func (r reader) kind() string {
	text, ok := r.text()
	if ok && string(text) != TypeExec {
		r.report(RuleEnum, `must be "mcp.exec"`)
	}
	return TypeExec
}

func (r reader) risk() Risk {
	text, ok := r.text()
	risk := Risk(text)
	if ok && !risk.Valid() {
		r.report(RuleEnum, `must be "low", "medium" or "high"`)
	}
	return risk
}

func (r reader) approval() Approval {
	text, ok := r.text()
	approval := Approval(text)
	if ok && approval != ApprovalAuto && approval != ApprovalRequired {
		r.report(RuleEnum, `must be "auto" or "required"; Countersign sets the other states`)
	}
	return approval
}

// name reads 1 to 200 printable characters.
func (r reader) name() string {
	text, ok := r.text()
	if !ok {
		return ""
	}
	if len(text) == 0 {
		r.report(RuleMinLength, "must not be empty; omit it instead")
	}
	if len(text) > maxName && utf8.RuneCount(text) > maxName {
		r.report(RuleMaxLength, "must be at most 200 characters long")
	}
	if !printable(text) {
		r.report(RulePattern, "must have only letters, digits, punctuation, symbols and plain spaces")
	}
	return string(text)
}

// printable reports whether a text has only printable characters and plain spaces.
func printable(text []byte) bool {
	for i, c := range text {
		if c >= utf8.RuneSelf {
			return bytes.IndexFunc(text[i:], unprintable) < 0
		}
		if c < ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

func unprintable(c rune) bool { return !unicode.IsPrint(c) }

// slug reads 1 to 100 characters that are safe in a key or a path.
func (r reader) slug() string {
	text, ok := r.text()
	if !ok {
		return ""
	}
	if len(text) == 0 || len(text) > maxSlug || slices.ContainsFunc(text, unfitForSlug) ||
		bytes.IndexByte([]byte("_.-"), text[0]) >= 0 {
		r.report(RulePattern, "must have 1 to 100 characters of a-z, 0-9, _, . and -, and start with a letter or digit")
	}
	return string(text)
}

func unfitForSlug(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '.', c == '-':
		return false
	}
	return true
}

func (r reader) flag() bool {
	if c := r.Peek(); c != 't' && c != 'f' {
		r.refuse(RuleType, "must be true or false")
		return false
	}
	return string(r.Value()) == "true"
}

func (r reader) id() (id uuid.UUID) {
	text, ok := r.text()
	if ok && parseID(&id, text) != nil {
		r.report(RuleFormat, "must be a UUID of 36 characters that is not all zeros")
	}
	return id
}

func (r reader) time() time.Time {
	text, ok := r.text()
	if !ok {
		return time.Time{}
	}
	t, ok := parseTime(text)
	if !ok {
		r.report(RuleFormat, "must be a time between 1970 and 2999 with its zone, like 2006-01-02T15:04:05Z")
	}
	return t
}
