package mailsetup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/cli/tools"
	"github.com/countersign-dev/countersign/internal/source/mail"
	"github.com/countersign-dev/countersign/internal/source/oauth"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/discover"
)

const (
	// personFor bounds the time that a person has at the authorization server.
	personFor = 10 * time.Minute
	// browserFor bounds a request of the person's browser.
	browserFor = 10 * time.Second
	// xoauth2 is the method of authentication with access tokens: the large providers
	// have it.
	xoauth2 = "xoauth2"
)

// useOAuth decides whether the mailbox logs in with OAuth, and sets its authorization
// server.
func (s *setup) useOAuth(ctx context.Context, p place, m *mailbox) error {
	f := s.flags
	switch {
	case m.Kind == discover.Maildir:
		return nil
	case f.issuer != "":
		found, err := oauth.New(p.networks).Issuer(ctx, f.issuer, strings.Fields(f.scope))
		if err != nil {
			return err
		}
		m.provider.OAuth = &discover.OAuth{
			Issuer: found.Issuer, AuthorizeURL: found.AuthorizeURL, TokenURL: found.TokenURL, DeviceURL: found.DeviceURL, Read: found.Scope, Write: found.Scope,
		}
	case m.provider.OAuth == nil && f.clientID != "":
		return command.Misuse("the provider has no known authorization server; name it with --issuer")
	case f.password != "" || f.readPassword != "" || m.provider.OAuth == nil:
		if m.provider.OnlyOAuth {
			return command.Misuse("%s takes no passwords; register a client there, and name it with --client-id", m.provider.Title)
		}
		return nil
	}
	if f.clientID == "" && m.provider.AppPassword != "" && f.issuer == "" {
		return nil // the app password is simpler
	}
	if f.clientID == "" {
		return command.Misuse("%s wants a login with OAuth: register a client there (kind: desktop application), and name it with --client-id", m.provider.Title)
	}
	m.auth = xoauth2
	return nil
}

// authorization returns the authorization server for the source of the mailbox.
func (m mailbox) authorization() *mail.Authorization {
	if m.auth == "" {
		return nil
	}
	o := m.provider.OAuth
	return &mail.Authorization{
		Issuer: o.Issuer, AuthorizeURL: o.AuthorizeURL, TokenURL: o.TokenURL, DeviceURL: o.DeviceURL, Scope: o.Write, Offline: o.Offline,
	}
}

// readLogin has the person log in for reading. The result is the text of the secret.
// The source has a login of its own: a refresh token may be void after its use, and
// worker and triage renew theirs independently.
func (s *setup) readLogin(ctx context.Context, p place, m mailbox) (account.Login, error) {
	ctx, cancel := context.WithTimeout(ctx, personFor)
	defer cancel()
	o := m.provider.OAuth
	l := account.Login{Server: oauth.Server{
		Issuer: o.Issuer, AuthorizeURL: o.AuthorizeURL, TokenURL: o.TokenURL, DeviceURL: o.DeviceURL, Scope: o.Read, Offline: o.Offline,
	}}
	c := oauth.New(p.networks)
	s.say("Login for reading:")
	if s.flags.device {
		l.Client = l.Server.Configured(s.flags.clientID, s.flags.clientSecret, "")
		d, err := c.StartDevice(ctx, l.Server, l.Client, time.Now())
		if err != nil {
			return l, err
		}
		s.say("On any device, open\n\n  %s\n\nand enter the code %s. This waits until you have.", command.Safe(d.URL), command.Safe(d.UserCode))
		l.Tokens, err = poll(ctx, c, l, d)
		return l, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return l, fmt.Errorf("listen for the browser: %w", err)
	}
	redirect := "http://" + listener.Addr().String() + "/callback"
	l.Client = l.Server.Configured(s.flags.clientID, s.flags.clientSecret, redirect)
	state, verifier := oauth.NewVerifier(), oauth.NewVerifier()
	answers := make(chan answer, 1)
	server := &http.Server{Handler: callback(state, answers), ReadHeaderTimeout: browserFor, ReadTimeout: browserFor, WriteTimeout: browserFor, IdleTimeout: browserFor}
	ended := make(chan struct{})
	go func() { // the function waits for it
		defer close(ended)
		_ = server.Serve(listener) // it ends with Close
	}()
	defer func() {
		_ = server.Close() // there is nothing to finish
		<-ended
	}()
	s.say("Open in a browser:\n\n  %s\n", l.Server.AuthorizationURL(l.Client, state, verifier))
	select {
	case <-ctx.Done():
		return l, errors.New("no login within ten minutes; run the command again")
	case got := <-answers:
		if err := l.Server.CheckIssuer(got.issuer); err != nil {
			return l, err
		}
		if got.code == "" {
			return l, errors.New("the login was refused at the authorization server")
		}
		l.Tokens, err = c.Exchange(ctx, l.Server, l.Client, got.code, verifier, time.Now())
		return l, err
	}
}

// poll waits until the person has decided on another device.
func poll(ctx context.Context, c *oauth.Client, l account.Login, d oauth.Device) (oauth.Tokens, error) {
	for pause := d.Interval; ; {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return oauth.Tokens{}, ctx.Err()
		case <-timer.C:
		}
		tokens, pending, slower, err := c.Poll(ctx, l.Server, l.Client, d, time.Now())
		if err != nil || !pending {
			return tokens, err
		}
		if slower {
			pause += 5 * time.Second
		}
	}
}

// answer is the answer of an authorization server.
type answer struct{ code, issuer string }

// callback receives the browser of the person. Requests with another state do not
// count.
func callback(state string, answers chan<- answer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.URL.Path != "/callback" || q.Get("state") != state {
			http.Error(w, "This is not the login that was begun.", http.StatusBadRequest)
			return
		}
		select {
		case answers <- answer{q.Get("code"), q.Get("iss")}:
		default: // the first one counts
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprintln(w, "Back to the terminal: the login goes on there.") // the browser may be gone
	})
}

// sourceLogin has the person log in for the source, unless it has a login.
func (s *setup) sourceLogin(ctx context.Context, p place, id string) error {
	all, err := p.client.Sources(ctx)
	if err != nil {
		return err
	}
	for _, src := range all {
		if src.ID == id && src.Login != nil && src.Login.LostAt == nil {
			return nil
		}
	}
	s.say("Login for changes:")
	quiet := *s.app
	quiet.Out = s.app.Err // the result is not the one of this command
	return tools.LogIn(ctx, &quiet, p.client, id, wire.SourceLoginInput{
		Device: s.flags.device, ClientID: s.flags.clientID, ClientSecret: s.flags.clientSecret,
	}, s.in, listFor)
}
