// Package imap reads and changes mailboxes over IMAP. It owns the connections:
// TLS by default, login, reconnecting, IDLE, and the quota of the server. A
// Reader only sends commands that do not change a mailbox. Errors contain
// neither secrets nor text of the server.
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

// Security is the protection of a connection.
type Security string

// The protections. The zero value is TLS from the first byte.
const (
	TLS      Security = ""
	StartTLS Security = "starttls"
	// Plain is without protection. It only connects to the local machine,
	// unless Config.AllowPlain is set.
	Plain Security = "plain"
)

// Login is the method of authentication.
type Login string

// The methods. The zero value is a password: AUTHENTICATE PLAIN if the server
// offers it, else LOGIN. The other two take an access token: OAUTHBEARER is RFC
// 7628, XOAUTH2 its predecessor at Google and Microsoft.
const (
	Password    Login = ""
	OAuthBearer Login = "oauthbearer"
	XOAuth2     Login = "xoauth2"
)

// Config configures an account. Address, Username and Secret are required.
type Config struct {
	// Address is host:port.
	Address  string
	Username string
	// Secret returns the password or the access token. It is called for each
	// connection, so that a token can be renewed.
	Secret func(context.Context) (string, error)

	Security   Security
	AllowPlain bool
	Login      Login
	// TLSConfig, if not nil, holds the roots to trust.
	TLSConfig *tls.Config
	// Networks are allowed addresses of the server in addition to the public
	// internet.
	Networks []netip.Prefix

	// MaxSize limits the bytes of a message; 0 means 32 MiB.
	MaxSize int64
	// Interval is the time that Wait waits if the server does not send changes;
	// 0 means a minute.
	Interval time.Duration
	// Idle is the number of folders with an idling connection; 0 means 2, a
	// negative number none. Providers allow 10 to 15 connections.
	Idle int
	// IdleRenewal is the interval at which IDLE is renewed, to detect dead
	// connections; 0 means 4 minutes, and the limit is 29 minutes.
	IdleRenewal time.Duration
	// Timeout is how long the server may be silent during a command; 0 means 2
	// minutes.
	Timeout time.Duration
	// Quota limits the commands and the downloads of all readers and writers
	// that share it. If nil, each has its own, for the provider of the host.
	Quota *quota.Bucket
	// Attempts limits the connections that a call is tried on; 0 means 5.
	Attempts int
	// Backoff is the mean wait before the second attempt, and doubles for each
	// further one; 0 means half a second.
	Backoff time.Duration
}

// withDefaults checks a configuration and sets the defaults.
func (c Config) withDefaults() (Config, error) {
	host, _, err := net.SplitHostPort(c.Address)
	if err != nil || host == "" {
		return c, fmt.Errorf("invalid IMAP address %q, want host:port: %w", c.Address, mailbox.ErrInvalid)
	}
	if c.Username == "" || c.Secret == nil {
		return c, fmt.Errorf("IMAP account at %s needs a user name and a secret: %w", c.Address, mailbox.ErrInvalid)
	}
	switch c.Security {
	case TLS, StartTLS, Plain:
	default:
		return c, fmt.Errorf("unknown IMAP security %q: %w", c.Security, mailbox.ErrInvalid)
	}
	switch c.Login {
	case Password, OAuthBearer, XOAuth2:
	default:
		return c, fmt.Errorf("unknown IMAP login %q: %w", c.Login, mailbox.ErrInvalid)
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

// guard returns the guard over the addresses of the server.
func (c Config) guard() safehttp.Guard {
	return safehttp.Guard{Networks: c.Networks, LoopbackOnly: c.Security == Plain && !c.AllowPlain}
}
