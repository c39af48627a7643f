package mcpmail

// SetMaxPages limits the listings of a reader, before its first use.
func SetMaxPages(r *Reader, most int) { r.maxPages = most }
