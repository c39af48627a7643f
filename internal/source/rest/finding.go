package rest

import (
	"encoding/json"
	"fmt"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
)

// Finding is what one attempt came to, before its kind is named.
type Finding struct {
	source.Observation
	// Code is one of executor's; empty when there is nothing to remark.
	Code string
	// Message says it in words of our own; empty leaves them to the code.
	Message string
	// Result and ProviderID are what the provider answered.
	Result     json.RawMessage
	ProviderID string
}

// Refuse is the finding for a call that was not sent and never can be.
func Refuse(code, message string) Finding {
	return Finding{Observation: source.Observation{Permanent: true}, Code: code, Message: message}
}

// Malformed turns a finding into that of an answer that cannot be read. What
// the status says of a request that failed still holds.
func (f Finding) Malformed() Finding {
	f.Answered = false
	if source.StatusCode(f.Status) == "" && f.Code == "" {
		f.Code = source.CodeMalformed
	}
	return f
}

// ToolError turns a finding into that of a tool that says that it failed.
func (f Finding) ToolError() Finding {
	f.Answered, f.Observation.ToolError = true, true
	f.Code = source.CodeToolError
	return f
}

// Permanently turns a finding into that of a call that was looked at, not
// executed, and never will be.
func (f Finding) Permanently(code string) Finding {
	f.Permanent = true
	f.Code = code
	return f
}

// AlreadyThere turns a finding into that of an effect that was there before.
func (f Finding) AlreadyThere() Finding {
	f.Conflict = true
	f.Code = source.CodeConflict
	return f
}

// NotNow turns a finding into that of a call that was turned away unlooked at.
func (f Finding) NotNow(code string) Finding {
	f.Observation = source.Observation{RetryAfter: f.RetryAfter}
	f.Code = code
	return f
}

// Unanswered turns a finding into that of a call which nobody can say happened.
func (f Finding) Unanswered(code string) Finding {
	f.Observation = source.Observation{Written: true, RetryAfter: f.RetryAfter}
	f.Code = code
	return f
}

func (f Finding) conclude(name string, effect envelope.Effect) source.Outcome {
	message := f.Message
	if message == "" && f.Code != "" {
		message = name + ": " + f.describe()
	}
	out := source.Conclude(effect, f.Observation, f.Code, message)
	out.Result, out.ProviderID = f.Result, f.ProviderID
	return out
}

// describe puts a finding into words of our own.
func (f Finding) describe() string {
	if f.Status >= 300 {
		return fmt.Sprintf("the provider answered with status %d", f.Status)
	}
	sent := "before the call was sent"
	if f.Written {
		sent = "after the call was sent"
	}
	switch f.Code {
	case source.CodeCancelled:
		return "the caller gave up " + sent
	case source.CodeClosed:
		return "the source was closed " + sent
	case source.CodeConflict:
		return "the provider has this already"
	case source.CodeInvalidArgs:
		return "the arguments do not fit the tool"
	case source.CodeLost:
		return "the connection went away " + sent
	case source.CodeMalformed:
		return "the provider's answer is not what its documentation says"
	case source.CodeNotFound:
		return "the provider knows no such thing"
	case source.CodeOversized:
		return "the provider's answer is larger than allowed"
	case source.CodeRateLimited:
		return "the provider asks for patience"
	case source.CodeRedirected:
		return "the provider points to another place"
	case source.CodeRejected:
		return "the provider refuses this call as it is"
	case source.CodeServerError:
		return "the provider reports a failure of its own"
	case source.CodeTimeout:
		return "time ran out " + sent
	case source.CodeToolError:
		return "the tool says that it failed"
	case source.CodeUnauthorized:
		return "the provider does not accept the credentials for this"
	case source.CodeUnknownTool:
		return "there is no tool of this name"
	}
	return "the provider cannot be reached"
}

// ListError says in words of our own why a listing failed.
type ListError struct{ Text string }

// Error implements error.
func (e *ListError) Error() string { return e.Text }

// ListFailure says why the reply is no page of a listing.
func (r Reply) ListFailure() error {
	f := r.Finding()
	if f.Answered {
		f = f.Malformed()
	}
	return &ListError{Text: f.describe()}
}
