// Package contacts has the commands for the do-not-contact list, which also
// import and export it as CSV.
package contacts

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
)

// Command returns the command dnc.
func Command(a *command.App) *cobra.Command {
	return command.NewGroup("dnc", list(a), add(a), remove(a), importCSV(a), command.New(a, "export", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return c.ExportContacts(ctx, a.Out)
	}))
}

func kindFlag(cmd *cobra.Command, kind *string, about string) {
	command.EnumFlag(cmd, kind, "kind", about+" `kind`: email, domain, phone or handle", "email", "domain", "phone", "handle")
}

func list(a *command.App) *cobra.Command {
	var f client.ContactFilter
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		page, err := c.Contacts(ctx, f)
		if err != nil {
			return err
		}
		return command.View[wire.Contact]{
			Empty: "There are no such entries.", Head: []string{"KIND", "VALUE", "UNTIL", "SOURCE", "WHY"},
			Row: func(e wire.Contact) []string {
				return []string{e.Kind, e.Value, command.Local(e.ExpiresAt), e.Source, e.Reason}
			},
		}.ShowPage(a)(page, nil)
	})
	kindFlag(cmd, &f.Kind, "only those of this")
	cmd.Flags().StringVar(&f.Prefix, "prefix", "", "only those whose value begins with this `text`")
	cmd.Flags().BoolVar(&f.Expired, "expired", false, "also those that no longer count")
	command.PageFlags(cmd, &f.Limit, &f.Cursor)
	return cmd
}

func add(a *command.App) *cobra.Command {
	var entry wire.Contact
	cmd := command.New(a, "add VALUE...", command.Arguments(1, command.Many, "addresses, domains, phone numbers or handles"), func(ctx context.Context, c *client.Client, args []string) error {
		entries, err := recognise(ctx, c, entry, args)
		if err != nil {
			return err
		}
		count, err := c.AddContacts(ctx, entries...)
		if err != nil {
			return err
		}
		for _, e := range entries {
			a.Note("%s is on the list as %s", command.Line(e.Value), e.Kind)
		}
		return command.Show(a, showCount)(count, nil)
	})
	flags := cmd.Flags()
	kindFlag(cmd, &entry.Kind, "read them as this")
	flags.StringVar(&entry.Reason, "reason", "", "why; told of actions that are skipped for it")
	flags.StringVar(&entry.Source, "source", "", "where it comes from")
	command.Flag(cmd, "expires", "date", "the `date` from which it no longer counts", func(text string) error {
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			if at, err = time.Parse(time.RFC3339, text); err != nil {
				return fmt.Errorf("must be a date such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z")
			}
		}
		entry.ExpiresAt = &at
		return nil
	})
	return cmd
}

// recognise returns an entry for each value, like one but of its own kind.
func recognise(ctx context.Context, c *client.Client, like wire.Contact, values []string) ([]wire.Contact, error) {
	if len(values) > contact.MaxEntries {
		return nil, command.Misuse("at most %d at once; for more use `countersign dnc import`", contact.MaxEntries)
	}
	var options contact.Options
	if like.Kind == "" {
		settings, err := c.Settings(ctx)
		if err != nil {
			return nil, err
		}
		options = contact.Options{Region: settings.PhoneRegion}
	}
	all := make([]wire.Contact, len(values))
	for i, value := range values {
		all[i] = like
		all[i].Value = value
		if like.Kind != "" {
			continue
		}
		found, err := contact.Parse(value, options)
		switch {
		case err != nil:
			return nil, command.Misuse("%s: %v", command.Line(value), err)
		case found.Kind == contact.Handle && !strings.ContainsAny(value[:1], "@#"):
			return nil, command.Misuse("%s is no address, domain or phone number; for a handle write @name, or give --kind handle", command.Line(value))
		}
		all[i].Kind = string(found.Kind)
	}
	return all, nil
}

func remove(a *command.App) *cobra.Command {
	var kind string
	cmd := command.New(a, "remove VALUE...", command.Arguments(1, command.Many, "addresses, domains, phone numbers or handles"), func(ctx context.Context, c *client.Client, args []string) error {
		if len(args) > contact.MaxEntries {
			return command.Misuse("at most %d at once", contact.MaxEntries)
		}
		entries := make([]wire.Contact, len(args))
		for i, value := range args {
			entries[i] = wire.Contact{Kind: kind, Value: value}
		}
		return command.Show(a, showCount)(c.RemoveContacts(ctx, entries...))
	})
	kindFlag(cmd, &kind, "read them as this")
	return cmd
}

func showCount(a *command.App, n wire.ContactCount) error {
	return a.Print("%d added, %d changed, %d removed\n", n.Added, n.Changed, n.Removed)
}
