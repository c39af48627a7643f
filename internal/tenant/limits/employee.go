package limits

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// defaultEmployee is the text of the entry for employees without one, and for
// envelopes without an employee.
const defaultEmployee = "default"

// Employee is an agent's identity, with its trust and its scopes.
type Employee struct {
	// ID is zero for the default entry, which is "default" in JSON.
	ID   envelope.EmployeeID
	Name string
	// Trust is the highest risk that may run without a person.
	Trust policy.Trust
	// Scopes are the granted scopes, such as contacts:write or contacts:*.
	Scopes []string
}

// employeeJSON is the JSON form of an employee.
type employeeJSON struct {
	ID     string       `json:"employee_id"`
	Name   string       `json:"name,omitzero"`
	Trust  policy.Trust `json:"trust"`
	Scopes []string     `json:"scopes"`
}

// MarshalJSON encodes the default entry's id as "default".
func (e Employee) MarshalJSON() ([]byte, error) {
	scopes := e.Scopes
	if scopes == nil {
		scopes = []string{}
	}
	return json.Marshal(employeeJSON{EmployeeText(e.ID), e.Name, e.Trust, scopes})
}

// UnmarshalJSON decodes the output of MarshalJSON.
func (e *Employee) UnmarshalJSON(text []byte) error {
	var in employeeJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return err
	}
	id, err := ParseEmployee(in.ID)
	if err != nil {
		return err
	}
	*e = Employee{id, in.Name, in.Trust, in.Scopes}
	return nil
}

// EmployeeText returns an employee's id as a text, "default" for the default
// entry.
func EmployeeText(id envelope.EmployeeID) string {
	if id == (envelope.EmployeeID{}) {
		return defaultEmployee
	}
	return id.String()
}

// ParseEmployee parses the output of EmployeeText. The error is fault.Invalid.
func ParseEmployee(text string) (envelope.EmployeeID, error) {
	var id envelope.EmployeeID
	if text == defaultEmployee || text == uuid.Nil.String() {
		return id, nil
	}
	if id.UnmarshalText([]byte(text)) != nil {
		return id, fault.New(fault.Invalid, "employee must be a UUID, or the word default")
	}
	return id, nil
}

// Bounds of an employee.
const (
	maxScopes = 200
	maxName   = 200
)

func (e Employee) key() string { return EmployeeText(e.ID) }

// Validate checks an employee. The error is an *envelope.InvalidError.
func (e Employee) Validate() error {
	var p check.Problems
	p.Text("/name", e.Name)
	if len([]rune(e.Name)) > maxName {
		p.Add("/name", envelope.RuleMaxLength, "must have at most %d characters", maxName)
	}
	if !e.Trust.Valid() {
		p.Add("/trust", envelope.RuleEnum, "must be none, low, medium or high: the highest risk that may run without a person")
	}
	checkScopes(&p, e.Scopes)
	return p.Err()
}

// checkScopes checks the list of scopes at /scopes.
func checkScopes(p *check.Problems, scopes []string) {
	if len(scopes) > maxScopes {
		p.Add("/scopes", envelope.RuleMaxItems, "must have at most %d items", maxScopes)
		return
	}
	for i, text := range scopes {
		at := fmt.Sprintf("/scopes/%d", i)
		if _, err := policy.ParseScope(text); err != nil {
			p.Add(at, envelope.RulePattern, "%s", err)
		} else if slices.Index(scopes, text) < i {
			p.Add(at, envelope.RuleDuplicateKey, "must not repeat a scope that the list already has")
		}
	}
}

// settled returns the employee with its scopes sorted.
func (e Employee) settled() Employee {
	e.Scopes = ordered(e.Scopes)
	return e
}

// ordered returns a sorted copy that is never nil.
func ordered(texts []string) []string {
	all := append([]string{}, texts...)
	slices.Sort(all)
	return all
}
