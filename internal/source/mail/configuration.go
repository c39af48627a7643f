package mail

import (
	"cmp"
	"context"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/mail/imap"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/maildir"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/safehttp"
)

// The kinds of mail account.
const (
	KindIMAP    = "imap"
	KindMaildir = "maildir"
)

// commands is the assumed limit of IMAP commands per minute. A call takes about
// ten.
const commands = 5000

// Mailbox is the configuration of an account: a mailbox on a server or in the
// worker's file system.
type Mailbox struct {
	Kind string `json:"kind"`
	// Host, Port, TLS, User and Auth are for IMAP. TLS is implicit (the
	// default), starttls, or none, which is for servers on the same machine.
	// Auth is plain (the default), oauthbearer or xoauth2.
	Host string `json:"host,omitzero"`
	Port int    `json:"port,omitzero"`
	TLS  string `json:"tls,omitzero"`
	User string `json:"user,omitzero"`
	Auth string `json:"auth,omitzero"`
	// OAuth is the authorization server for access tokens; nil if the credentials have
	// the token.
	OAuth *Authorization `json:"oauth,omitempty"`
	// SMTP is the server for outgoing mail, with the same login; nil means none.
	SMTP *Submission `json:"smtp,omitempty"`
	// Path is the directory of a Maildir.
	Path string `json:"path,omitzero"`
	// From is the sender of drafts; empty means User if that is an address.
	From string `json:"from,omitzero"`
	// Addresses are further addresses of the owner, for which invitations and
	// mail in the owner's absence are answered.
	Addresses []string `json:"addresses,omitempty"`
	// TrustedHost is the authserv-id of the Authentication-Results that prove
	// senders; empty means that only signatures do.
	TrustedHost string `json:"trusted_host,omitzero"`
	// LabelPrefix is added to every label.
	LabelPrefix string `json:"label_prefix,omitzero"`
	// Folders are the names of folders by use: archive, junk, drafts, trash,
	// snoozed, sent.
	Folders map[mailbox.Use]string `json:"folders,omitempty"`
}

// Authorization is the authorization server of a mail server.
type Authorization struct {
	Issuer       string `json:"issuer"`
	AuthorizeURL string `json:"authorize_url,omitzero"`
	TokenURL     string `json:"token_url"`
	DeviceURL    string `json:"device_url,omitzero"`
	Scope        string `json:"scope,omitzero"`
	// Offline asks for a refresh token in the way of Google.
	Offline bool `json:"offline,omitzero"`
}

// Address returns the address that tokens of the account are for.
func (a Mailbox) Address() string {
	return "imap://" + net.JoinHostPort(a.Host, strconv.Itoa(a.Port)) + "/" + a.User
}

// Secret returns the password or an access token. It is called for each connection.
type Secret func(context.Context) (string, error)

// Check returns an error that names the invalid field of an account. at is the
// pointer of the account.
func (a Mailbox) Check(at string) error {
	invalid := func(field string, rule envelope.Rule, message string) error {
		return check.Invalid(at+"/"+field, rule, "%s", message)
	}
	remote := map[string]bool{"host": a.Host != "", "port": a.Port != 0, "tls": a.TLS != "", "user": a.User != "", "auth": a.Auth != "", "oauth": a.OAuth != nil, "smtp": a.SMTP != nil}
	switch {
	case a.Kind == KindMaildir && a.Path == "":
		return invalid("path", envelope.RuleRequired, "an account of kind maildir needs the folder of the Maildir")
	case a.Kind == KindMaildir && (!filepath.IsAbs(a.Path) || filepath.Clean(a.Path) != a.Path):
		return invalid("path", envelope.RuleFormat, "must be an absolute path without .., . and double slashes")
	case a.Kind == KindIMAP && a.Host == "":
		return invalid("host", envelope.RuleRequired, "an account of kind imap needs the server's host")
	case a.Kind == KindIMAP && a.User == "":
		return invalid("user", envelope.RuleRequired, "an account of kind imap needs the user")
	case a.Kind == KindIMAP && a.Path != "":
		return invalid("path", envelope.RuleUnknownField, "an account of kind imap has no path")
	}
	if a.OAuth != nil && a.Auth != "oauthbearer" && a.Auth != "xoauth2" {
		return invalid("auth", envelope.RuleEnum, "an account that logs in with OAuth has oauthbearer or xoauth2")
	}
	for _, name := range slices.Sorted(maps.Keys(remote)) {
		if a.Kind == KindMaildir && remote[name] {
			return invalid(name, envelope.RuleUnknownField, "an account of kind maildir has no "+name)
		}
	}
	return nil
}

// address returns the sender of the account's drafts, or "".
func (a Mailbox) address() string {
	if a.From == "" && strings.Contains(a.User, "@") {
		return a.User
	}
	return a.From
}

// Account returns the account. secret is its password or token, and guard
// restricts the networks of its server.
func (a Mailbox) Account(secret Secret, guard safehttp.Guard) Account {
	return Account{Open: a.opener(secret, guard), From: a.address(), Addresses: a.Addresses, TrustedHost: a.TrustedHost, LabelPrefix: a.LabelPrefix, Folders: a.Folders, Submitter: a.submitter(secret, guard)}
}

// opener returns a function that connects to the account.
func (a Mailbox) opener(secret Secret, guard safehttp.Guard) func(context.Context) (mailbox.Writer, error) {
	identify := func(raw []byte) []byte {
		digest := message.Identify(raw)
		return digest[:]
	}
	if a.Kind == KindMaildir {
		return func(context.Context) (mailbox.Writer, error) {
			return writerOrNil(maildir.NewWriter(a.Path, identify, maildir.Config{}))
		}
	}
	security := map[string]imap.Security{"": imap.TLS, "implicit": imap.TLS, "starttls": imap.StartTLS, "none": imap.Plain}[a.TLS]
	login := map[string]imap.Login{"": imap.Password, "plain": imap.Password, "oauthbearer": imap.OAuthBearer, "xoauth2": imap.XOAuth2}[a.Auth]
	port := 993
	if security != imap.TLS {
		port = 143
	}
	bucket := quota.New(quota.Provider{Name: quota.Other, Limits: []quota.Limit{{Of: quota.Units, Most: commands, Per: time.Minute}}})
	return func(context.Context) (mailbox.Writer, error) {
		return writerOrNil(imap.NewWriter(imap.Config{
			Address: net.JoinHostPort(a.Host, strconv.Itoa(cmp.Or(a.Port, port))), Username: a.User,
			Secret:   secret,
			Security: security, Login: login, Networks: guard.Networks, Quota: bucket,
			// The source reconnects if that is safe, and the worker retries
			// later.
			Attempts: 1,
		}, identify))
	}
}

// writerOrNil returns an untyped nil if there is an error: a nil pointer in an
// interface is not nil.
func writerOrNil[W mailbox.Writer](w W, err error) (mailbox.Writer, error) {
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Below returns a function that allows the given directories and all below them
// to the sources of every tenant.
func Below(folders []string) func(envelope.TenantID, string) bool {
	return func(_ envelope.TenantID, path string) bool { return mailbox.Below(folders, path) }
}
