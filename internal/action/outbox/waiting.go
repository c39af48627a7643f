package outbox

import "github.com/countersign-dev/countersign/internal/action/preflight"

// The words of WaitsFor that are not the code of a gate.
const (
	// WaitsApproval: a person has to decide.
	WaitsApproval = "approval"
	// WaitsBucket: its bucket has no token, or no place, left.
	WaitsBucket = "bucket"
	// WaitsRetryAfter: the provider asked every caller to wait.
	WaitsRetryAfter = "retry_after"
	// WaitsRetry: an attempt was made and may be repeated.
	WaitsRetry = "retry"
	// WaitsStart: it was claimed, and its call was not started.
	WaitsStart = "not_started"
	// WaitsNotBefore: the proposal says not to begin sooner.
	WaitsNotBefore = "not_before"
	// WaitsTurn: it is due, and nothing speaks against it.
	WaitsTurn = "turn"
)

// Explain says in a line for people what an envelope waits for.
func Explain(word string) string {
	switch word {
	case WaitsApproval:
		return "a person's decision"
	case WaitsBucket:
		return "its bucket, which has given all that its limits allow for now"
	case WaitsRetryAfter:
		return "its bucket, which is closed because the provider asked for time"
	case WaitsRetry:
		return "its next attempt"
	case WaitsStart, WaitsTurn:
		return "its turn"
	case WaitsNotBefore:
		return "the time that the proposal names"
	case preflight.CodeQuietHours:
		return "the end of quiet hours"
	case preflight.CodePaused:
		return "an operator to resume what is paused"
	case preflight.CodeBreakerOpen:
		return "its source, which failed too often and whose breaker is open"
	}
	return word
}
