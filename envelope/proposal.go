package envelope

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/countersign-dev/countersign/envelope/internal/jsonscan"
)

// Proposal is an Envelope as submitted, without the fields that only
// Countersign sets. Fields with their zero value are unset.
type Proposal struct {
	// Version is 0 or SchemaVersion.
	Version int `json:"version,omitempty"`
	// ActionID is the identifier that the submitter chose, if any.
	ActionID ActionID `json:"action_id,omitzero"`
	// ExternalID makes it safe to submit again. It has 1 to 200 printable
	// characters.
	ExternalID string `json:"external_id,omitempty"`
	// TenantID, if given, must be the tenant that the submitter belongs to.
	TenantID   TenantID   `json:"tenant_id,omitzero"`
	EmployeeID EmployeeID `json:"employee_id,omitzero"`
	// Type is TypeExec.
	Type string `json:"type"`
	Tool Tool   `json:"tool"`
	// Args is a JSON object. Parse leaves it in canonical form.
	Args json.RawMessage `json:"args"`
	// Risk is the submitter's estimate. Policy may raise it.
	Risk Risk `json:"risk,omitempty"`
	// Approval is "", ApprovalAuto or ApprovalRequired. ApprovalRequired always
	// has an effect; ApprovalAuto only where policy allows it.
	Approval     Approval    `json:"approval,omitempty"`
	SessionID    string      `json:"session_id,omitempty"`
	AutomationID string      `json:"automation_id,omitempty"`
	Constraints  Constraints `json:"constraints,omitzero"`
}

// Validate checks a proposal that was made in Go by the rules of Parse. The
// error is an *InvalidError.
func (p *Proposal) Validate() error {
	var problems []jsonscan.Problem
	args := []byte(p.Args)
	if len(args) > 0 {
		// Invalid JSON must not reach the text that is parsed below.
		if args, problems = canonicalize(jsonscan.New(args)); len(problems) > 0 {
			args = []byte("{}")
		}
	}
	found := invalid("/args", problems)
	if _, err := parse(p.canonical(new(writer), args, true)); err != nil {
		if found == nil {
			found = &InvalidError{}
		}
		found.Fields = append(found.Fields, err.Fields...)
	}
	if found == nil {
		return nil
	}
	return found
}

// Digest returns the digest of the requested action: type, tool, args, risk, approval,
// employee_id, automation_id and constraints. It leaves out the fields that identify the
// proposal and its submitter: action_id, external_id, tenant_id, session_id and version.
// The error is an *InvalidError, and only possible if Parse would reject Args.
func (p *Proposal) Digest() (Digest, error) {
	action, _, err := p.Digests()
	return action, err
}

// Digests returns the result of Digest, and the digest of the arguments.
func (p *Proposal) Digests() (action, arguments Digest, err error) {
	return new(Digester).Digests(p)
}

// Digester computes the digests of one proposal after another in the same memory.
// The zero value is ready. It is not safe for use by several goroutines.
type Digester struct {
	scanner jsonscan.Scanner
	writer  writer
}

// Digests is the Digests method of a proposal, with reused memory.
func (d *Digester) Digests(p *Proposal) (action, arguments Digest, err error) {
	d.scanner.Reset(p.Args)
	args, problems := canonicalize(&d.scanner)
	if err := invalid("/args", problems); err != nil {
		return Digest{}, Digest{}, err
	}
	return DigestOf(p.canonical(&d.writer, args, false)), DigestOf(args), nil
}

// canonical writes the proposal in canonical form around args that are canonical
// already: all fields, or those that the digest covers. The result is valid
// until the next write.
func (p *Proposal) canonical(w *writer, args []byte, all bool) []byte {
	w.buf = w.buf[:0]
	w.open()
	if all && p.ActionID != (ActionID{}) {
		w.text("action_id", p.ActionID.String())
	}
	w.text("approval", string(p.Approval))
	if len(args) > 0 {
		w.name("args")
		w.buf = append(w.buf, args...)
	}
	w.text("automation_id", p.AutomationID)
	if !p.Constraints.IsZero() {
		w.name("constraints")
		w.open()
		w.time("must_run_before", p.Constraints.MustRunBefore)
		w.time("not_before", p.Constraints.NotBefore)
		w.text("rate_bucket", p.Constraints.RateBucket)
		if p.Constraints.Urgent {
			w.name("urgent")
			w.buf = append(w.buf, "true"...)
		}
		w.close()
	}
	if p.EmployeeID != (EmployeeID{}) {
		w.text("employee_id", p.EmployeeID.String())
	}
	if all {
		w.text("external_id", p.ExternalID)
	}
	w.text("risk", string(p.Risk))
	if all {
		w.text("session_id", p.SessionID)
		if p.TenantID != (TenantID{}) {
			w.text("tenant_id", p.TenantID.String())
		}
	}
	w.name("tool")
	w.open()
	w.text("composio_app", p.Tool.ComposioApp)
	w.text("name", p.Tool.Name)
	w.text("source", p.Tool.Source)
	w.close()
	w.text("type", p.Type)
	if all && p.Version != 0 {
		w.name("version")
		w.buf = strconv.AppendInt(w.buf, int64(p.Version), 10)
	}
	w.close()
	return w.buf
}

// writer writes JSON objects whose fields come in canonical order. Fields with
// a zero value are left out.
type writer struct {
	buf []byte
}

func (w *writer) open()  { w.buf = append(w.buf, '{') }
func (w *writer) close() { w.buf = append(w.buf, '}') }

func (w *writer) name(name string) {
	if w.buf[len(w.buf)-1] != '{' {
		w.buf = append(w.buf, ',')
	}
	w.buf = append(jsonscan.AppendText(w.buf, name), ':')
}

func (w *writer) text(name, value string) {
	if value != "" {
		w.name(name)
		w.buf = jsonscan.AppendText(w.buf, value)
	}
}

func (w *writer) time(name string, value time.Time) {
	if !value.IsZero() {
		w.text(name, kept(value).Format(time.RFC3339Nano))
	}
}
