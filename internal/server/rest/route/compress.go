package route

// IsCompressed reports whether the responses of an operation may be compressed:
// long lists, and the contract. None of them contains credentials that
// Countersign creates or keeps (tokens, codes, sessions, people), nor text of
// mail, which strangers write; a test checks that. All other operations are sent
// uncompressed.
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

// IsShared reports whether equal requests of a caller that wait at the same time may
// share an answer: reads that depend on nothing but the caller, the query and the
// database.
func IsShared(operation string) bool {
	switch operation {
	case "listActions", "getInbox", "getInboxCounts", "listTools", "getOverview":
		return true
	}
	return false
}
