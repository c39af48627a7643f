package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
)

const (
	// wordsLines and wordsBytes bound what is shown of a child's standard error.
	wordsLines, wordsBytes = 5, 800
	// exitGrace is how long a child that closed its output has to exit, so that
	// its exit code is known.
	exitGrace = 500 * time.Millisecond
)

// why says why the server could not be listed, for people: what the transport
// met, where, and what a child said last. The configured secrets are not in it.
func (s *Source) why(err error, sess *session) string {
	var words string
	if sess != nil {
		words = sess.conn.lastWords()
	}
	var met seen
	if refused, ok := errors.AsType[*connectError](err); ok {
		met, words = refused.seen, words+refused.words
	}
	var text string
	switch {
	case errors.Is(err, source.ErrClosed):
		return "the source was closed meanwhile"
	case errors.Is(err, safehttp.ErrForbidden) || errors.Is(met.failed, safehttp.ErrForbidden):
		return source.Forbidden().Message
	case met.status >= 300:
		text = fmt.Sprintf("it answered with status %d", met.status)
	case errors.Is(err, context.DeadlineExceeded):
		text = "no answer within " + s.cfg.ListTimeout.String()
	case met.failed != nil:
		text = met.failed.Error() // of the transport, which does not repeat the URL
	default:
		text = strings.TrimPrefix(printable(err).Error(), "connect: ")
	}
	if s.cfg.Transport == TransportHTTP {
		return s.clean(s.address() + ": " + text)
	}
	program := filepath.Base(s.cfg.Command[0])
	if words == "" {
		return s.clean("the program " + program + ": " + text)
	}
	return s.clean("the program " + program + " " + words + " (" + text + ")")
}

// address is where the server is, without the path and the query, which may
// hold secrets.
func (s *Source) address() string {
	u, err := url.Parse(s.cfg.URL)
	if err != nil {
		return "the server"
	}
	return u.Scheme + "://" + u.Host
}

// clean takes secrets and characters that do not print out of a text.
func (s *Source) clean(text string) string {
	var secrets []string
	for _, pair := range s.cfg.Env {
		_, value, _ := strings.Cut(pair, "=")
		secrets = append(secrets, value)
	}
	for _, values := range s.cfg.Header {
		for _, value := range values {
			secrets = append(append(secrets, value), strings.Fields(value)...)
		}
	}
	for _, secret := range secrets {
		if len(secret) >= 4 { // a shorter one is in too many words
			text = strings.ReplaceAll(text, secret, "[REDACTED]")
		}
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, redact.Text(text))
}

// lastWords says how the child ended, if it did, and the last lines of its
// standard error, as one line.
func (p *process) lastWords() string {
	state := "is running"
	timer := time.NewTimer(exitGrace)
	defer timer.Stop()
	select {
	case <-p.exited:
		<-p.drained // ends drainGrace after the exit at the latest
		state = "ended with " + p.cmd.ProcessState.String()
		if p.stopped.Load() && p.cmd.ProcessState.ExitCode() < 0 { // by our signal
			state = "was stopped"
		}
	case <-timer.C:
	}
	text := p.tail.String()
	if len(text) > wordsBytes {
		text = text[len(text)-wordsBytes:]
	}
	var lines []string
	for line := range strings.Lines(strings.ToValidUTF8(text, "")) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return state + " and wrote nothing to its standard error"
	}
	return state + "; its standard error ends in: " + strings.Join(lines[max(0, len(lines)-wordsLines):], " | ")
}
