package mailsetup

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strings"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/discover"
)

// removed is the result of an undo.
type removed struct {
	Account string `json:"account"`
	Removed bool   `json:"removed"`
	Source  string `json:"source,omitzero"`
	Denied  int    `json:"denied"`
	// Login is set if the database login was removed too, with the last account.
	Login bool `json:"database_login"`
}

// undo removes an account of setup: its waiting proposals are denied, then source,
// review rule and account are deleted, and with the last account the database login.
// What was removed before does not count.
func (s *setup) undo(ctx context.Context, named string) error {
	if named == "" {
		return command.Misuse("name the account or the address to remove")
	}
	p, err := s.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = p.close() }() // it ran until here
	name, err := s.stored(ctx, p.client, named)
	if err != nil {
		return err
	}
	done := removed{Account: name, Source: sourcePrefix + name}
	if done.Denied, err = denyWaiting(ctx, p.client, done.Source); err != nil {
		return err
	}
	for _, remove := range []func() error{
		func() error { return p.client.DeleteTriageAccount(ctx, name) },
		func() error { return p.client.DeleteSource(ctx, done.Source) },
		func() error { return p.client.DeleteReview(ctx, done.Source+":*", envelope.RiskLow) },
	} {
		err := remove()
		if problem, ok := errors.AsType[*client.Problem](err); ok && problem.Status == http.StatusNotFound {
			continue
		}
		if err != nil {
			return err
		}
		done.Removed = true
	}
	left, err := p.client.TriageAccounts(ctx)
	if err != nil {
		return err
	}
	if file, err := knownFile(s.app); err == nil && len(left) == 0 {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if p.own && len(left) == 0 {
		me, err := p.client.Me(ctx)
		if err != nil {
			return err
		}
		if err := s.dropLogin(ctx, me); err != nil {
			return err
		}
		done.Login = true
	}
	text := "removed account " + name + ", with its source, its review rule and all of its triage data"
	if !done.Removed {
		text = "account " + name + " was not set up, or is removed already"
	}
	return s.app.Result(done, "%s\n", text)
}

// stored returns the name of the account that a person names: by its name, its address or
// the folder of its Maildir. Of a setup that was interrupted, there is no account, and
// the name is the one that it would have.
func (s *setup) stored(ctx context.Context, c *client.Client, named string) (string, error) {
	if s.flags.name != "" {
		return s.flags.name, nil
	}
	path := named
	if at, err := maildirAt(named); err == nil {
		path = at.Path
	}
	all, err := c.TriageAccounts(ctx)
	if err != nil {
		return "", err
	}
	for _, is := range all {
		own := len(is.Settings.Addresses) > 0 && strings.EqualFold(is.Settings.Addresses[0], named)
		if is.Name == named || own || is.Connection.Path == path || strings.EqualFold(is.Connection.User, named) {
			return is.Name, nil
		}
	}
	if strings.Contains(named, "@") {
		return nameOf(discover.Finding{Address: named}), nil
	}
	return named, nil
}

// denyWaiting denies the actions of a source that wait for a person.
func denyWaiting(ctx context.Context, c *client.Client, source string) (n int, err error) {
	filter := client.ActionFilter{Source: source, Phases: []envelope.Phase{envelope.PhasePending}, Summary: true}
	for {
		page, err := c.Actions(ctx, filter)
		if err != nil {
			return n, err
		}
		if len(page.Items) > 0 {
			in := wire.BulkDecision{Note: "the mail account is removed"}
			for _, a := range page.Items {
				in.IDs = append(in.IDs, a.Envelope.ActionID)
			}
			decided, err := c.DenyMany(ctx, in)
			if err != nil {
				return n, err
			}
			for _, d := range decided {
				if d.Problem == nil {
					n++
				}
			}
		}
		if page.NextCursor == nil {
			return n, nil
		}
		filter.Cursor = *page.NextCursor
	}
}
