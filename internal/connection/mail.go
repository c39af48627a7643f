package connection

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// MailConfig is the configuration of a source of kind mail.
type MailConfig struct {
	// Accounts are the mailboxes by name.
	Accounts map[string]mail.Mailbox `json:"accounts"`
	// Networks are allowed in addition to the public internet.
	Networks []string `json:"networks,omitempty"`
	// Timeout bounds one call; nil means the default of the source.
	Timeout *envelope.Duration `json:"timeout,omitempty"`
}

// parseMail parses and checks the configuration of a source of kind mail.
func parseMail(raw json.RawMessage) (c MailConfig, client rest.Config, err error) {
	if err = parseConfig(catalog.KindMail, raw, &c); err != nil {
		return c, client, err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Accounts)) {
		if err = c.Accounts[name].Check("/config/accounts/" + envelope.EscapePointer(name)); err != nil {
			return c, client, err
		}
	}
	if client.CallTimeout, err = parseDuration("/timeout", c.Timeout, source.MaxTimeout); err != nil {
		return c, client, err
	}
	client.Guard.Networks, err = parseNetworks("/networks", c.Networks)
	return c, client, err
}

// openMail opens a source of mailboxes. A Maildir must be allowed by the
// deployment; otherwise the author of a source could name any directory that the
// worker's user may write.
func (p *Pool) openMail(tenant envelope.TenantID, of catalog.Source, creds Credentials) (*mail.Source, error) {
	c, client, err := parseMail(of.Config)
	if err != nil {
		return nil, err
	}
	client.Guard.Networks = append(client.Guard.Networks, p.cfg.Networks...)
	cfg := mail.Config{Name: of.ID, HTTP: client, Accounts: make(map[string]mail.Account, len(c.Accounts))}
	for name, a := range c.Accounts {
		if a.Kind == mail.KindMaildir && (p.cfg.Maildir == nil || !p.cfg.Maildir(tenant, a.Path)) {
			return nil, fault.New(fault.Denied, "the Maildir of account %s is not in a folder that COUNTERSIGN_MAILDIRS of the workers names", name)
		}
		secret, err := p.mailSecret(tenant, of, name, a, creds)
		if err != nil {
			return nil, err
		}
		cfg.Accounts[name] = a.Account(secret, client.Guard)
	}
	return mail.New(cfg)
}

// mailSecret returns the password of an account, or its access tokens. It is nil for a
// Maildir.
func (p *Pool) mailSecret(tenant envelope.TenantID, of catalog.Source, name string, a mail.Mailbox, creds Credentials) (mail.Secret, error) {
	secret := rest.NewSecret(creds.Accounts[name])
	switch {
	case a.Kind != mail.KindIMAP:
		return nil, nil
	case !secret.Empty():
		return func(context.Context) (string, error) { return secret.Reveal(), nil }, nil
	case a.OAuth == nil:
		return nil, fault.New(fault.Invalid, "account %s needs its password or token, as accounts.%s in the credentials", name, name)
	case of.Login == nil || p.cfg.Tokens == nil:
		return nil, fault.New(fault.Invalid, "account %s is not logged in: countersign source login %s", name, of.ID)
	}
	tokens := p.cfg.Tokens(tenant, of.ID, a.Address())
	return func(ctx context.Context) (string, error) { return tokens.Token(ctx, "") }, nil
}

// MailLogin returns the account of a source of kind mail that logs in, as a source has
// one login: it has no other account.
func MailLogin(of catalog.Source) (mail.Mailbox, error) {
	c, _, err := parseMail(of.Config)
	if err != nil {
		return mail.Mailbox{}, err
	}
	for _, a := range c.Accounts {
		if len(c.Accounts) == 1 && a.OAuth != nil {
			return a, nil
		}
	}
	return mail.Mailbox{}, fault.New(fault.Conflict, "a source of kind mail logs in if it has one account, with oauth in its configuration")
}
