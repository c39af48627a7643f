package account

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/eml"
	"github.com/countersign-dev/countersign/internal/mail/imap"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/maildir"
	"github.com/countersign-dev/countersign/internal/mail/mbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/triage/mcpmail"
)

// Access holds the triage process's resources for opening an account.
type Access struct {
	// Secret returns the password or the access token. It is called for each
	// connection, and not for accounts of files.
	Secret func(context.Context) (string, error)
	// Networks are allowed in addition to the public internet.
	Networks []netip.Prefix
	// Programs allows accounts to start programs, with the rights of the
	// process.
	Programs bool
	// Quota is the bucket of the provider; if nil, the reader has its own.
	Quota *quota.Bucket
}

// Quota returns the account's bucket among those of a process, or nil for
// files. Accounts of the same mailbox share one.
func (a Account) Quota(all *quota.Registry) *quota.Bucket {
	c := a.Connection
	switch a.Kind {
	case IMAP:
		return all.Bucket(quota.OfIMAP(c.Host), strings.ToLower(c.Host)+" "+c.User)
	case MCP:
		profile, err := mcpmail.ProfileOf(c.Server, c.Names)
		if err != nil {
			return nil
		}
		mailbox := c.URL + " " + strings.Join(c.Command, " ") + " " + a.SecretFrom
		if len(a.Secret) > 0 {
			mailbox += " " + a.ID.String() // two encrypted secrets cannot be compared
		}
		return all.Bucket(profile.Provider(), mailbox)
	case Maildir, Mbox, EML:
	}
	return nil
}

// Open returns a reader of the account. It does not connect.
func (a Account) Open(with Access) (mailbox.Reader, error) {
	c := a.Connection
	switch a.Kind {
	case IMAP:
		return imap.NewReader(imap.Config{
			Address: net.JoinHostPort(c.Host, strconv.Itoa(c.port())), Username: c.User, Secret: with.Secret,
			Security: securityOf(c.security()), Login: loginOf(c.auth()), Networks: with.Networks, Quota: with.Quota,
			MaxSize: c.MaxMessageBytes, Interval: a.Every,
		})
	case Maildir:
		return maildir.NewReader(c.Path, maildir.Config{MaxSize: c.MaxMessageBytes, Interval: a.Every})
	case Mbox:
		return mbox.NewReader(c.Path, mbox.Config{MaxSize: c.MaxMessageBytes, Interval: a.Every})
	case MCP:
		return a.openMCP(with)
	case EML:
		return eml.NewReader(c.Path, eml.Config{MaxSize: c.MaxMessageBytes, Interval: a.Every})
	}
	return nil, fmt.Errorf("the account %s has the unknown kind %q", a.Name, a.Kind)
}

// openMCP returns a reader through an MCP server.
func (a Account) openMCP(with Access) (mailbox.Reader, error) {
	c := a.Connection
	if len(c.Command) > 0 && !with.Programs {
		return nil, fmt.Errorf("the account %s starts a program, which COUNTERSIGN_TRIAGE_STDIO does not allow for triage: %w", a.Name, mailbox.ErrDenied)
	}
	profile, err := mcpmail.ProfileOf(c.Server, c.Names)
	if err != nil {
		return nil, err
	}
	return mcpmail.NewReader(mcpmail.Config{
		Name: a.Name, URL: c.URL, Command: c.Command, Secret: with.Secret, SecretName: c.SecretName, Networks: with.Networks, Profile: profile,
		MaxSize: c.MaxMessageBytes, Interval: a.Every, Quota: with.Quota,
	})
}

func securityOf(s Security) imap.Security {
	switch s {
	case TLS:
		return imap.TLS
	case StartTLS:
		return imap.StartTLS
	case Plain:
		return imap.Plain
	}
	return imap.Security(s) // imap rejects it
}

func loginOf(a Auth) imap.Login {
	switch a {
	case Password:
		return imap.Password
	case OAuthBearer:
		return imap.OAuthBearer
	case XOAuth2:
		return imap.XOAuth2
	}
	return imap.Login(a) // imap rejects it
}

// Reads reports whether the account reads a folder.
func (c Connection) Reads(f mailbox.Folder) bool {
	if len(c.Folders) == 0 {
		return f.Use == mailbox.UseInbox || f.Use == mailbox.UseSent
	}
	return slices.Contains(c.Folders, f.Name)
}
