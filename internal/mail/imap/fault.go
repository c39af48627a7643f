package imap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"

	"github.com/emersion/go-imap/v2"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/safehttp"
)

var (
	// errConnection marks errors that a new connection may resolve.
	errConnection = errors.New("the connection failed")
	// errUnavailable is the error for a server that reports that it is
	// unavailable for now.
	errUnavailable = fmt.Errorf("the server is not available for now: %w", errConnection)
)

// fault converts an error of the library into one of this package. It keeps the
// server's code and drops its text.
func (c Config) fault(doing string, err error) error {
	if err == nil || c.final(err) {
		return err
	}
	answer, ok := errors.AsType[*imap.Error](err)
	if !ok {
		return fmt.Errorf("IMAP server %s: %s: %w", c.Address, doing, errConnection)
	}
	if busy := c.busy(answer); busy != nil {
		return busy
	}
	kind := mailbox.ErrUnsupported
	switch answer.Code {
	case imap.ResponseCodeNonExistent, imap.ResponseCodeTryCreate:
		kind = mailbox.ErrNoFolder
	case imap.ResponseCodeNoPerm, imap.ResponseCodeAuthorizationFailed, imap.ResponseCodePrivacyRequired, imap.ResponseCodeExpired:
		kind = mailbox.ErrDenied
	case imap.ResponseCodeTooBig:
		kind = mailbox.ErrTooLarge
	case imap.ResponseCodeUnavailable, imap.ResponseCodeServerBug, imap.ResponseCodeCorruption:
		kind = errUnavailable
	}
	if answer.Type == imap.StatusResponseTypeBye {
		kind = errConnection
	}
	return fmt.Errorf("IMAP server %s: %s: %s %s: %w", c.Address, doing, answer.Type, knownCode(answer.Code), kind)
}

// final reports whether an error is already one of those for callers.
func (c Config) final(err error) bool {
	for _, known := range []error{
		mailbox.ErrGone, mailbox.ErrTooLarge, mailbox.ErrChanged, mailbox.ErrExists, mailbox.ErrNoFolder,
		mailbox.ErrUnsupported, mailbox.ErrDenied, mailbox.ErrBusy, mailbox.ErrInvalid,
		context.Canceled, context.DeadlineExceeded, errConnection,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// busy returns the error for an answer about a reached limit, and delays
// further commands.
func (c Config) busy(answer *imap.Error) error {
	reason := ""
	switch strings.ToUpper(string(answer.Code)) {
	case "LIMIT", "THROTTLED", "TOOMANY":
		reason = "the server's limit was reached"
	case "OVERQUOTA":
		reason = "the account is over its quota"
	case "INUSE":
		return &mailbox.BusyError{Reason: "the folder is in use"}
	case "ALERT", "":
		// Gmail and others have no code for this.
		if text := strings.ToLower(answer.Text); strings.Contains(text, "too many") {
			reason = "the server allows no more connections or commands"
		}
	}
	if reason == "" {
		return nil
	}
	return c.Quota.Close(reason, 0)
}

// knownCode returns a response code that is safe to show: a short atom.
func knownCode(code imap.ResponseCode) string {
	if code == "" || len(code) > 30 || mailbox.CheckFlag(string(code)) != nil {
		return "without a code"
	}
	return "[" + strings.ToUpper(string(code)) + "]"
}

// dialFault is fault for opening a connection: a forbidden address and an
// invalid certificate are permanent.
func (c Config) dialFault(err error) error {
	if errors.Is(err, safehttp.ErrForbidden) {
		if c.guard().LoopbackOnly {
			return fmt.Errorf("IMAP server %s: without TLS only the local machine is allowed, at addresses of allowed networks: allow 127.0.0.0/8 or ::1 if it is there: %w", c.Address, mailbox.ErrDenied)
		}
		return fmt.Errorf("IMAP server %s: %w: allow its network: %w", c.Address, safehttp.ErrForbidden, mailbox.ErrDenied)
	}
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Errorf("IMAP server %s: %w: %w", c.Address, bad, mailbox.ErrDenied)
	}
	if bad, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Errorf("IMAP server %s: %w: %w", c.Address, bad, mailbox.ErrDenied)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return fmt.Errorf("IMAP server %s does not speak TLS at this port: %w", c.Address, mailbox.ErrDenied)
	}
	return fmt.Errorf("IMAP server %s: connect: %w", c.Address, errConnection)
}
