package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
)

// Problem is an answer that is no success (RFC 9457). errors.Is tells its kind
// by the kinds of package fault.
type Problem struct {
	// Type is a stable URN.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitzero"`
	// Instance is the request's id, as it stands in the server's log.
	Instance string `json:"instance,omitzero"`
	// Errors lists what is wrong with the fields of the request.
	Errors []envelope.FieldError `json:"errors,omitempty"`
	// Action is what is on record, if policy denied a proposal.
	Action *Action `json:"action,omitempty"`
	// Execution is what is on record of a call of a tool that was not done.
	Execution *Invocation `json:"execution,omitempty"`
}

// Error says what is wrong in one line, and below it what is wrong where.
func (p *Problem) Error() string {
	var text strings.Builder
	if p.Detail == "" || len(p.Errors) > 0 {
		text.WriteString(strings.ToLower(p.Title))
	} else {
		text.WriteString(p.Detail)
	}
	for _, f := range p.Errors {
		at := f.Pointer
		if at == "" {
			at = "the body"
		}
		fmt.Fprintf(&text, "\n  %s: %s", at, f.Message)
	}
	if p.Status >= http.StatusInternalServerError && p.Instance != "" {
		fmt.Fprintf(&text, " (request %s in the server's log)", p.Instance)
	}
	return text.String()
}

// Unwrap returns the kind of fault, or nil for what has none.
func (p *Problem) Unwrap() error {
	switch strings.TrimPrefix(p.Type, "urn:countersign:problem:") {
	case "not_found":
		return fault.NotFound
	case "invalid", "too_large", "unsupported_media_type", "method_not_allowed":
		return fault.Invalid
	case "conflict":
		return fault.Conflict
	case "denied", "unauthorized":
		return fault.Denied
	case "busy":
		return fault.Busy
	case "gone":
		return fault.Gone
	case "limited":
		return fault.Limited
	}
	return nil
}

// readProblem reads an answer that is no success, also one that comes from
// something in between and is no problem document.
func readProblem(answer *http.Response) *Problem {
	const most = 1 << 20
	p := &Problem{}
	text, err := io.ReadAll(io.LimitReader(answer.Body, most))
	if err != nil || !isJSON(answer) || json.Unmarshal(text, p) != nil || p.Title == "" {
		p = &Problem{
			Type: "about:blank", Title: http.StatusText(answer.StatusCode),
			Detail: fmt.Sprintf("the answer is %s, and not from a Countersign API; check the URL", answer.Status),
		}
	}
	p.Status = answer.StatusCode
	return p
}
