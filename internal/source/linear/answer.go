package linear

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// maxProviderID bounds the length of an id in an answer.
const maxProviderID = 256

// answer is the single field of an operation.
type answer struct {
	field json.RawMessage
	// refused is set if Linear refused the operation itself, rather than its
	// credentials or rate.
	refused bool
}

// observe converts an answer of GraphQL, which reports errors with any status:
// rate limits have 400.
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
		// If there is data, the error concerns a part of it that could not be
		// returned.
		return got, o
	}
	e := body.Errors[0].Extensions
	code := codeOf(e.Code)
	code = cmp.Or(code, codeOf(e.Type))
	code = cmp.Or(code, source.StatusCode(reply.Status))
	// From here on the error is more specific than the status.
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
		// create searches for the object before it reports a conflict.
		code = source.CodeRejected
	}
	got.refused = true
	return got, o.Permanently(code)
}

// empty reports whether the field is null or missing.
func (a answer) empty() bool { return len(a.field) == 0 || string(a.field) == "null" }

// done returns the observation for an answer that is an entity or a list of
// them.
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

// changed returns the observation for the answer to a mutation, which contains
// its success and the changed entity.
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

// codeOf returns the code for an error's code or type, which differ only in case
// and separators. It returns "" for an unknown error, which only means that the
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

// rateLimitWait returns the time until Linear's exhausted limits reset. Linear
// limits requests, their complexity, and the requests of some operations.
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
