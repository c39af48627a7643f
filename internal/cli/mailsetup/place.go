package mailsetup

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/cli/command"
	system "github.com/countersign-dev/countersign/internal/cli/setup"
	"github.com/countersign-dev/countersign/internal/config"
	"github.com/countersign-dev/countersign/internal/dev"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/telemetry"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/triage/plan"
	"github.com/countersign-dev/countersign/internal/triage/process"
)

// place is the installation that the account is set up in.
type place struct {
	client *client.Client
	// networks are those in which the triage process reaches servers, in addition to
	// the public internet.
	networks []netip.Prefix
	// own is set for an installation of other people: its triage process may not run.
	own bool
	// next is the next step, for people.
	next  string
	close func() error
}

// connect returns the installation: the one of --url and the token, or else the
// environment of this machine, which is started unless it runs.
func (s *setup) connect(ctx context.Context) (place, error) {
	a := s.app
	var read config.Triage
	networks := safehttp.Loopback()
	if err := config.ReadVariables(&read, func(name string) string {
		if name == command.DatabaseEnv {
			return "postgres://unused"
		}
		return a.Getenv(name)
	}); err != nil {
		return place{}, command.Misuse("the configuration cannot be used:\n%v", err)
	}
	networks = append(networks, read.Networks...)
	done := func() error { return nil }
	if a.Token != "" || a.URL != command.DefaultURL {
		c, err := a.Client()
		return place{client: c, networks: read.Networks, own: true, next: s.nextStep(), close: done}, err
	}
	dir := cmp.Or(s.flags.dir, system.DataDir(a))
	tokens, err := dev.ReadTokens(dir)
	if err != nil {
		return place{}, err
	}
	if c, err := client.New(a.URL, tokens.Owner, client.Config{Agent: "countersign/" + telemetry.Version(), Retries: -1}); err == nil && tokens.Owner != "" {
		if _, err := c.Me(ctx); err == nil {
			s.say("Using the environment that runs at %s.", a.URL)
			return place{client: c, networks: networks, next: "It goes on reading while countersign dev runs.", close: done}, nil
		}
	}
	s.say("Starting Countersign on this machine, with its data in %s:", dir)
	out := a.Err
	if a.JSON {
		out = nil
	}
	cfg := dev.Config{
		DatabaseURL: a.Getenv(command.DatabaseEnv), SecretKey: a.Getenv("COUNTERSIGN_SECRET_KEY"), Dir: dir, Listen: "127.0.0.1:0", Version: telemetry.Version(),
		Getenv: a.Getenv, Accounts: true,
	}
	if out != nil {
		cfg.Progress = out
	}
	e, err := dev.Open(ctx, cfg)
	if err != nil {
		return place{}, err
	}
	c, err := e.Client(e.Tokens().Owner)
	if err != nil {
		return place{}, errors.Join(err, e.Close())
	}
	next := "To go on reading, and to decide in the browser: countersign dev"
	if s.flags.dir != "" {
		next += " --data-dir " + command.Quoted(dir)
	}
	return place{client: c, networks: networks, next: next, close: e.Close}, nil
}

func (s *setup) nextStep() string {
	if s.app.Getenv(command.DatabaseEnv) == "" {
		return "It goes on reading while a triage process runs."
	}
	return "To go on reading, run triage with the variables in " + s.variablesFile() + "."
}

// triage starts a triage process where none may run, and returns a function that ends
// it. Its database login is kept: the next process uses it.
func (p place) triage(ctx context.Context, s *setup, m mailbox) (end func() error) {
	none := func() error { return nil }
	if !p.own || s.app.Getenv(command.DatabaseEnv) == "" {
		return none
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { // the caller waits for it with end
		err := s.runTriage(running, p.client, m)
		if running.Err() != nil {
			err = nil // it was stopped
		}
		if err != nil {
			s.say("The triage process of this setup cannot run: %v", err)
		}
		ended <- nil
	}()
	return func() error {
		stop()
		return <-ended
	}
}

// runTriage runs a triage process with the database login of setup.
func (s *setup) runTriage(ctx context.Context, c *client.Client, m mailbox) error {
	me, err := c.Me(ctx)
	if err != nil {
		return err
	}
	address, err := s.databaseLogin(ctx, me)
	if err != nil {
		return err
	}
	var cfg config.Triage
	err = config.ReadVariables(&cfg, func(name string) string {
		if name == command.DatabaseEnv {
			return address
		}
		return s.app.Getenv(name)
	})
	if err != nil {
		return err
	}
	of := process.From(cfg)
	of.Lookup = s.app.Getenv
	if m.Path != "" {
		of.Mailboxes = append(of.Mailboxes, m.Path)
	}
	running, err := process.Open(ctx, of)
	if err != nil {
		return err
	}
	defer running.Close()
	return running.Run(ctx)
}

// variablesFile is the file with the address of the database login.
func (s *setup) variablesFile() string {
	dir, err := s.app.ConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "triage.env")
}

var notInLogins = regexp.MustCompile(`[^a-z0-9]+`)

// loginOf returns the name of the database login of a tenant's triage.
func loginOf(tenant string) string {
	const most = 40
	text := notInLogins.ReplaceAllString(strings.ToLower(tenant), "_")
	return "countersign_triage_" + text[:min(len(text), most)]
}

// databaseLogin returns the address of the database for triage. It makes a login, and
// keeps it in a file of the user. A login that exists stays as it is, and checkLogin
// reports the tools that the login of an earlier setup lacks.
func (s *setup) databaseLogin(ctx context.Context, me wire.Me) (string, error) {
	file := s.variablesFile()
	if file == "" {
		return "", errors.New("no folder for the database login: set COUNTERSIGN_CONFIG")
	}
	const line = command.DatabaseEnv + "="
	if raw, err := os.ReadFile(file); err == nil {
		if address, ok := strings.CutPrefix(strings.TrimSpace(string(raw)), line); ok {
			return strings.Trim(address, "'"), s.checkLogin(ctx, me)
		}
	}
	var tenant envelope.TenantID
	if err := tenant.UnmarshalText([]byte(me.TenantID)); err != nil {
		return "", err
	}
	admin, err := url.Parse(s.app.Getenv(command.DatabaseEnv))
	if err != nil {
		return "", fmt.Errorf("%s is not a URL", command.DatabaseEnv)
	}
	login, password := loginOf(me.Tenant), rand.Text()
	err = s.app.InDatabase(ctx, "", func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) error {
		bound, err := identity.DBLogins(ctx, tx, tenant)
		if err != nil {
			return err
		}
		for _, l := range bound {
			if l.Login == login {
				return fmt.Errorf("the login %s exists, and its password is not in %s", login, file)
			}
		}
		// The name has letters, digits and underscores alone.
		if _, err := tx.Exec(ctx, "CREATE ROLE "+login+" LOGIN PASSWORD '"+password+"' IN ROLE countersign_triage", pgx.QueryExecModeSimpleProtocol); err != nil {
			return fmt.Errorf("create the login %s: %w", login, err)
		}
		l, err := identity.BindDBLogin(ctx, tx, tenant, identity.DBLogin{Login: login, Tools: plan.Patterns(), MaxWaiting: identity.DefaultMaxWaiting, By: setupActor})
		if err != nil {
			return err
		}
		what, detail := l.AuditItem()
		return audit.Write(ctx, tx, audit.Event{Tenant: tenant, Kind: audit.Configured, Actor: setupActor, Items: []audit.Item{{Subject: what, Detail: detail}}})
	})
	if err != nil {
		return "", err
	}
	admin.User = url.UserPassword(login, password)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return "", err
	}
	return admin.String(), os.WriteFile(file, []byte(line+"'"+admin.String()+"'\n"), 0o600)
}

// checkLogin reports the tools that the database login of an earlier setup may not
// propose, and the command that binds it again.
func (s *setup) checkLogin(ctx context.Context, me wire.Me) error {
	var tenant envelope.TenantID
	if err := tenant.UnmarshalText([]byte(me.TenantID)); err != nil || s.app.Getenv(command.DatabaseEnv) == "" {
		return err
	}
	login := loginOf(me.Tenant)
	return s.app.InDatabase(ctx, "", func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) error {
		bound, err := identity.DBLogins(ctx, tx, tenant)
		for _, l := range bound {
			missing := slices.DeleteFunc(plan.Patterns(), func(pattern string) bool { return l.Tools == nil || slices.Contains(l.Tools, pattern) })
			if l.Login == login && len(missing) > 0 {
				s.say("The database login %s of an earlier setup may not propose %s. Bind it again:\n  countersign db-login bind %s --tenant %s --triage", login, strings.Join(missing, ", "), login, me.Tenant)
			}
		}
		return err
	})
}

// setupActor is the actor of the record for the database login.
const setupActor = "countersign triage setup"

// dropLogin removes the database login of setup, with its file.
func (s *setup) dropLogin(ctx context.Context, me wire.Me) error {
	file := s.variablesFile()
	if s.app.Getenv(command.DatabaseEnv) == "" || file == "" {
		return nil
	}
	var tenant envelope.TenantID
	if err := tenant.UnmarshalText([]byte(me.TenantID)); err != nil {
		return err
	}
	login := loginOf(me.Tenant)
	err := s.app.InDatabase(ctx, "", func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) error {
		bound, err := identity.UnbindDBLogin(ctx, tx, tenant, login)
		if err != nil || !bound {
			return err
		}
		if _, err := tx.Exec(ctx, "DROP ROLE IF EXISTS "+login); err != nil {
			return err
		}
		return audit.Write(ctx, tx, audit.Event{
			Tenant: tenant, Kind: audit.Configured, Actor: setupActor,
			Items: []audit.Item{{Subject: "database login " + login + " unbound", Detail: map[string]any{"login": login}}},
		})
	})
	if err != nil {
		return fmt.Errorf("drop the database login: %w", err)
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
