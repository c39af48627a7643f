package request

// PreviewBytes is how much of the arguments of an item a summary shows.
const PreviewBytes = 2048

// Summary reports whether the query asks for summaries of the items of a list.
func (c *Call) Summary() bool { return c.Query.Get("view") == "summary" }
