// Package process assembles a triage process: the database login, the embedded
// models, DNS, and the passwords of accounts. The commands triage and
// countersign dev run it.
package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/internal/config"
	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source/oauth"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/asker"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/engine"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

// Config configures a Process.
type Config struct {
	DatabaseURL string
	MaxConns    int32
	Pooled      bool
	// Key decrypts the passwords of accounts, or is "".
	Key string
	// Accounts and Lease are those of engine.Config.
	Accounts int
	Lease    time.Duration
	// DNS enables queries for the keys and policies of senders.
	DNS bool
	// Networks are allowed in addition to the public internet.
	Networks []netip.Prefix
	// Mailboxes are the folders allowed for accounts of files, and Passwords
	// those of the files with passwords: a person who sets up accounts must not
	// read other files with the rights of this process.
	Mailboxes, Passwords []string
	// Programs allows accounts to start programs.
	Programs bool
	// Models is the path of the configuration of language models, or "".
	Models string
	// Lookup returns an environment variable, for accounts that have their
	// password there.
	Lookup func(name string) string
	// Meter and Tracer may be nil.
	Meter  metric.Meter
	Tracer trace.Tracer
	Log    *slog.Logger
}

// From returns the configuration from the environment; the caller sets the
// other fields.
func From(c config.Triage) Config {
	return Config{
		DatabaseURL: c.DatabaseURL, MaxConns: c.MaxConns, Pooled: c.Pooled, Key: c.Key, Accounts: c.Accounts, Lease: c.Lease,
		DNS: c.DNS, Networks: c.Networks, Mailboxes: c.Mailboxes, Passwords: c.Passwords, Programs: c.Programs, Models: c.Models,
	}
}

// Process is a triage process.
type Process struct {
	db  *pgxpool.Pool
	cfg engine.Config
}

// Open connects to the database.
func Open(ctx context.Context, cfg Config) (*Process, error) {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cipher, err := account.NewCipher(cfg.Key)
	if err != nil {
		return nil, err
	}
	embedded, err := classify.Embedded()
	if err != nil {
		return nil, err
	}
	models, err := cfg.openModels()
	if err != nil {
		return nil, err
	}
	db, err := postgres.Open(ctx, postgres.Config{URL: cfg.DatabaseURL, MaxConns: cfg.MaxConns, Pooled: cfg.Pooled, Name: "countersign-triage"})
	if err != nil {
		return nil, errors.Join(err, models.Close())
	}
	lookup := func(name string) (string, bool) {
		text := cfg.Lookup(name)
		return text, text != ""
	}
	quotas := new(quota.Registry)
	logins := &tokens{db: db, cipher: cipher, client: oauth.New(cfg.Networks), held: map[uuid.UUID]*heldLogin{}}
	open := func(_ context.Context, a account.Account) (mailbox.Reader, error) {
		if a.Connection.Path != "" && !mailbox.Below(cfg.Mailboxes, a.Connection.Path) {
			return nil, fmt.Errorf("the path of the account is in none of the folders that COUNTERSIGN_MAILDIRS names for triage")
		}
		return a.Open(account.Access{
			Networks: cfg.Networks, Quota: a.Quota(quotas), Programs: cfg.Programs,
			Secret: func(ctx context.Context) (string, error) {
				password, err := a.Password(cipher, lookup, cfg.readPassword)
				if err != nil {
					return "", err
				}
				return logins.token(ctx, a, password)
			},
		})
	}
	var resolver authenticate.Resolver
	if cfg.DNS {
		const names, lifetime = 10_000, 10 * time.Minute
		resolver = authenticate.NewCache(net.DefaultResolver, names, lifetime, time.Now)
	}
	return &Process{db, engine.Config{
		Open: open, Quota: func(a account.Account) *quota.Bucket { return a.Quota(quotas) }, Model: embedded, Models: models, Resolver: resolver,
		Accounts: cfg.Accounts, Lease: cfg.Lease, Meter: cfg.Meter, Tracer: cfg.Tracer, Log: cfg.Log,
	}}, nil
}

// openModels opens the language models of the file, or returns nil without one.
func (c Config) openModels() (*asker.Models, error) {
	if c.Models == "" {
		return nil, nil
	}
	of, err := model.ReadConfig(c.Models)
	if err != nil {
		return nil, fmt.Errorf("COUNTERSIGN_TRIAGE_MODELS: %w", err)
	}
	return asker.OpenModels(of, c.Meter)
}

// readPassword reads a file in one of the folders with passwords.
func (c Config) readPassword(path string) ([]byte, error) {
	if !mailbox.Below(c.Passwords, path) {
		return nil, fmt.Errorf("the file is not in a folder of COUNTERSIGN_TRIAGE_PASSWORDS")
	}
	return os.ReadFile(path)
}

// Run reads accounts as they become due until ctx ends. For an unbound login
// the error is fault.Denied.
func (p *Process) Run(ctx context.Context) error { return p.with(ctx, (*engine.Engine).Run) }

// Once reads every account to its end. Its errors are those of Run and of the
// accounts that failed.
func (p *Process) Once(ctx context.Context) error { return p.with(ctx, (*engine.Engine).Once) }

// with runs an engine once the database is migrated.
func (p *Process) with(ctx context.Context, run func(*engine.Engine, context.Context) error) error {
	if err := postgres.AwaitSchema(ctx, p.db, p.cfg.Log); err != nil {
		return err
	}
	e, err := engine.New(ctx, p.db, p.cfg)
	if err != nil {
		return err
	}
	return errors.Join(run(e, ctx), e.Close())
}

// Ready returns an error unless the database answers and is migrated.
func (p *Process) Ready(ctx context.Context) error { return postgres.CheckSchema(ctx, p.db) }

// Close closes the connections to the database and to models.
func (p *Process) Close() {
	p.db.Close()
	if err := p.cfg.Models.Close(); err != nil {
		p.cfg.Log.Warn("gauges of models not ended", slog.Any("error", err))
	}
}
