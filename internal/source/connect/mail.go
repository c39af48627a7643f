package connect

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/mail/imap"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/maildir"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// The kinds of mail account.
const (
	MailIMAP    = "imap"
	MailMaildir = "maildir"
)

// mailCommands is how many IMAP commands a minute a server is taken to allow. A
// call takes about ten.
const mailCommands = 5000

// MailConfig is the configuration of a source of kind mail.
type MailConfig struct {
	// Accounts are the mailboxes by name.
	Accounts map[string]MailAccount `json:"accounts"`
	// Networks opens networks that are not of the public internet.
	Networks []string `json:"networks,omitempty"`
	// Timeout bounds one call; nil leaves it to the source.
	Timeout *envelope.Duration `json:"timeout,omitempty"`
}

// MailAccount is a mailbox on a server or in the worker's file system.
type MailAccount struct {
	Kind string `json:"kind"`
	// Host, Port, TLS, User and Auth are for IMAP. TLS is implicit (the default),
	// starttls, or none, which is for servers on the machine itself. Auth is plain
	// (the default), oauthbearer or xoauth2.
	Host string `json:"host,omitzero"`
	Port int    `json:"port,omitzero"`
	TLS  string `json:"tls,omitzero"`
	User string `json:"user,omitzero"`
	Auth string `json:"auth,omitzero"`
	// Path is the folder of a Maildir.
	Path string `json:"path,omitzero"`
	// From is the address that drafts are from; empty stands for User if that is an
	// address.
	From string `json:"from,omitzero"`
	// LabelPrefix comes before every label.
	LabelPrefix string `json:"label_prefix,omitzero"`
	// Folders are the names of folders by use: archive, junk, drafts, trash.
	Folders map[mailbox.Use]string `json:"folders,omitempty"`
}

// check returns what is wrong with an account, which is at a pointer.
func (a MailAccount) check(at string) error {
	remote := map[string]bool{"host": a.Host != "", "port": a.Port != 0, "tls": a.TLS != "", "user": a.User != "", "auth": a.Auth != ""}
	switch {
	case a.Kind == MailMaildir && a.Path == "":
		return invalidConfig(at+"/path", envelope.RuleRequired, "an account of kind maildir needs the folder of the Maildir")
	case a.Kind == MailMaildir && (!filepath.IsAbs(a.Path) || filepath.Clean(a.Path) != a.Path):
		return invalidConfig(at+"/path", envelope.RuleFormat, "must be an absolute path without .., . and double slashes")
	case a.Kind == MailIMAP && a.Host == "":
		return invalidConfig(at+"/host", envelope.RuleRequired, "an account of kind imap needs the server's host")
	case a.Kind == MailIMAP && a.User == "":
		return invalidConfig(at+"/user", envelope.RuleRequired, "an account of kind imap needs the user")
	case a.Kind == MailIMAP && a.Path != "":
		return invalidConfig(at+"/path", envelope.RuleUnknownField, "an account of kind imap has no path")
	}
	for _, name := range slices.Sorted(maps.Keys(remote)) {
		if a.Kind == MailMaildir && remote[name] {
			return invalidConfig(at+"/"+name, envelope.RuleUnknownField, "an account of kind maildir has no "+name)
		}
	}
	return nil
}

// address returns the address that drafts of the account are from; empty for
// none.
func (a MailAccount) address() string {
	if a.From == "" && strings.Contains(a.User, "@") {
		return a.User
	}
	return a.From
}

// parseMail parses and checks the configuration of a source of kind mail.
func parseMail(raw json.RawMessage) (c MailConfig, client rest.Config, err error) {
	if err = parseConfig(catalog.KindMail, raw, &c); err != nil {
		return c, client, err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Accounts)) {
		if err = c.Accounts[name].check("/accounts/" + envelope.EscapePointer(name)); err != nil {
			return c, client, err
		}
	}
	if client.CallTimeout, err = parseDuration("/timeout", c.Timeout, source.MaxTimeout); err != nil {
		return c, client, err
	}
	client.Guard.Networks, err = parseNetworks("/networks", c.Networks)
	return c, client, err
}

// openMail opens a source of mailboxes. Whoever may set up a source could
// otherwise name any folder that the worker's user may write, so a Maildir must
// be one that the deployment allows.
func (p *Pool) openMail(tenant envelope.TenantID, of catalog.Source, creds Credentials) (*mail.Source, error) {
	c, client, err := parseMail(of.Config)
	if err != nil {
		return nil, err
	}
	client.Guard.Networks = append(client.Guard.Networks, p.cfg.Networks...)
	cfg := mail.Config{Name: of.ID, HTTP: client, Accounts: make(map[string]mail.Account, len(c.Accounts))}
	for name, a := range c.Accounts {
		if a.Kind == MailMaildir && (p.cfg.Maildir == nil || !p.cfg.Maildir(tenant, a.Path)) {
			return nil, fault.New(fault.Denied, "the Maildir of account %s is not in a folder that COUNTERSIGN_MAILDIRS of the workers names", name)
		}
		secret := rest.NewSecret(creds.Accounts[name])
		if a.Kind == MailIMAP && secret.Empty() {
			return nil, fault.New(fault.Invalid, "account %s needs its password or token, as accounts.%s in the credentials", name, name)
		}
		cfg.Accounts[name] = mail.Account{
			Open: a.opener(secret, client.Guard), From: a.address(), LabelPrefix: a.LabelPrefix, Folders: a.Folders,
		}
	}
	return mail.New(cfg)
}

// opener returns a function that connects to the account.
func (a MailAccount) opener(secret rest.Secret, guard safehttp.Guard) func(context.Context) (mailbox.Writer, error) {
	identify := func(raw []byte) []byte {
		digest := message.Identify(raw)
		return digest[:]
	}
	if a.Kind == MailMaildir {
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
	bucket := quota.New(quota.Provider{Name: quota.Other, Limits: []quota.Limit{{Of: quota.Units, Most: mailCommands, Per: time.Minute}}})
	return func(context.Context) (mailbox.Writer, error) {
		return writerOrNil(imap.NewWriter(imap.Config{
			Address: net.JoinHostPort(a.Host, strconv.Itoa(cmp.Or(a.Port, port))), Username: a.User,
			Secret:   func(context.Context) (string, error) { return secret.Reveal(), nil },
			Security: security, Login: login, Networks: guard.Networks, Quota: bucket,
			// The source opens the connection again where that is safe, and the worker
			// tries again later.
			Attempts: 1,
		}, identify))
	}
}

// writerOrNil returns nil in place of a writer if there is an error: a nil
// pointer in an interface is not nil.
func writerOrNil[W mailbox.Writer](w W, err error) (mailbox.Writer, error) {
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Below returns a function for Config.Maildir that allows the folders and what
// is in them to every tenant.
func Below(folders []string) func(envelope.TenantID, string) bool {
	return func(_ envelope.TenantID, path string) bool { return mailbox.Below(folders, path) }
}
