package modeltest

import (
	"cmp"
	"io"
	"net/http"
	"strings"
)

// Fault is a way in which a server fails.
type Fault string

// The faults. Those up to Huge come instead of an answer.
const (
	// Loading answers 503, as while a model is loaded.
	Loading Fault = "loading"
	// Full answers 429.
	Full Fault = "full"
	// Silent takes the question and never answers.
	Silent Fault = "silent"
	// Dropped ends the connection before an answer, and DroppedHalfway within one.
	Dropped        Fault = "dropped"
	DroppedHalfway Fault = "dropped halfway"
	// Redirect sends the client to the address Config.RedirectTo.
	Redirect Fault = "redirect"
	// Garbage answers 200 with something else than JSON.
	Garbage Fault = "garbage"
	// Huge answers with a body of many megabytes.
	Huge Fault = "huge"

	// Cut ends the answer at its greatest length.
	Cut Fault = "cut"
	// Overflow answers as to a prompt that is too long for the context.
	Overflow Fault = "overflow"
	// SilentCut reads half of the prompt and says nothing of that.
	SilentCut Fault = "silent cut"
	// Uncounted tells no numbers of tokens.
	Uncounted Fault = "uncounted"
	// WrongModel answers with another model.
	WrongModel Fault = "wrong model"
	// Ignored ignores the schema, and does what the prompt says.
	Ignored Fault = "schema ignored"
	// RemoteAnswer says in the answer that it was made elsewhere, and RemoteModel in
	// the list of models that the model runs elsewhere.
	RemoteAnswer Fault = "remote answer"
	RemoteModel  Fault = "remote model"
	// RemoteShown is RemoteModel where Ollama shows a model, and not in its list.
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

// Fail has every question fail in a way, until Recover.
func (s *Server) Fail(f Fault) { s.FailNext(-1, f) }

// FailNext has so many questions fail in a way.
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

// remoteModel reports whether models are to be listed as remote.
func (s *Server) remoteModel() bool { return s.failsWith(RemoteModel) }

// failsWith reports whether the next question fails in a way.
func (s *Server) failsWith(f Fault) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failing != 0 && s.fault == f
}

// refuse answers instead of the model. It reports whether it did.
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
		_, _ = io.WriteString(w, `{"choices":[`) // what the client has read is its affair
		drop(w)
	case Redirect:
		http.Redirect(w, r, cmp.Or(s.config.RedirectTo, "/elsewhere"), http.StatusTemporaryRedirect)
	case Garbage:
		_, _ = io.WriteString(w, "<html>It works!</html>") // the client may be gone
	case Huge:
		_, _ = io.Copy(w, io.LimitReader(endless{}, 64<<20)) // the client leaves
	case Cut, Overflow, SilentCut, Uncounted, WrongModel, Ignored, RemoteAnswer, RemoteModel, RemoteShown, Thinking, "":
		return false
	}
	return true
}

// drop ends the connection.
func drop(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	if h, ok := w.(http.Hijacker); ok {
		if conn, _, err := h.Hijack(); err == nil {
			_ = conn.Close() // it is to be lost
		}
	}
}

type endless struct{}

// Read implements io.Reader.
func (endless) Read(p []byte) (int, error) {
	return copy(p, strings.Repeat("x", len(p))), nil
}
