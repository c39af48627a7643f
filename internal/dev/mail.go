package dev

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/config"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/fault"
	mailfolder "github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/plan"
	"github.com/countersign-dev/countersign/internal/triage/process"
)

const (
	// mailSource is the source that changes the sample mailbox, and mailAccount the
	// name of the mailbox in both it and triage.
	mailSource  = "mail"
	mailAccount = "sample"
	// trustedHost is the host whose Authentication-Results the sample mailbox
	// trusts.
	trustedHost = "mx.sample.example"
	// labelPrefix begins the labels that triage sets, which are of no concern when
	// another change is taken back.
	labelPrefix = "Countersign_"
	mailOwner   = "ada@brightwater.example"
)

// mailTools are the tools that policy allows in a demonstration: their effects
// can be reverted.
func mailTools() []string {
	return []string{"message.label", "message.archive", "message.restore"}
}

// mailbox is a sample mailbox of a tenant, and the triage process that reads it.
type mailbox struct {
	dir    string
	triage *process.Process
}

// newMailbox creates a Maildir for a tenant, the source that may change it, an
// account of triage, and a database login with the rights of triage.
func (e *Environment) newMailbox(ctx context.Context, of tenant) (*mailbox, error) {
	m := &mailbox{dir: filepath.Join(e.mailDir(), of.id.String())}
	for _, folder := range []string{"", ".Archive", ".Sent", ".Drafts", ".Junk"} {
		for _, part := range []string{"cur", "new", "tmp"} {
			if err := os.MkdirAll(filepath.Join(m.dir, folder, part), 0o700); err != nil {
				return nil, fmt.Errorf("make the sample mailbox: %w", err)
			}
		}
	}
	if err := e.registerMail(ctx, of, m.dir); err != nil {
		return nil, fmt.Errorf("set up the source of the sample mailbox: %w", err)
	}
	if err := e.registerAccount(ctx, of, m.dir); err != nil {
		return nil, fmt.Errorf("set up the account of the sample mailbox: %w", err)
	}
	var err error
	m.triage, err = e.openTriage(ctx, of)
	return m, err
}

// openTriage opens a triage process of a tenant, with a database login of its own.
func (e *Environment) openTriage(ctx context.Context, of tenant) (*process.Process, error) {
	address, err := e.newTriageLogin(ctx, of)
	if err != nil {
		return nil, fmt.Errorf("make the database login of triage: %w", err)
	}
	cfg, err := e.triageConfig(address)
	if err != nil {
		return nil, err
	}
	if of.id == e.demo.id { // as for its sources: see startWorker
		cfg.Mailboxes = append(cfg.Mailboxes, string(filepath.Separator))
	}
	return process.Open(ctx, cfg)
}

// triageConfig returns the configuration of triage: its variables, with the key of
// the environment, and with the folder of the sample mailbox and the local machine
// allowed.
func (e *Environment) triageConfig(address string) (process.Config, error) {
	getenv := e.cfg.Getenv
	if getenv == nil {
		getenv = func(string) string { return "" }
	}
	var read config.Triage
	err := config.ReadVariables(&read, func(name string) string {
		switch name {
		case "DATABASE_URL":
			return address
		case account.KeyVariable:
			return e.mailKey
		case "COUNTERSIGN_TRIAGE_DNS":
			return cmp.Or(getenv(name), "false")
		}
		if strings.HasPrefix(name, "COUNTERSIGN_TRIAGE_") || name == "COUNTERSIGN_MAILDIRS" {
			return getenv(name)
		}
		return ""
	})
	if err != nil {
		return process.Config{}, err
	}
	cfg := process.From(read)
	cfg.MaxConns = 4
	cfg.Mailboxes = append(cfg.Mailboxes, e.mailDir())
	cfg.Networks = append(cfg.Networks, safehttp.Loopback()...)
	cfg.Lookup, cfg.Meter, cfg.Tracer, cfg.Log = getenv, e.watched.Meter(), e.watched.Tracer(), e.cfg.Log
	return cfg, nil
}

// registerAccount makes the mailbox an account of triage, unless there is one: the
// user may have changed it.
func (e *Environment) registerAccount(ctx context.Context, of tenant, dir string) error {
	return postgres.InTx(ctx, e.pool, postgres.API(of.id), func(tx pgx.Tx) error {
		if _, err := account.Get(ctx, tx, of.id, mailAccount); !errors.Is(err, fault.NotFound) {
			return err
		}
		return account.Put(ctx, tx, of.id, account.Account{
			ID: uuid.Must(uuid.NewV7()), Name: mailAccount, Kind: account.Maildir, Enabled: true, Every: 5 * time.Second, BackfillDays: 30,
			Connection: account.Connection{Path: dir, TrustedHost: trustedHost},
			// Newsletters are archived without approval unless their owner has decided
			// otherwise.
			Settings: decide.Settings{
				Addresses: []string{mailOwner}, Domains: []string{"brightwater.example"}, Levels: map[decide.Cohort]decide.Level{decide.Newsletters: decide.L2},
			},
			Proposals: plan.Config{Source: mailSource, Account: mailAccount, LabelPrefix: labelPrefix},
		})
	})
}

// startTriage has triage read the mailbox of the tenant demo until the environment
// closes.
func (e *Environment) startTriage(ctx context.Context) (string, error) {
	var running *process.Process
	what := "reads the accounts of " + TenantName
	switch {
	case e.cfg.Mailbox:
		box, err := e.newMailbox(ctx, e.demo)
		if err != nil {
			return "", err
		}
		running, what = box.triage, "reads "+box.dir
	case e.cfg.Accounts:
		var err error
		if running, err = e.openTriage(ctx, e.demo); err != nil {
			return "", err
		}
	default:
		return "reads the mailboxes of demonstrations", nil
	}
	until, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() { // the environment's Close waits for it
		defer close(ended)
		if err := running.Run(until); err != nil && until.Err() == nil {
			e.failed <- fmt.Errorf("triage ended: %w", err)
		}
	}()
	e.onStop(func() {
		stop()
		<-ended
		running.Close()
	})
	return what, nil
}

// mailDir is where the sample mailboxes are.
func (e *Environment) mailDir() string { return filepath.Join(e.dir, "mail") }

// registerMail makes the mailbox a source of a tenant, and allows its
// reversible tools, as an administrator does.
func (e *Environment) registerMail(ctx context.Context, of tenant, dir string) error {
	admin, err := e.Client(of.tokens.Admin)
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{"accounts": map[string]any{mailAccount: map[string]any{
		"kind": "maildir", "path": dir, "from": mailOwner, "label_prefix": labelPrefix,
	}}})
	if err != nil {
		return err
	}
	known, err := hasSource(ctx, admin, mailSource)
	if err != nil {
		return err
	}
	if err := admin.PutSource(ctx, mailSource, wire.SourceInput{Kind: catalog.KindMail, Config: config}); err != nil {
		return err
	}
	if err := connection.NewRefresher(e.pool, e.cache, e.live, e.cfg.Log).Refresh(ctx, of.id, mailSource); err != nil {
		return err
	}
	if known {
		return nil
	}
	for _, tool := range mailTools() {
		if err := admin.PutMode(ctx, wire.Mode{Tool: mailSource + ":" + tool, Mode: envelope.ModeAllow}); err != nil {
			return err
		}
	}
	return nil
}

// newTriageLogin makes a database login with the rights of triage and binds it to
// a tenant. It is dropped when the environment closes.
func (e *Environment) newTriageLogin(ctx context.Context, of tenant) (address string, err error) {
	login := "dev_triage_" + strings.ReplaceAll(of.id.String(), "-", "")
	password := rand.Text()
	err = postgres.InTx(ctx, e.pool, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "DROP ROLE IF EXISTS "+login+"; CREATE ROLE "+login+" LOGIN PASSWORD '"+password+"' IN ROLE countersign_triage", pgx.QueryExecModeSimpleProtocol)
		return err
	})
	if err != nil {
		return "", err
	}
	e.onClose(func(ctx context.Context) error {
		_, err := e.pool.Exec(ctx, "DROP ROLE IF EXISTS "+login)
		return err
	})
	err = postgres.InTx(ctx, e.pool, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := identity.BindDBLogin(ctx, tx, of.id, identity.DBLogin{Login: login, Tools: plan.Patterns(), MaxWaiting: identity.DefaultMaxWaiting})
		return err
	})
	if err != nil {
		return "", err
	}
	u, err := url.Parse(e.database)
	if err != nil {
		return "", err
	}
	u.User = url.UserPassword(login, password)
	return u.String(), nil
}

// deliver puts a mail that arrived at a time into the inbox, as another program does.
func (m *mailbox) deliver(name, raw string, at time.Time) error {
	tmp := filepath.Join(m.dir, "tmp", name)
	if err := errors.Join(os.WriteFile(tmp, []byte(raw), 0o600), os.Chtimes(tmp, at, at)); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(m.dir, "new", name))
}

// nameTag gives the keyword of an action the first letter of the mailbox, before any
// program assigns it.
func (m *mailbox) nameTag(action string) error {
	return os.WriteFile(filepath.Join(m.dir, "dovecot-keywords"), []byte("0 "+mailfolder.ActionTag+action+"\n"), 0o600)
}

// tag sets the keyword of nameTag on a new mail, as its owner does in a mail program.
func (m *mailbox) tag(name string) error {
	return os.Rename(filepath.Join(m.dir, "new", name), filepath.Join(m.dir, "cur", name+":2,a"))
}

// contains reports whether a folder has a mail of the given Message-ID.
func (m *mailbox) contains(folder, messageID string) bool {
	for _, part := range []string{"cur", "new"} {
		files, err := os.ReadDir(filepath.Join(m.dir, folder, part))
		if err != nil {
			return false
		}
		for _, f := range files {
			raw, err := os.ReadFile(filepath.Join(m.dir, folder, part, f.Name()))
			if err == nil && strings.Contains(string(raw), "Message-ID: <"+messageID+">") {
				return true
			}
		}
	}
	return false
}
