package mail

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/smtp"
	"net/textproto"
	"strconv"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
)

// The kinds of protection of a connection to a server.
const (
	tlsImplicit = "implicit"
	tlsStart    = "starttls"
	tlsNone     = "none"
)

// Submission is the server that takes an account's mail (RFC 6409).
type Submission struct {
	Host string `json:"host"`
	Port int    `json:"port,omitzero"`
	// TLS is implicit (the default), starttls, or none, which is for servers on
	// the same machine.
	TLS string `json:"tls,omitzero"`
}

// Submitter submits mail. The zero value has no server.
type Submitter struct {
	Submission
	User string
	// XOAuth2 authenticates with an access token in place of a password.
	XOAuth2 bool
	Secret  Secret
	Guard   safehttp.Guard
	// TLSConfig, if not nil, holds the roots to trust.
	TLSConfig *tls.Config
}

// submitter returns how an account submits mail.
func (a Mailbox) submitter(secret Secret, guard safehttp.Guard) Submitter {
	if a.SMTP == nil {
		return Submitter{}
	}
	return Submitter{Submission: *a.SMTP, User: a.User, XOAuth2: a.Auth == "xoauth2", Secret: secret, Guard: guard}
}

// xoauth2 is the SASL mechanism XOAUTH2, with an empty response to the error.
type xoauth2 struct{ user, token string }

// Start implements smtp.Auth.
func (x xoauth2) Start(server *smtp.ServerInfo) (mechanism string, initial []byte, err error) {
	if !server.TLS {
		return "", nil, errors.New("a token needs TLS")
	}
	return "XOAUTH2", []byte("user=" + x.user + "\x01auth=Bearer " + x.token + "\x01\x01"), nil
}

// Next implements smtp.Auth.
func (x xoauth2) Next(_ []byte, more bool) ([]byte, error) {
	if more {
		return []byte{}, nil
	}
	return nil, nil
}

// submit sends a message to its recipients, to all or to none. It returns nil if
// the server took the message.
func (s *Source) submit(ctx context.Context, by Submitter, from string, to []string, raw []byte) *source.Observation {
	client, err := by.connect(ctx)
	if err != nil {
		return new(s.unsent(ctx, err))
	}
	defer func() { _ = client.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = client.Close() }) // the library has no contexts
	defer stop()
	if err := client.Mail(from); err != nil {
		return new(s.unsent(ctx, err))
	}
	for _, address := range to {
		if err := client.Rcpt(address); err != nil {
			return new(s.unsent(ctx, err))
		}
	}
	body, err := client.Data()
	if err == nil {
		_, err = body.Write(raw)
	}
	if err != nil {
		return new(s.unsent(ctx, err)) // without its end a message is not sent
	}
	if err := body.Close(); err != nil {
		answer, answered := errors.AsType[*textproto.Error](err)
		switch {
		case answered && answer.Code/100 == 2: // the library knows 250 alone
			return nil
		case answered && answer.Code >= 400:
			return new(s.unsent(ctx, err))
		}
		code := source.CodeLost
		if ctx.Err() != nil {
			code = source.EndedCode(ctx)
		}
		return &source.Observation{Written: true, Code: code, Message: s.name + ": the server did not confirm the mail, which it may have sent"}
	}
	_ = client.Quit() // the message is with the server
	return nil
}

// connect connects and authenticates.
func (by Submitter) connect(ctx context.Context) (*smtp.Client, error) {
	port := map[string]int{"": 465, tlsImplicit: 465, tlsStart: 587, tlsNone: 25}[by.TLS]
	guard := by.Guard
	guard.LoopbackOnly = by.TLS == tlsNone
	socket, err := guard.Transport().DialContext(ctx, "tcp", net.JoinHostPort(by.Host, strconv.Itoa(cmp.Or(by.Port, port))))
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = socket.Close() })
	defer stop()
	config := new(tls.Config)
	if by.TLSConfig != nil {
		config = by.TLSConfig.Clone()
	}
	config.ServerName = by.Host
	if by.TLS == "" || by.TLS == tlsImplicit {
		socket = tls.Client(socket, config)
	}
	client, err := smtp.NewClient(socket, by.Host)
	if err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	if err := by.secure(ctx, client, config); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return client, nil
}

// secure starts TLS and authenticates.
func (by Submitter) secure(ctx context.Context, client *smtp.Client, config *tls.Config) error {
	if by.TLS == tlsStart {
		if offered, _ := client.Extension("STARTTLS"); !offered {
			return fmt.Errorf("the server does not offer STARTTLS: %w", mailbox.ErrDenied)
		}
		if err := client.StartTLS(config); err != nil {
			return err
		}
	}
	if by.Secret == nil {
		return nil
	}
	secret, err := by.Secret(ctx)
	if err != nil {
		return err
	}
	var auth smtp.Auth = smtp.PlainAuth("", by.User, secret, by.Host)
	if by.XOAuth2 {
		auth = xoauth2{by.User, secret}
	}
	if offered, _ := client.Extension("AUTH"); !offered {
		return fmt.Errorf("the server offers no authentication: %w", mailbox.ErrDenied)
	}
	if err := client.Auth(auth); err != nil {
		if answer, ok := errors.AsType[*textproto.Error](err); ok && answer.Code < 500 {
			return err
		}
		return fmt.Errorf("%w: %w", err, mailbox.ErrDenied)
	}
	return nil
}

// unsent returns the observation of a message that the server certainly did not
// take. The server's text is not shown, since it is untrusted.
func (s *Source) unsent(ctx context.Context, err error) source.Observation {
	answer, answered := errors.AsType[*textproto.Error](err)
	_, certificate := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case errors.Is(err, safehttp.ErrForbidden):
		return source.Forbidden()
	case errors.Is(err, mailbox.ErrDenied) || certificate:
		return s.refuse(source.CodeUnauthorized, "the server for outgoing mail refuses the login, lacks STARTTLS, or does not prove its name")
	case answered && answer.Code >= 500:
		return s.refuse(source.CodeRejected, "the server for outgoing mail rejects the mail or a recipient; it was sent to nobody")
	case ctx.Err() != nil:
		return source.Observation{Code: source.EndedCode(ctx)}
	case answered:
		return source.Observation{Code: source.CodeRateLimited, Message: s.name + ": the server for outgoing mail asks to try again later"}
	}
	return source.Observation{Code: source.CodeUnreachable, Message: s.name + ": the server for outgoing mail cannot be reached"}
}
