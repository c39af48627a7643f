package workflow

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
)

// Request is a workflow as it is submitted.
type Request struct {
	// ExternalID is the submitter's own name for the workflow, which makes it
	// safe to submit again. A dry run needs none.
	ExternalID string
	Atomic     bool
	Session    string
	Employee   envelope.EmployeeID
	Automation string
	Steps      []StepRequest
}

// StepRequest is one call of a workflow that is submitted.
type StepRequest struct {
	// Tool names it as people do: source:action, module.entity.action, or the
	// action alone where one source has it.
	Tool string
	// Inputs is a JSON object; empty stands for {}.
	Inputs      json.RawMessage
	Risk        envelope.Risk
	Approval    envelope.Approval
	Constraints envelope.Constraints
}

// digestScheme is the first byte of what a workflow's digest covers.
const digestScheme = 1

// below adds the fields of an *envelope.InvalidError with other pointers, and
// returns any other error.
func below(p *check.Problems, err error, pointer func(string) string) error {
	broken, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok {
		return err
	}
	for _, f := range broken.Fields {
		f.Pointer = pointer(f.Pointer)
		*p = append(*p, f)
	}
	return nil
}

func stepPointer(i int) string { return "/steps/" + strconv.Itoa(i) }

// pointerOf places a pointer into a proposal in the step that it is of.
func pointerOf(i int) func(string) string {
	return func(at string) string {
		switch {
		case at == "/args" || strings.HasPrefix(at, "/args/"):
			return stepPointer(i) + "/inputs" + strings.TrimPrefix(at, "/args")
		case strings.HasPrefix(at, "/tool"):
			return stepPointer(i) + "/tool"
		case at == "/session_id", at == "/employee_id", at == "/automation_id":
			return at
		}
		return stepPointer(i) + at
	}
}

// proposal is the envelope that a step becomes, with references instead of
// what they stand for.
func (r *Request) proposal(i int) *envelope.Proposal {
	s := &r.Steps[i]
	p := &envelope.Proposal{
		Type: envelope.TypeExec, Tool: envelope.Tool{Name: s.Tool}, Args: s.Inputs, Risk: s.Risk, Approval: s.Approval,
		Constraints: s.Constraints, EmployeeID: r.Employee, SessionID: r.Session, AutomationID: r.Automation,
	}
	if len(p.Args) == 0 {
		p.Args = json.RawMessage("{}")
	}
	return p
}

// digest checks what can be checked of a request by itself, and returns the
// digest of what is asked for: the steps, and whether it is all or nothing.
// The error is an *envelope.InvalidError.
func (r *Request) digest() ([]byte, error) {
	var found check.Problems
	if len(r.Steps) == 0 || len(r.Steps) > MaxSteps {
		found.Add("/steps", envelope.RuleMaxItems, "must have 1 to %d steps", MaxSteps)
		return nil, found.Err()
	}
	h := sha256.New()
	h.Write([]byte{digestScheme})
	if r.Atomic {
		h.Write([]byte("atomic"))
	}
	for i := range r.Steps {
		p := r.proposal(i)
		if err := p.Validate(); err != nil {
			if err := below(&found, err, pointerOf(i)); err != nil {
				return nil, err
			}
			continue
		}
		d, err := p.Digest()
		if err != nil {
			return nil, err
		}
		h.Write(d[:])
	}
	return h.Sum(nil), found.Err()
}
