package envelope

import (
	"encoding/json"
	"time"

	"github.com/countersign-dev/countersign/envelope/internal/jsonscan"
	"github.com/google/uuid"
)

// Proposal is an Envelope as it is submitted: without the fields that only
// Countersign sets. Fields with their zero value were not given.
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
	// Approval is "", ApprovalAuto or ApprovalRequired. Asking for a person
	// always works; asking for nobody works only where policy allows it.
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
		// What is not JSON must not reach the text that is parsed below.
		if args, problems = canonicalize(args); len(problems) > 0 {
			args = []byte("{}")
		}
	}
	found := invalid("/args", problems)
	if _, err := parse(p.canonical(args, true)); err != nil {
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

// Digest returns the digest of the requested action: type, tool, args, risk,
// approval, employee_id, automation_id and constraints. It leaves out the fields
// that identify the proposal and its submitter: action_id, external_id,
// tenant_id, session_id and version. The error is an *InvalidError, and only possible if
// Args is not what Parse accepts.
func (p *Proposal) Digest() (Digest, error) {
	args, problems := canonicalize(p.Args)
	if err := invalid("/args", problems); err != nil {
		return Digest{}, err
	}
	return DigestOf(p.canonical(args, false)), nil
}

// canonical returns the proposal in canonical form around args that are in it
// already: all fields, or those that the digest covers.
func (p *Proposal) canonical(args []byte, all bool) []byte {
	given := *p
	given.Args = args
	return appendObject(make([]byte, 0, len(args)+512), proposalFields[:], &given, all)
}

func appendText(b []byte, text string) []byte {
	if text == "" {
		return b
	}
	return jsonscan.AppendText(b, text)
}

func appendID(b []byte, id uuid.UUID) []byte {
	if id == uuid.Nil {
		return b
	}
	return appendText(b, id.String())
}

func appendTime(b []byte, at time.Time) []byte {
	if at.IsZero() {
		return b
	}
	return appendText(b, kept(at).Format(time.RFC3339Nano))
}

func appendConstraints(b []byte, c *Constraints) []byte {
	if c.IsZero() {
		return b
	}
	return appendObject(b, constraintFields[:], c, true)
}
