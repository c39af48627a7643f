package rest

import (
	"net/http"

	"github.com/countersign-dev/countersign/internal/insight/guide"
)

// getGuide tells the caller what it has to know to act, from the catalog as it
// is now and as far as the caller may use it.
func (s *Server) getGuide(c *call) error {
	sh, err := s.shelf(c)
	if err != nil {
		return err
	}
	facts := guide.Facts{Session: c.by.Session != "", Limits: sh.snap.Limits.Session(), Buckets: sh.snap.Limits.BucketNames()}
	visible := sh.snap.Visible(sh.by)
	if q := c.query.Get("q"); q != "" {
		facts.Searched, visible = true, sh.snap.Search(visible, q)
	}
	for _, t := range visible {
		facts.Tools = append(facts.Tools, guide.Tool{Tool: t, Mode: sh.snap.Decide(t, sh.by.Proposal(t)).Mode})
	}
	// What depends on who asks belongs in nobody else's cache.
	c.w.Header().Set("Cache-Control", "private, no-store")
	writeBody(c.w, http.StatusOK, "text/markdown; charset=utf-8", guide.Markdown(facts))
	return nil
}
