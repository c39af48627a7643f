package mailsetup

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/cli/tools"
	"github.com/countersign-dev/countersign/internal/cli/triage"
	"github.com/countersign-dev/countersign/internal/source/mail"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/discover"
	"github.com/countersign-dev/countersign/internal/triage/suggest"
	"github.com/countersign-dev/countersign/internal/triage/tag"
)

const (
	// sourcePrefix begins the ids of sources that setup makes.
	sourcePrefix = "mail-"
	// labelPrefix begins the labels that triage sets.
	labelPrefix = "Countersign_"
	// examineFor bounds the reading of 90 days, listFor the listing of the tools, and
	// readFor the reading of the first days.
	examineFor = 5 * time.Minute
	listFor    = 30 * time.Second
	readFor    = 30 * time.Minute
)

// examine logs in to the mailbox, and derives settings from its recent mail. The result
// is nil if no password is at hand: the run of triage then tests the stored one.
func (s *setup) examine(ctx context.Context, p place, m mailbox, existing *wire.TriageAccount, is secrets) (*suggest.Settings, error) {
	if m.Kind != discover.Maildir && is.read == "" {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, examineFor)
	defer cancel()
	of := account.Account{Name: m.name, Kind: account.Kind(m.Kind)}
	raw, err := json.Marshal(m.connection())
	if err = errors.Join(err, json.Unmarshal(raw, &of.Connection)); err != nil {
		return nil, err
	}
	reads := cmp.Or(is.token, is.read)
	for _, secret := range slices.Compact([]string{is.write, reads}) { // the last one reads
		if secret == "" && m.Kind != discover.Maildir {
			continue
		}
		r, err := of.Open(account.Access{Networks: p.networks, Secret: func(context.Context) (string, error) { return secret, nil }})
		if err != nil {
			return nil, err
		}
		folders, err := r.Folders(ctx)
		if err != nil {
			_ = r.Close() // the login failed
			return nil, fmt.Errorf("log in to the mailbox: %w", err)
		}
		s.result.Folders = len(folders)
		if secret != reads {
			_ = r.Close() // it is only tried
			continue
		}
		s.say("Login:   works (folders: %d). Reading the last %d days for defaults …", len(folders), defaultsDays)
		found, err := suggest.From(ctx, r, m.Address, s.began.AddDate(0, 0, -defaultsDays))
		if err = errors.Join(err, r.Close()); err != nil {
			return nil, fmt.Errorf("read the mailbox: %w", err)
		}
		s.say("Defaults from %d received and %d sent messages: %d VIPs, %d newsletters, signature: %s, language: %s",
			found.Received, found.Sent, len(found.VIP), len(found.Newsletters), yesNo(found.Signature != ""), cmp.Or(found.Language, "unknown"))
		s.result.Defaults = &found
		return &found, nil
	}
	return nil, nil
}

// days returns a duration in days.
func days(d time.Duration) string { return fmt.Sprintf("%d days", d/(24*time.Hour)) }

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "none"
}

// store stores the source and the account, and reads the first days. The account
// proposes only after that: old mail leads to no proposals.
func (s *setup) store(ctx context.Context, p place, m mailbox, existing *wire.TriageAccount, found *suggest.Settings, is secrets) error {
	changes := !s.flags.readOnly && (m.Kind == discover.Maildir || is.write != "" || is.token != "" || existing != nil && existing.Proposals.Source != "")
	if changes {
		if err := s.putSource(ctx, p, m, is.write); err != nil {
			return fmt.Errorf("store the source: %w", err)
		}
	}
	in := s.input(m, existing, found, is.read)
	dav, err := davSource(ctx, p.client)
	if err != nil {
		return err
	}
	if in.Proposals != nil {
		callDAV(in.Proposals, dav)
	}
	if s.result.Stored = "updated"; existing == nil {
		s.result.Stored = "created"
	}
	if _, err := p.client.PutTriageAccount(ctx, m.name, in, ""); err != nil {
		return fmt.Errorf("store the account: %w", err)
	}
	if err := s.read(ctx, p, m); err != nil {
		return err
	}
	if !changes {
		return nil
	}
	if in.Proposals == nil {
		in.Proposals = &wire.TriageProposals{Source: sourcePrefix + m.name, Account: m.name, LabelPrefix: labelPrefix}
		callDAV(in.Proposals, dav)
		in.Secret = "" // it is stored
		if _, err := p.client.PutTriageAccount(ctx, m.name, in, ""); err != nil {
			return fmt.Errorf("store the account: %w", err)
		}
	}
	s.result.Source, s.result.Review, s.result.Tags = in.Proposals.Source, days(account.ReviewWait), dav
	return nil
}

// davSource returns the source of calendars and address books that the built-in actions
// of tags call: the one named dav, or else the only one. Empty means none.
func davSource(ctx context.Context, c *client.Client) (string, error) {
	all, err := c.Sources(ctx)
	if err != nil {
		return "", err
	}
	var found []string
	for _, src := range all {
		switch {
		case src.Kind != catalog.KindDAV || !src.Enabled:
		case src.ID == tag.DefaultSource:
			return src.ID, nil
		default:
			found = append(found, src.ID)
		}
	}
	if len(found) != 1 {
		return "", nil
	}
	return found[0], nil
}

// callDAV has the built-in actions call a source with another name than the default,
// unless the account has actions of these names.
func callDAV(to *wire.TriageProposals, dav string) {
	if dav == "" || dav == tag.DefaultSource {
		return
	}
	if to.Actions == nil {
		to.Actions = make(map[string]wire.TriageActionDefinition)
	}
	for name, action := range tag.Registry(nil) {
		if _, own := to.Actions[name]; !own {
			to.Actions[name] = wire.TriageActionDefinition{Description: action.Description, Source: dav, Tool: action.Tool, Prompt: action.Prompt}
		}
	}
}

// input returns the account: a new one observes only; of one that exists, empty
// settings are filled.
func (s *setup) input(m mailbox, existing *wire.TriageAccount, found *suggest.Settings, secret string) wire.TriageAccountInput {
	in := wire.TriageAccountInput{
		Kind: string(m.Kind), Connection: m.connection(), Secret: secret, BackfillDays: new(s.days()),
		Settings: &wire.TriageSettings{ObserveOnly: true}, Texts: &wire.TriageTextSettings{},
	}
	if existing != nil {
		in.Settings, in.Texts, in.Every, in.Operator, in.Enabled = &existing.Settings, &existing.Texts, &existing.Every, existing.Operator, &existing.Enabled
		in.Connection.Folders, in.Connection.MaxMessageBytes = existing.Connection.Folders, existing.Connection.MaxMessageBytes
		in.Connection.TrustedHost = cmp.Or(existing.Connection.TrustedHost, in.Connection.TrustedHost)
		in.BackfillDays = new(max(existing.BackfillDays, s.days()))
		if existing.Proposals.Source != "" {
			in.Proposals = &existing.Proposals
		}
	}
	fill := func(into *[]string, from []string) {
		if len(*into) == 0 {
			*into = from
		}
	}
	if found == nil {
		found = &suggest.Settings{}
	}
	if m.domain != "" {
		fill(&in.Settings.Domains, []string{m.domain})
	}
	fill(&in.Settings.Addresses, found.Addresses)
	fill(&in.Settings.VIP, found.VIP)
	fill(&in.Settings.Newsletters, found.Newsletters)
	fill(&in.Texts.Examples, found.Examples)
	in.Texts.Signature = cmp.Or(in.Texts.Signature, found.Signature)
	return in
}

// putSource stores the source of the mailbox, and waits until its tools are listed.
func (s *setup) putSource(ctx context.Context, p place, m mailbox, secret string) error {
	box := mail.Mailbox{Kind: mail.KindMaildir, Path: m.Path, From: m.Address, LabelPrefix: labelPrefix}
	if m.Kind == discover.IMAP {
		box.Kind, box.Path = mail.KindIMAP, ""
		box.Host, box.Port, box.User, box.Auth = m.Server.Host, m.Server.Port, m.User, m.auth
		box.OAuth = m.authorization()
		box.TLS = sourceTLS(m.Server.Security)
		if m.SMTP.Host != "" {
			box.SMTP = &mail.Submission{Host: m.SMTP.Host, Port: m.SMTP.Port, TLS: sourceTLS(m.SMTP.Security)}
		}
	}
	config, err := json.Marshal(map[string]any{"accounts": map[string]any{m.name: box}})
	if err != nil {
		return err
	}
	in := wire.SourceInput{Kind: "mail", Config: config}
	if secret != "" {
		if in.Credentials, err = json.Marshal(map[string]any{"accounts": map[string]string{m.name: secret}}); err != nil {
			return err
		}
	}
	id := sourcePrefix + m.name
	if err := p.client.PutSource(ctx, id, in); err != nil {
		return err
	}
	if m.auth != "" {
		if err := s.sourceLogin(ctx, p, id); err != nil {
			return err
		}
	}
	asked, err := p.client.RefreshSource(ctx, id)
	if err != nil {
		return err
	}
	src, done, err := tools.ListedSince(ctx, p.client, id, asked, listFor)
	switch {
	case err != nil:
		return err
	case !done:
		s.say("Source:  %s; its tools are not listed yet: does a worker run?", id)
	case src.ListError != nil:
		return fmt.Errorf("list its tools: %s", command.Safe(*src.ListError))
	default:
		s.say("Source:  %s, %d tools", id, src.Tools)
	}
	return nil
}

func sourceTLS(of discover.Security) string {
	switch of {
	case discover.StartTLS:
		return "starttls"
	case discover.Plain:
		return "none"
	case discover.TLS:
	}
	return "implicit"
}

// read has triage read the account to the end of the first days, and shows progress.
func (s *setup) read(ctx context.Context, p place, m mailbox) error {
	ctx, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	asked, err := p.client.AskTriageRun(ctx, m.name)
	if err != nil {
		return err
	}
	ended := p.triage(ctx, s, m)
	shown := -1
	status, err := triage.Await(ctx, p.client, asked, func() {
		n, err := messages(ctx, p, m.name)
		if err == nil && n != shown {
			s.say("Reading: %d messages", n)
			shown = n
		}
	})
	if err = errors.Join(err, ended()); err != nil {
		return err
	}
	if status.LastError != "" {
		return fmt.Errorf("triage could not read the account: %s", command.Safe(status.LastError))
	}
	return nil
}

// messages counts the messages that the latest runs of an account have read.
func messages(ctx context.Context, p place, name string) (n int, err error) {
	const most = 50
	page, err := p.client.TriageRuns(ctx, name, most, "")
	for _, r := range page.Items {
		n += r.Read
	}
	return n, err
}
