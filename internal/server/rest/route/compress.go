package route

// IsCompressed reports whether the answers of an operation may be compressed:
// lists of what can be many, and the contract. None of them has credentials that
// Countersign makes or keeps (tokens, codes, sessions, people), nor text of mail,
// which strangers write; a test holds that. What is not here is sent as it is.
func IsCompressed(operation string) bool {
	switch operation {
	case "listActions", "listAttempts", "listHistory", "listVotes",
		"getInbox", "getInboxCounts",
		"listExecutions", "getExecution",
		"listWorkflows", "getWorkflow",
		"listDeadLetters", "getDeadLetter",
		"listTools", "getOverview",
		"getOpenAPIAsJSON":
		return true
	}
	return false
}
