package tools

import (
	"net/http"

	"github.com/countersign-dev/countersign/internal/insight/guide"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

// Guide handles GET /api/v1/guide. It describes the caller's rights and how to
// use them, in Markdown.
func Guide(c *request.Call) error {
	l, err := newListing(c)
	if err != nil {
		return err
	}
	facts := guide.Facts{Session: c.By.Session != "", Limits: l.snap.Limits.Session(), Buckets: l.snap.Limits.BucketNames()}
	visible := l.snap.Visible(l.by)
	if q := c.Query.Get("q"); q != "" {
		facts.Searched, visible = true, l.snap.Search(visible, q)
	}
	for _, t := range visible {
		facts.Tools = append(facts.Tools, guide.Tool{Tool: t, Mode: l.snap.Decide(t, l.by.Proposal(t)).Mode})
	}
	// The answer depends on the caller, so no shared cache may keep it.
	c.W.Header().Set("Cache-Control", "private, no-store")
	c.Write(http.StatusOK, "text/markdown; charset=utf-8", guide.Markdown(facts))
	return nil
}
