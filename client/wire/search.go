package wire

// SearchResult is something that a search found.
type SearchResult struct {
	// Kind is action, tool, source, bucket, session, automation, employee, person,
	// workflow or dead_letter.
	Kind string `json:"kind"`
	// ID is the id in the API's paths and filters.
	ID string `json:"id"`
	// Label is a line for people.
	Label string `json:"label"`
}
