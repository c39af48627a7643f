package linear

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// maxProviderID bounds the id taken from an answer.
const maxProviderID = 256

// answer is the one field that an operation asks for.
type answer struct {
	field json.RawMessage
	// refused says that Linear refused the operation because of what it asks
	// for, and not because of credentials or rate limits.
	refused bool
}

// observe reads an answer of GraphQL, which reports errors with any status: too
// many requests are 400.
func observe(reply rest.Reply) (answer, source.Observation) {
	o := reply.Observe()
	var body struct {
		Data   map[string]json.RawMessage
		Errors []struct {
			Extensions struct{ Code, Type any }
		}
	}
	spoken := reply.Decode(&body) && (body.Data != nil || len(body.Errors) > 0)
	if !spoken || reply.Status >= 500 || reply.Status == http.StatusTooManyRequests {
		if o.Answered {
			o = o.Malformed()
		}
		return answer{}, o
	}
	var got answer
	for _, field := range body.Data {
		got.field = field
	}
	if len(body.Errors) == 0 || !got.empty() {
		// With data, an error is about a part of it that could not be shown.
		return got, o
	}
	e := body.Errors[0].Extensions
	code := codeOf(e.Code)
	if code == "" {
		code = codeOf(e.Type)
	}
	if code == "" {
		code = source.StatusCode(reply.Status)
	}
	// From here on the error says more than the status.
	o.Status = 0
	switch code {
	case source.CodeRateLimited:
		o.RetryAfter = max(o.RetryAfter, rateLimitWait(reply.Header, time.Now()))
		return got, o.NotExecuted(code)
	case source.CodeServerError:
		return got, o.Unanswered(code)
	case source.CodeUnauthorized:
		return got, o.Permanently(code)
	case "":
		got.refused = true
		return got, o.ToolFailed()
	case source.CodeConflict:
		// create looks for the object before it reports a conflict.
		code = source.CodeRejected
	}
	got.refused = true
	return got, o.Permanently(code)
}

// empty reports whether there is nothing in the field.
func (a answer) empty() bool { return len(a.field) == 0 || string(a.field) == "null" }

// done is the finding for an answer that is an entity, or a list of them.
func (a answer) done(o source.Observation) source.Observation {
	o.Result = a.field
	var entity struct{ ID any }
	if json.Unmarshal(a.field, &entity) == nil {
		if id, ok := entity.ID.(string); ok && len(id) <= maxProviderID {
			o.ProviderID = id
		}
	}
	return o
}

// changed is the finding for the answer to a mutation, which says whether it
// worked beside what it made.
func (a *answer) changed(o source.Observation) source.Observation {
	if !o.Answered || o.Code != "" {
		return o
	}
	var payload struct {
		Success *bool
		Issue   json.RawMessage
		Comment json.RawMessage
	}
	switch {
	case json.Unmarshal(a.field, &payload) != nil || payload.Success == nil:
		return o.Malformed()
	case !*payload.Success:
		a.refused = true
		return o.ToolFailed()
	}
	made := answer{field: payload.Issue}
	if made.empty() {
		made.field = payload.Comment
	}
	if made.empty() {
		made.field = json.RawMessage(`{}`)
	}
	return made.done(o)
}

// codeOf returns the code for an error's code or type, which differ only in
// case and separators; empty for an unknown error, which only says that the
// operation failed.
func codeOf(value any) string {
	text, _ := value.(string)
	switch strings.ReplaceAll(strings.ToLower(text), "_", " ") {
	case "ratelimited":
		return source.CodeRateLimited
	case "authentication error", "feature not accessible", "forbidden", "unauthenticated":
		return source.CodeUnauthorized
	case "bad user input", "graphql error", "graphql parse failed", "graphql validation failed", "input error", "invalid input", "user error":
		return source.CodeInvalidArgs
	case "entity not found", "not found":
		return source.CodeNotFound
	case "bootstrap error", "internal error", "internal server error", "lock timeout", "network error":
		return source.CodeServerError
	}
	return ""
}

// rateLimitWait returns how long Linear's exhausted limits last. Linear limits
// requests, their complexity, and the requests of some operations.
func rateLimitWait(header http.Header, now time.Time) time.Duration {
	var wait time.Duration
	for _, limit := range []string{"Requests", "Complexity", "Endpoint-Requests"} {
		if header.Get("X-RateLimit-"+limit+"-Remaining") != "0" {
			continue
		}
		at, err := strconv.ParseInt(header.Get("X-RateLimit-"+limit+"-Reset"), 10, 64)
		if err != nil {
			continue
		}
		wait = max(wait, time.UnixMilli(at).Sub(now))
	}
	return min(wait, source.MaxRetryAfter)
}
