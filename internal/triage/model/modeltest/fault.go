package modeltest

import (
	"cmp"
	"io"
	"net/http"
	"strings"
)

// Fault is a failure mode of a server.
type Fault string

// The faults. Those up to Huge replace the answer.
const (
	// Loading answers 503, as during the loading of a model.
	Loading Fault = "loading"
	// Full answers 429.
	Full Fault = "full"
	// Silent accepts the question and never answers.
	Silent Fault = "silent"
	// Dropped closes the connection before an answer, and DroppedHalfway during
	// one.
	Dropped        Fault = "dropped"
	DroppedHalfway Fault = "dropped halfway"
	// Redirect redirects the client to Config.RedirectTo.
	Redirect Fault = "redirect"
	// Garbage answers 200 with something other than JSON.
	Garbage Fault = "garbage"
	// Huge answers with a body of many megabytes.
	Huge Fault = "huge"

	// Cut ends the answer at its length limit.
	Cut Fault = "cut"
	// Overflow answers that the prompt is too long for the context.
	Overflow Fault = "overflow"
	// SilentCut reads half of the prompt without reporting it.
	SilentCut Fault = "silent cut"
	// Uncounted returns no token counts.
	Uncounted Fault = "uncounted"
	// WrongModel answers with another model.
	WrongModel Fault = "wrong model"
	// Ignored ignores the schema and follows the prompt.
	Ignored Fault = "schema ignored"
	// RemoteAnswer marks the answer as made by another host, and RemoteModel
	// marks the model as remote in the list of models.
	RemoteAnswer Fault = "remote answer"
	RemoteModel  Fault = "remote model"
	// RemoteShown is RemoteModel in Ollama's description of a model but not in
	// its list.
	RemoteShown Fault = "remote shown"
	// Thinking writes a long text before the answer.
	Thinking Fault = "thinking"
)

// Faults returns every fault.
func Faults() []Fault {
	return []Fault{
		Loading, Full, Silent, Dropped, DroppedHalfway, Redirect, Garbage, Huge,
		Cut, Overflow, SilentCut, Uncounted, WrongModel, Ignored, RemoteAnswer, RemoteModel, RemoteShown, Thinking,
	}
}

// Fail makes every question fail until Recover.
func (s *Server) Fail(f Fault) { s.FailNext(-1, f) }

// FailNext makes the next n questions fail.
func (s *Server) FailNext(n int, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.failing = f, n
}

// Recover ends a fault.
func (s *Server) Recover() { s.FailNext(0, "") }

// next returns the fault of the next question.
func (s *Server) next() Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing == 0 {
		return ""
	}
	s.failing = max(s.failing-1, -1)
	return s.fault
}

// remoteModel reports whether models are listed as remote.
func (s *Server) remoteModel() bool { return s.failsWith(RemoteModel) }

// failsWith reports whether the next question fails with a fault.
func (s *Server) failsWith(f Fault) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failing != 0 && s.fault == f
}

// refuse handles a fault that replaces the answer, and reports whether it did.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, f Fault) bool {
	switch f {
	case Loading:
		writeError(w, http.StatusServiceUnavailable, "unavailable_error", "Loading model")
	case Full:
		writeError(w, http.StatusTooManyRequests, "rate_limit_error", "no slot is free")
	case Silent:
		select {
		case <-r.Context().Done():
		case <-s.closed:
		}
	case Dropped:
		drop(w)
	case DroppedHalfway:
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"choices":[`) // the client may be gone
		drop(w)
	case Redirect:
		http.Redirect(w, r, cmp.Or(s.config.RedirectTo, "/elsewhere"), http.StatusTemporaryRedirect)
	case Garbage:
		_, _ = io.WriteString(w, "<html>It works!</html>") // the client may be gone
	case Huge:
		_, _ = io.Copy(w, io.LimitReader(endless{}, 64<<20)) // the client closes the connection
	case Cut, Overflow, SilentCut, Uncounted, WrongModel, Ignored, RemoteAnswer, RemoteModel, RemoteShown, Thinking, "":
		return false
	}
	return true
}

// drop closes the connection.
func drop(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	if h, ok := w.(http.Hijacker); ok {
		if conn, _, err := h.Hijack(); err == nil {
			_ = conn.Close() // losing it is the purpose
		}
	}
}

type endless struct{}

// Read implements io.Reader.
func (endless) Read(p []byte) (int, error) {
	return copy(p, strings.Repeat("x", len(p))), nil
}
