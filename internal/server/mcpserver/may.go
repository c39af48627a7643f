package mcpserver

import (
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// operationOf is the operation of the REST API that does what a tool does: who
// may call the one may call the other, and nobody else.
func operationOf(tool string) string {
	switch tool {
	case toolSearch:
		return "listTools"
	case toolWait:
		return "waitForAction"
	case toolStatus:
		return "getAction"
	case toolUndo:
		return "undoAction"
	}
	return "submitAction"
}

// over says why a request that is open has to end: its token is no longer
// valid, or says something else of its holder than it did.
func (o *open) over(by identity.Principal, err error) bool {
	if err != nil {
		return turnedAway(err)
	}
	return !by.Equal(o.by)
}

// owns says that a session is served at this desk. One of a desk that was
// there before would go on with what its holder was allowed then.
func (d *desk) owns(session string) bool {
	for s := range d.server.Sessions() {
		if s.ID() == session {
			return true
		}
	}
	return false
}

// leave closes every session. It waits for their calls.
func (d *desk) leave() {
	for s := range d.server.Sessions() {
		_ = s.Close() // its error is of a connection that is being left
	}
}
