package settings

import (
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// Viewer is somebody who looks at the catalog, as policy would see what they
// propose.
type Viewer struct {
	Employee envelope.EmployeeID
	Session  string
	// Tools are the patterns of the tools that their token is for; nil is all.
	Tools      []string
	Automation string
	// Now is the database's clock, which says what has expired.
	Now time.Time
}

// Visible returns, in order of key, the tools that a viewer may use: those
// that their sources offer now and that policy does not deny the viewer
// whatever the arguments.
func (s *Settings) Visible(by Viewer) []*catalog.Tool {
	var seen []*catalog.Tool
	for _, t := range s.Tools() {
		if s.Offers(t) && s.MayUse(t, by) {
			seen = append(seen, t)
		}
	}
	return seen
}

// MayUse reports whether policy does not deny a viewer a tool whatever the arguments.
func (s *Settings) MayUse(t *catalog.Tool, by Viewer) bool {
	return s.Decide(t, by.Proposal(t)).Mode != envelope.ModeDeny
}

// Proposal is a call of a tool by the viewer, without a word about its
// arguments.
func (by Viewer) Proposal(t *catalog.Tool) Proposal {
	return Proposal{
		Automation: by.Automation, Employee: by.Employee, Session: by.Session, Tools: by.Tools, Risk: t.Risk.Envelope(),
		AnyArgs: true, Now: by.Now,
	}
}
