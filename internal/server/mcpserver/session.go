package mcpserver

import (
	"net/http"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/internal/fault"
)

// session is an open session of an older version of the
// protocol. The Server's mutex guards it.
type session struct {
	of *sdk.ServerSession
	// calls counts the requests that are being answered, streams the open
	// streams of the server's own messages.
	calls, streams int
	// used is the start or end of the last request.
	used time.Time
	// ended reports whether the Server is closing the session: requests no longer
	// find it.
	ended bool
}

// opensSession reports whether a request may open a session.
func opensSession(r *http.Request) bool {
	return r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "" && r.Header.Get(versionHeader) < firstStateless
}

// session returns an open session of the holder; nil if there is none with
// this id. The caller holds the Server's mutex.
func (ts *tokenServer) session(id string, now time.Time) *session {
	for of := range ts.server.Sessions() {
		if id == "" || of.ID() != id {
			continue
		}
		s := ts.sessions[id]
		if s == nil {
			s = &session{of: of, used: now}
			ts.sessions[id] = s
		}
		if s.ended {
			return nil
		}
		return s
	}
	return nil
}

// forgetSessions forgets the sessions that are closed. The caller holds the
// Server's mutex.
func (ts *tokenServer) forgetSessions() {
	there := make(map[string]bool)
	for of := range ts.server.Sessions() {
		there[of.ID()] = true
	}
	for id := range ts.sessions {
		if !there[id] {
			delete(ts.sessions, id)
		}
	}
}

// openSessions returns the number of sessions that the holder has or is
// opening.
func (ts *tokenServer) openSessions() int {
	n := ts.opening
	for _, s := range ts.sessions {
		if !s.ended {
			n++
		}
	}
	return n
}

// admitSession makes room for another session of the holder. Many clients leave
// without ending theirs, so if the token or the tenant is at its limit, the
// session that was idle the longest is ended. The error is fault.Limited if all
// of them are in use. The caller holds the Server's mutex.
func (srv *Server) admitSession(ts *tokenServer) error {
	tenant, all := 0, []*tokenServer{}
	for _, other := range srv.servers {
		if other.by.Tenant == ts.by.Tenant {
			other.forgetSessions()
			tenant += other.openSessions()
			all = append(all, other)
		}
	}
	switch mine := ts.openSessions(); {
	case mine >= srv.cfg.Sessions:
		if srv.endIdlest(ts) {
			return nil
		}
		return fault.Exceeded(fault.Quota{Name: "token-sessions", Max: srv.cfg.Sessions, Reset: time.Minute},
			"this token has %d sessions, which is the limit, and a call runs in each; try again when one has ended", srv.cfg.Sessions)
	case tenant >= srv.cfg.TenantSessions:
		if srv.endIdlest(all...) {
			return nil
		}
		return fault.Exceeded(fault.Quota{Name: "tenant-sessions", Max: srv.cfg.TenantSessions, Reset: time.Minute},
			"this tenant has %d sessions, which is the limit, and a call runs in each; try again when one has ended", srv.cfg.TenantSessions)
	}
	return nil
}

// endIdlest ends the session that was idle the longest among those of some
// holders, and reports whether there was one without a call. A client that
// listens to its session has not left, and comes last. The caller holds the
// Server's mutex.
func (srv *Server) endIdlest(among ...*tokenServer) bool {
	var idlest *session
	for _, ts := range among {
		for _, s := range ts.sessions {
			if s.ended || s.calls > 0 {
				continue
			}
			if idlest == nil || s.before(idlest) {
				idlest = s
			}
		}
	}
	if idlest == nil {
		return false
	}
	idlest.ended = true
	srv.background.Go(func() { _ = idlest.of.Close() }) // its client has left, or opens another
	return true
}

// before reports whether a session is ended before another one.
func (s *session) before(other *session) bool {
	if (s.streams > 0) != (other.streams > 0) {
		return s.streams == 0
	}
	return s.used.Before(other.used)
}

// begin counts a request of a session; the function that it returns counts it
// out again. The caller of both holds the Server's mutex.
func (s *session) begin(answers bool) (end func()) {
	count := &s.streams
	if answers {
		count = &s.calls
	}
	*count++
	s.used = time.Now()
	return func() {
		*count--
		s.used = time.Now()
	}
}

// admit counts a request to the session that it belongs to or opens, until
// release is called. answer is the header of its answer, which names the session
// that it opened. The caller of both holds the Server's mutex.
func (ts *tokenServer) admit(r *http.Request, answer http.Header, answers bool) (release func(), err error) {
	id := r.Header.Get(sessionHeader)
	if id != "" {
		// A session of an earlier token server has the rights that its holder had
		// then.
		s := ts.session(id, time.Now())
		if s == nil {
			return nil, fault.New(fault.NotFound, "no such session; open another one")
		}
		return s.begin(answers), nil
	}
	if !opensSession(r) {
		return func() {}, nil
	}
	if err := ts.admitSession(ts); err != nil {
		return nil, err
	}
	ts.opening++
	return func() {
		ts.opening--
		_ = ts.session(answer.Get(sessionHeader), time.Now()) // counts it from now on
	}, nil
}
