package mcpmail

// SetMaxPages bounds the listings of a reader, before it is first used.
func SetMaxPages(r *Reader, most int) { r.maxPages = most }
