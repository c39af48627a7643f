package oauth

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

const (
	// pendingFor is how long a person may take to consent, and pendingPurpose what
	// the request is encrypted for meanwhile.
	pendingFor     = 10 * time.Minute
	pendingPurpose = "consent to a program"
	maxState       = 2000
)

// authorize answers GET /oauth/authorize: it checks the request, and sends the
// browser to the page where a person consents. An error that is about the program or
// its address is shown; any other goes back to the program.
func (s *Server) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	for name, values := range q {
		if len(values) > 1 && name != "resource" {
			http.Error(w, "The parameter "+known(name)+" is sent twice. Close this page, and report it to the maker of the program.", http.StatusBadRequest)
			return
		}
	}
	c, err := s.client(r.Context(), q.Get("client_id"))
	e, refused := err.(refusal)
	switch {
	case err != nil && !refused:
		s.refuse(w, r, err)
		return
	case refused:
		http.Error(w, "This program is not known here: "+e.Description+". Remove the server from the program, and add it again.", http.StatusBadRequest)
		return
	case !c.redirects(q.Get("redirect_uri")):
		http.Error(w, "The program did not register this redirect address. Close this page, and report it to the maker of the program.", http.StatusBadRequest)
		return
	}
	p := identity.PendingProgram{
		ProgramLogin: identity.ProgramLogin{
			ClientID: c.ID, Program: c.Name, RedirectURI: q.Get("redirect_uri"), Resource: s.Resource(), Challenge: q.Get("code_challenge"),
		},
		State: q.Get("state"), Scopes: granted(q.Get("scope")), Until: time.Now().Add(pendingFor), Host: c.host(),
	}
	if err := s.check(q, p); err != nil {
		s.back(w, r, p, err)
		return
	}
	p.Browser = s.cfg.Bind(w, r)
	text, err := s.encrypt(pendingPurpose, p)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, string(s.cfg.Base)+"/connect?request="+text, http.StatusSeeOther)
}

// known returns the name of a parameter of OAuth, and nothing of any other text.
func known(name string) string {
	for _, of := range []string{"client_id", "redirect_uri", "response_type", "scope", "state", "code_challenge", "code_challenge_method"} {
		if name == of {
			return of
		}
	}
	return "of the request"
}

// check returns a refusal for a request whose program and address are right.
func (s *Server) check(q url.Values, p identity.PendingProgram) error {
	switch {
	case len(p.State) > maxState:
		return refusal{"invalid_request", "state is longer than 2000 bytes"}
	case q.Get("response_type") != "code":
		return refusal{"unsupported_response_type", "response_type must be code"}
	case len(p.Challenge) != 43 || strings.ContainsFunc(p.Challenge, func(r rune) bool { return !unreserved(r) }):
		return refusal{"invalid_request", "code_challenge is required: the SHA-256 of the verifier in base64url"}
	case q.Get("code_challenge_method") != "S256":
		return refusal{"invalid_request", "code_challenge_method must be S256"}
	}
	for _, resource := range q["resource"] {
		if resource != s.Resource() {
			return refusal{"invalid_target", "resource must be " + s.Resource()}
		}
	}
	return nil
}

// unreserved reports whether base64url has a character.
func unreserved(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

// back sends the browser back to the program with an error.
func (s *Server) back(w http.ResponseWriter, r *http.Request, p identity.PendingProgram, err error) {
	if len(p.State) > maxState {
		p.State = ""
	}
	e := err.(refusal) // check returns no other
	http.Redirect(w, r, s.answer(p, url.Values{"error": {e.Code}, "error_description": {e.Description}}), http.StatusFound)
}

// answer returns the address of the program with the parameters of an answer.
func (s *Server) answer(p identity.PendingProgram, with url.Values) string {
	u, err := url.Parse(p.RedirectURI)
	if err != nil { // it was parsed before
		return p.RedirectURI
	}
	if p.State != "" {
		with.Set("state", p.State)
	}
	with.Set("iss", string(s.cfg.Base))
	if u.RawQuery != "" {
		u.RawQuery += "&"
	}
	u.RawQuery += with.Encode()
	return u.String()
}

// Pending returns the request of a consent page. ok is false for one that is not of
// this server, or too old.
func (s *Server) Pending(text string, now time.Time) (p identity.PendingProgram, ok bool) {
	if !s.decrypt(pendingPurpose, text, &p) || !now.Before(p.Until) {
		return identity.PendingProgram{}, false
	}
	return p, true
}

// Consented returns where the browser goes with the code of a consent.
func (s *Server) Consented(p identity.PendingProgram, code identity.Token) string {
	return s.answer(p, url.Values{"code": {code.Text()}})
}

// Denied returns where the browser goes if the person does not consent.
func (s *Server) Denied(p identity.PendingProgram) string {
	return s.answer(p, url.Values{"error": {"access_denied"}, "error_description": {"the person did not consent"}})
}
