// Package mailsetup has the command triage setup: from a mail account on this machine
// to its first brief. It calls the API as the other commands do, and keeps no state:
// a second run continues from the stored rows.
package mailsetup

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/brief"
	"github.com/countersign-dev/countersign/internal/triage/discover"
	"github.com/countersign-dev/countersign/internal/triage/suggest"
)

// flags are the flags of the command.
type flags struct {
	name, host, user, security     string
	port, days                     int
	password, readPassword         string
	clientID, clientSecret         string
	issuer, scope                  string
	rediscover                     string
	device                         bool
	dir                            string
	yes, undo, readOnly, discovers bool
}

// setup is one run of the command.
type setup struct {
	app    *command.App
	flags  flags
	in     *bufio.Reader
	began  time.Time
	result Result
}

// Result is the result of the command, for scripts.
type Result struct {
	Account string `json:"account"`
	Source  string `json:"source,omitzero"`
	// Mailbox is the account that was found or named, with where it was found.
	Mailbox  discover.Finding  `json:"mailbox"`
	Provider discover.Provider `json:"provider"`
	// Stored is created or updated.
	Stored   string            `json:"stored"`
	Folders  int               `json:"folders"`
	Defaults *suggest.Settings `json:"defaults,omitempty"`
	// Review is the time that proposals wait for a person.
	Review string `json:"review,omitzero"`
	// Tags is the source that the built-in action tags call.
	Tags   string           `json:"tags,omitzero"`
	Brief  wire.TriageBrief `json:"brief"`
	TookMS float64          `json:"took_ms"`
}

// Command returns the command triage setup.
func Command(a *command.App) *cobra.Command {
	s := &setup{app: a}
	cmd := command.NewLocal("setup [ADDRESS]", command.Arguments(0, 1, "an e-mail address, or the folder of a Maildir"), func(ctx context.Context, args []string) error {
		s.in, s.began = bufio.NewReader(a.In), time.Now()
		if s.flags.rediscover != "" {
			if err := s.rediscover(); err != nil || len(args) == 0 {
				return err
			}
		}
		switch {
		case s.flags.discovers:
			return s.showFound(command.Argument(args, 0))
		case s.flags.undo:
			return s.undo(ctx, command.Argument(args, 0))
		}
		return s.run(ctx, command.Argument(args, 0))
	})
	f := cmd.Flags()
	f.BoolVar(&s.flags.discovers, "discover", false, "only list the accounts that are found on this machine, and where")
	command.EnumFlag(cmd, &s.flags.rediscover, "rediscover", "`choice` whether \"triage status\" searches this machine for new accounts: weekly or never", weekly, "never")
	f.BoolVarP(&s.flags.yes, "yes", "y", false, "ask nothing: take the first account that is found, and every default")
	f.StringVar(&s.flags.password, "password", "", "`file` that holds the password or the app password (default: ask)")
	f.StringVar(&s.flags.readPassword, "read-password", "", "`file` that holds a password that can only read; triage then has no other")
	f.BoolVar(&s.flags.readOnly, "read-only", false, "make no source: triage reads, and proposes nothing")
	f.StringVar(&s.flags.name, "name", "", "`name` of the account (default: from the address)")
	f.StringVar(&s.flags.host, "host", "", "IMAP `server` (default: the one that is found, or the provider's)")
	f.IntVar(&s.flags.port, "port", 0, "`port` of that server")
	f.StringVar(&s.flags.user, "user", "", "`user` of that server (default: the address)")
	command.EnumFlag(cmd, &s.flags.security, "security", "`protection` of the connection: tls, starttls or plain", "tls", "starttls", "plain")
	command.PositiveFlag(cmd, &s.flags.days, "days", "`days` of mail to read first (default 7)")
	f.StringVar(&s.flags.clientID, "client-id", "", "log in with OAuth, as the client of this `id` that you registered at the provider")
	a.TextFlag(cmd, &s.flags.clientSecret, "client-secret", "secret of that client, as @`FILE`")
	f.BoolVar(&s.flags.device, "device", false, "log in with OAuth on another device, without a browser on this one")
	f.StringVar(&s.flags.issuer, "issuer", "", "`URL` of the authorization server (default: the provider's)")
	f.StringVar(&s.flags.scope, "scope", "", "`scopes` to ask for at --issuer")
	f.StringVar(&s.flags.dir, "data-dir", "", "`folder` of the environment of this machine (default: that of \"countersign dev\")")
	f.BoolVar(&s.flags.undo, "undo", false, "remove an account that was set up, with its source, review rule and triage data")
	return cmd
}

// defaultDays is the age of the oldest mail that is read first. defaultsDays is that of
// the mail from which settings are derived.
const (
	defaultDays  = 7
	defaultsDays = 90
)

// run sets an account up.
func (s *setup) run(ctx context.Context, named string) error {
	m, err := s.choose(ctx, named)
	if err != nil {
		return err
	}
	p, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.close() }() // it ran until here
	if err := s.useOAuth(ctx, p, &m); err != nil {
		return err
	}
	existing, err := s.existing(ctx, p.client, m)
	if err != nil {
		return err
	}
	secrets, err := s.secrets(ctx, p, m, existing)
	if err != nil {
		return err
	}
	found, err := s.examine(ctx, p, m, existing, secrets)
	if err != nil {
		return err
	}
	m.domain = s.ownDomain(m)
	if err := s.store(ctx, p, m, existing, found, secrets); err != nil {
		return err
	}
	if s.result.Brief, err = p.client.TriageBrief(ctx, m.name, client.TriageBriefFilter{Since: s.began.AddDate(0, 0, -s.days()), Mail: true}); err != nil {
		return err
	}
	s.result.TookMS = float64(time.Since(s.began).Microseconds()) / 1000
	return s.finish(p)
}

func (s *setup) days() int { return cmp.Or(s.flags.days, defaultDays) }

// say shows a step of the work.
func (s *setup) say(format string, args ...any) { s.app.Note(format, args...) }

// existing returns the account of the same name; nil if there is none. An account of
// that name for another mailbox is an error.
func (s *setup) existing(ctx context.Context, c *client.Client, m mailbox) (*wire.TriageAccount, error) {
	all, err := c.TriageAccounts(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(v wire.TriageAccount) bool { return v.Name == m.name })
	if i < 0 {
		return nil, nil
	}
	is := all[i]
	if want := m.connection(); is.Kind != string(m.Kind) || is.Connection.Path != want.Path || is.Connection.User != want.User {
		return nil, fmt.Errorf("account %s exists for another mailbox; choose another name with --name", m.name)
	}
	s.say("Account %s exists; it is brought up to date.", m.name)
	return &is, nil
}

// finish prints the brief and the next steps.
func (s *setup) finish(p place) error {
	if s.app.JSON {
		return s.app.WriteJSON(s.result)
	}
	if err := s.app.Print("\n%s", brief.Text(s.result.Brief)); err != nil {
		return err
	}
	approves := "Triage proposes nothing: it has no source."
	if s.result.Source != "" {
		approves = "A person approves every proposal (observe-only); undecided ones expire after " + s.result.Review + "."
	}
	if s.result.Tags != "" {
		approves += "\nTags: add-contact and create-reminder call " + s.result.Tags + "; set one with `countersign triage tags set`."
	}
	return s.app.Print("\nSet up %s in %.1f s. %s\n%s\n\n  countersign triage list %s\n  countersign triage setup --undo %s\n",
		s.result.Account, s.result.TookMS/1000, approves, p.next, s.result.Account, s.result.Account)
}
