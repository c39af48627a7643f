package mcpserver

import (
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// operationOf returns the operation of the REST API that does what a tool does.
// Whoever may use the operation may call the tool, and nobody else.
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

// mustEnd reports whether an open request has to end, because its token is no
// longer valid or grants its holder something else than before.
func (o *openRequest) mustEnd(by identity.Principal, err error) bool {
	if err != nil {
		return isAuthError(err)
	}
	return !by.Equal(o.by)
}

// hasSession reports whether a session is served by ts. A session of an earlier
// token server has the rights that its holder had then.
func (ts *tokenServer) hasSession(session string) bool {
	for s := range ts.server.Sessions() {
		if s.ID() == session {
			return true
		}
	}
	return false
}

// closeSessions closes every session, and waits for their calls.
func (ts *tokenServer) closeSessions() {
	for s := range ts.server.Sessions() {
		_ = s.Close() // the connection is being closed
	}
}
