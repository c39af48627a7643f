// Package contacts has the commands for the do-not-contact list, which also
// import and export it as CSV.
package contacts

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
)

const contactHelp = `The do-not-contact list says whom nobody may write to: mail addresses, domains
with all below them, phone numbers, handles. An action whose recipients are on
it is skipped, also one that was approved before.

To look and to add takes an operator's token, to remove and to import an
administrator's.`

// Command returns the command dnc.
func Command(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dnc",
		Short: "Say whom nobody may write to: list, add, remove, import, export",
		Long:  contactHelp,
		Example: `  countersign dnc add ana@example.org --reason "asked not to be written to"
  countersign dnc import unsubscribed.csv
  countersign dnc list --prefix ana`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(contactList(a), contactAdd(a), contactRemove(a), contactImport(a), contactExport(a))
	return cmd
}

// contactKinds are the values of --kind.
func contactKinds() []string {
	return []string{string(contact.Email), string(contact.Domain), string(contact.Phone), string(contact.Handle)}
}

func contactList(a *command.App) *cobra.Command {
	f := client.ContactFilter{Limit: 50}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List whom nobody may write to",
		Long: `List a page of the entries, in order of kind and value. With --json it is one
document, {"items": [...], "next_cursor": ...}. "dnc export" writes them all.`,
		Example: "  countersign dnc list\n  countersign dnc list --kind email --prefix ana",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			if err := command.OneOf("kind", f.Kind, contactKinds()...); err != nil {
				return err
			}
			if f.Limit < 1 || f.Limit > command.MaxPage {
				return command.Misuse("--limit must be from 1 to %d", command.MaxPage)
			}
			page, err := c.Contacts(ctx, f)
			if err != nil {
				return err
			}
			return showContacts(a, page)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Kind, "kind", "", "only those of this `kind`: email, domain, phone or handle")
	flags.StringVar(&f.Prefix, "prefix", "", "only those whose value begins with this `text`")
	flags.BoolVar(&f.Expired, "expired", false, "also those that no longer count")
	flags.IntVar(&f.Limit, "limit", f.Limit, "how many a page, at most 200")
	flags.StringVar(&f.Cursor, "cursor", "", "go on where the page before ended")
	command.Fixed(cmd, "kind", contactKinds()...)
	return cmd
}

func showContacts(a *command.App, page client.Page[contact.Entry]) error {
	if a.JSON {
		return a.WriteJSON(page)
	}
	if len(page.Items) == 0 {
		a.Note("There are no such entries.")
		return nil
	}
	rows := make([][]string, len(page.Items))
	for i, e := range page.Items {
		rows[i] = []string{string(e.Kind), e.Value, command.Local(e.ExpiresAt), e.Source, e.Reason}
	}
	if err := command.Table(a.Out, []string{"KIND", "VALUE", "UNTIL", "SOURCE", "WHY"}, rows); err != nil {
		return err
	}
	if page.NextCursor != nil {
		a.Note("There are more: add --cursor %s", *page.NextCursor)
	}
	return nil
}

// entryFlags are what flags say of entries.
type entryFlags struct{ kind, reason, source, expires string }

// entries makes entries of arguments.
func (f entryFlags) entries(args []string) ([]contact.Entry, error) {
	if err := command.OneOf("kind", f.kind, contactKinds()...); err != nil {
		return nil, err
	}
	if len(args) > contact.MaxEntries {
		return nil, command.Misuse("at most %d at once; for more use `countersign dnc import`", contact.MaxEntries)
	}
	e := contact.Entry{Kind: contact.Kind(f.kind), Reason: f.reason, Source: f.source}
	if f.expires != "" {
		at, err := time.Parse(time.DateOnly, f.expires)
		if err != nil {
			if at, err = time.Parse(time.RFC3339, f.expires); err != nil {
				return nil, command.Misuse("--expires must be a date such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z")
			}
		}
		e.ExpiresAt = &at
	}
	all := make([]contact.Entry, len(args))
	for i, value := range args {
		all[i] = e
		all[i].Value = value
	}
	return all, nil
}

func contactAdd(a *command.App) *cobra.Command {
	var f entryFlags
	cmd := &cobra.Command{
		Use:   "add VALUE...",
		Short: "Add entries, or change them",
		Long: `Add entries, or change what is said of them. All of them or none. Without --kind
it is guessed: with an @ inside it is an email, with an @ or # before it a
handle, digits are a phone, a name with dots is a domain with all below it.`,
		Example: `  countersign dnc add ana@example.org --reason "asked not to be written to" --source support
  countersign dnc add rival.example +4930123456 --expires 2027-01-31`,
		Args: command.Arguments(1, command.Many, "addresses, domains, phone numbers or handles"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			entries, err := f.entries(args)
			if err != nil {
				return err
			}
			tally, err := c.AddContacts(ctx, entries...)
			return tallied(a, tally, err)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", "", "read them as this `kind`: email, domain, phone or handle")
	flags.StringVar(&f.reason, "reason", "", "why; told of actions that are skipped for it")
	flags.StringVar(&f.source, "source", "", "where it comes from")
	flags.StringVar(&f.expires, "expires", "", "the `date` from which it no longer counts")
	command.Fixed(cmd, "kind", contactKinds()...)
	return cmd
}

func contactRemove(a *command.App) *cobra.Command {
	var f entryFlags
	cmd := &cobra.Command{
		Use:     "remove VALUE...",
		Short:   "Take entries off the list",
		Long:    "Take entries off the list. What is not on it is passed over.",
		Example: "  countersign dnc remove ana@example.org",
		Args:    command.Arguments(1, command.Many, "addresses, domains, phone numbers or handles"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			entries, err := f.entries(args)
			if err != nil {
				return err
			}
			tally, err := c.RemoveContacts(ctx, entries...)
			return tallied(a, tally, err)
		}),
	}
	cmd.Flags().StringVar(&f.kind, "kind", "", "read them as this `kind`: email, domain, phone or handle")
	command.Fixed(cmd, "kind", contactKinds()...)
	return cmd
}

// tallied says what became of entries.
func tallied(a *command.App, t contact.Counts, err error) error {
	if err != nil {
		return err
	}
	if a.JSON {
		return a.WriteJSON(t)
	}
	if _, err := fmt.Fprintf(a.Out, "%d added, %d changed, %d removed\n", t.Added, t.Changed, t.Removed); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

func contactExport(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:     "export",
		Short:   "Write the whole list as CSV",
		Long:    "Write the whole list as CSV to standard output, as \"dnc import\" reads it.",
		Example: "  countersign dnc export > do-not-contact.csv",
		Args:    command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			return c.ExportContacts(ctx, a.Out)
		}),
	}
}
