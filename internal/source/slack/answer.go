package slack

import (
	_ "embed"
	"slices"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// observe converts an answer of the Web API, which reports most errors with
// status 200 and one of the documented codes.
func observe(reply rest.Reply, conflicts []string) source.Observation {
	o := reply.Observe()
	if !o.Answered {
		return o
	}
	var answer struct {
		OK          *bool `json:"ok"`
		Error       string
		Channel, TS string
	}
	switch {
	case !reply.Decode(&answer) || answer.OK == nil:
		return o.Malformed()
	case *answer.OK:
		if answer.Channel != "" && answer.TS != "" {
			o.ProviderID = answer.Channel + "/" + answer.TS
		}
		return o
	case slices.Contains(conflicts, answer.Error):
		return o.AlreadyDone()
	}
	// Without a code, an error only means that the call failed.
	switch code := codes()[answer.Error]; code {
	case source.CodeRateLimited, source.CodeUnreachable:
		return o.NotExecuted(code)
	case source.CodeServerError:
		return o.Unanswered(code)
	case "":
		return o.ToolFailed()
	default:
		return o.Permanently(code)
	}
}

// errorCodes lists Slack's documented errors by code, one code per line.
// CodeUnreachable means that the call was not processed: the workspace or
// channel is being migrated, or the body was incomplete. With CodeServerError,
// according to the documentation, parts of the call may have succeeded.
//
//go:embed errors.txt
var errorCodes string

// codes returns the code of each documented error.
var codes = sync.OnceValue(func() map[string]string {
	codes := make(map[string]string)
	for line := range strings.Lines(errorCodes) {
		code, words, _ := strings.Cut(line, " ")
		for word := range strings.FieldsSeq(words) {
			codes[word] = code
		}
	}
	return codes
})
