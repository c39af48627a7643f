// Package imap reads and changes mailboxes over IMAP. It owns the connections:
// TLS unless told otherwise, login, reconnecting, waiting, and the share of the
// server's limits that it uses. A Reader only ever sends commands that leave a
// mailbox as it is. Errors hold neither secrets nor what the server wrote.
package imap

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/safehttp"
)

// Security is how a connection is protected.
type Security string

// The ways. The zero value is TLS from the first byte.
const (
	TLS      Security = ""
	StartTLS Security = "starttls"
	// Plain is no protection. It connects to the local machine alone, unless
	// Config.AllowPlain says otherwise.
	Plain Security = "plain"
)

// Login is how the secret is shown to the server.
type Login string

// The ways. The zero value is a password, as AUTHENTICATE PLAIN where the
// server offers it and LOGIN where not. The other two take an access token:
// OAUTHBEARER is RFC 7628, XOAUTH2 what Google and Microsoft had before.
const (
	Password    Login = ""
	OAuthBearer Login = "oauthbearer"
	XOAuth2     Login = "xoauth2"
)

// Config is how an account is reached. Address, Username and Secret are
// required.
type Config struct {
	// Address is host:port.
	Address  string
	Username string
	// Secret returns the password or the access token. It is asked for each
	// connection, so that a token can be renewed.
	Secret func(context.Context) (string, error)

	Security   Security
	AllowPlain bool
	Login      Login
	// TLSConfig, if not nil, holds the roots to trust.
	TLSConfig *tls.Config
	// Networks are allowed as addresses of the server besides the public internet.
	Networks []netip.Prefix

	// MaxSize is the most bytes of a message; 32 MiB if it is 0.
	MaxSize int64
	// Interval is how long Wait waits where the server does not tell of changes; a
	// minute if it is 0.
	Interval time.Duration
	// Idle is for how many folders a connection waits for changes; 2 if it is 0, and
	// none if it is negative. Providers allow 10 to 15 connections.
	Idle int
	// IdleRenewal is after how long a waiting connection proves that it is alive; 4
	// minutes if it is 0, and never more than 29 minutes.
	IdleRenewal time.Duration
	// Timeout is how long the server may say nothing while a command runs; 2 minutes
	// if it is 0.
	Timeout time.Duration
	// Quota limits the commands and the downloads of all readers and writers that
	// share it. Without it each has one of its own, for the provider of the host.
	Quota *quota.Bucket
	// Attempts is how often a call is tried on new connections; 5 if it is 0.
	Attempts int
	// Backoff is the mean wait before the second attempt, which then doubles; half
	// a second if it is 0.
	Backoff time.Duration
}

// withDefaults checks a configuration and completes it.
func (c Config) withDefaults() (Config, error) {
	host, _, err := net.SplitHostPort(c.Address)
	if err != nil || host == "" {
		return c, fmt.Errorf("IMAP address %q is not host:port: %w", c.Address, mailbox.ErrInvalid)
	}
	if c.Username == "" || c.Secret == nil {
		return c, fmt.Errorf("IMAP account at %s needs a user name and a secret: %w", c.Address, mailbox.ErrInvalid)
	}
	switch c.Security {
	case TLS, StartTLS, Plain:
	default:
		return c, fmt.Errorf("IMAP security %q is not known: %w", c.Security, mailbox.ErrInvalid)
	}
	switch c.Login {
	case Password, OAuthBearer, XOAuth2:
	default:
		return c, fmt.Errorf("IMAP login %q is not known: %w", c.Login, mailbox.ErrInvalid)
	}
	if err := (safehttp.Guard{Networks: c.Networks}).Check(); err != nil {
		return c, fmt.Errorf("IMAP networks: %w", err)
	}
	c.MaxSize = cmp.Or(max(c.MaxSize, 0), 32<<20)
	c.Interval = cmp.Or(max(c.Interval, 0), time.Minute)
	c.Idle = cmp.Or(c.Idle, 2)
	c.IdleRenewal = min(cmp.Or(max(c.IdleRenewal, 0), 4*time.Minute), 29*time.Minute)
	c.Timeout = cmp.Or(max(c.Timeout, 0), 2*time.Minute)
	c.Attempts = cmp.Or(max(c.Attempts, 0), 5)
	c.Backoff = cmp.Or(max(c.Backoff, 0), 500*time.Millisecond)
	if c.Quota == nil {
		c.Quota = quota.New(quota.OfIMAP(host))
	}
	return c, nil
}

// guard says which addresses the server may have.
func (c Config) guard() safehttp.Guard {
	return safehttp.Guard{Networks: c.Networks, LoopbackOnly: c.Security == Plain && !c.AllowPlain}
}
