package imap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// xoauth2 is the SASL mechanism XOAUTH2 of Google and Microsoft: an initial
// response, and an empty response to the error.
type xoauth2 struct{ username, token string }

func (x xoauth2) Start() (mechanism string, initial []byte, err error) {
	return "XOAUTH2", []byte("user=" + x.username + "\x01auth=Bearer " + x.token + "\x01\x01"), nil
}

func (x xoauth2) Next([]byte) ([]byte, error) { return []byte{}, nil }

// login authenticates with the secret. The server's answer stays out of the
// error, since servers repeat the credentials that they received.
func (c Config) login(ctx context.Context, client *imapclient.Client) error {
	secret, err := c.Secret(ctx)
	if err != nil {
		return fmt.Errorf("secret of the IMAP account at %s: %w", c.Address, err)
	}
	switch c.Login {
	case OAuthBearer:
		host, port, _ := net.SplitHostPort(c.Address)
		number, _ := strconv.Atoi(port)
		err = client.Authenticate(sasl.NewOAuthBearerClient(&sasl.OAuthBearerOptions{
			Username: c.Username, Token: secret, Host: host, Port: number,
		}))
	case XOAuth2:
		err = client.Authenticate(xoauth2{c.Username, secret})
	case Password:
		caps := client.Caps()
		if caps.Has(imap.AuthCap(sasl.Plain)) || caps.Has(imap.CapLoginDisabled) {
			err = client.Authenticate(sasl.NewPlainClient("", c.Username, secret))
		} else {
			err = client.Login(c.Username, secret).Wait()
		}
	}
	return c.loginError(err)
}

func (c Config) loginError(err error) error {
	if err == nil {
		return nil
	}
	denied := fmt.Errorf("IMAP server %s refuses the login: check user name and secret: %w", c.Address, mailbox.ErrDenied)
	if _, ok := errors.AsType[*sasl.OAuthBearerError](err); ok {
		return denied
	}
	answer, ok := errors.AsType[*imap.Error](err)
	if !ok {
		return c.fault("login", err)
	}
	if busy := c.busy(answer); busy != nil {
		return busy
	}
	if answer.Code == imap.ResponseCodeUnavailable {
		return errUnavailable
	}
	return denied
}
