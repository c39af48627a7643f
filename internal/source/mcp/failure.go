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
	// wordsLines and wordsBytes bound the shown part of a child's standard
	// error.
	wordsLines, wordsBytes = 5, 800
	// exitGrace is how long a child that closed its output may take to exit, so
	// that its exit code is known.
	exitGrace = 500 * time.Millisecond
)

// failureText explains a failed listing to people: the failure of the transport,
// its address, and the child's last output. It does not contain the configured
// secrets.
func (s *Source) failureText(err error, sess *session) string {
	var words string
	if sess != nil {
		words = sess.conn.childStatus()
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
	case source.LoginCode(met.failed) != "":
		return met.failed.Error()
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

// address returns the address of the server, without the path and the query,
// which may contain secrets.
func (s *Source) address() string {
	u, err := url.Parse(s.cfg.URL)
	if err != nil {
		return "the server"
	}
	return u.Scheme + "://" + u.Host
}

// clean removes secrets and unprintable characters from a text.
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

// status returns the exit status of the child, if it ended, and the last lines
// of its standard error, as one line.
func (p *process) status() string {
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
