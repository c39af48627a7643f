// Package contacts has the commands for the do-not-contact list, which also
// import and export it as CSV.
package contacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// Command returns the command dnc.
func Command(a *command.App) *cobra.Command {
	return command.NewGroup("dnc", list(a), check(a), add(a), remove(a), importCSV(a), command.New(a, "export", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
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
			Empty: "No matching entries.", Head: []string{"KIND", "VALUE", "UNTIL", "SOURCE", "WHY"},
			Row: func(e wire.Contact) []string {
				return []string{e.Kind, e.Value, command.Local(e.ExpiresAt), e.Source, e.Reason}
			},
		}.ShowPage(a)(page, nil)
	})
	kindFlag(cmd, &f.Kind, "filter by")
	cmd.Flags().StringVar(&f.Prefix, "prefix", "", "filter by value `prefix`")
	cmd.Flags().BoolVar(&f.Expired, "expired", false, "include expired entries")
	command.PageFlags(cmd, &f.Limit, &f.Cursor)
	return cmd
}

func check(a *command.App) *cobra.Command {
	return command.New(a, "check VALUE", command.Arguments(1, 1, "a recipient, as an action would have it"), func(ctx context.Context, c *client.Client, args []string) error {
		return command.Show(a, showCheck)(c.CheckContact(ctx, args[0]))
	})
}

func showCheck(a *command.App, result wire.ContactCheck) error {
	var rows [][]string
	for _, r := range result.Readings {
		listed := "no"
		if r.Listed {
			listed = "yes"
		}
		rows = append(rows, []string{r.Kind, r.Value, listed, r.Reason})
	}
	return a.Table([]string{"KIND", "VALUE", "LISTED", "WHY"}, rows)
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
	kindFlag(cmd, &entry.Kind, "treat the values as this")
	flags.StringVar(&entry.Reason, "reason", "", "reason; shown with the actions that are skipped")
	flags.StringVar(&entry.Source, "source", "", "where the entry comes from")
	command.Flag(cmd, "expires", "date", "expiry `date` of the entry", func(text string) error {
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
			return nil, command.Misuse("invalid value %s: want an e-mail address, a domain or a phone number; for a handle write @name, or give --kind handle", command.Line(value))
		}
		all[i].Kind = string(found.Kind)
	}
	return all, nil
}

func remove(a *command.App) *cobra.Command {
	var kind, note string
	cmd := command.New(a, "remove VALUE...", command.Arguments(1, command.Many, "addresses, domains, phone numbers or handles"), func(ctx context.Context, c *client.Client, args []string) error {
		if len(args) > contact.MaxEntries {
			return command.Misuse("at most %d at once", contact.MaxEntries)
		}
		entries := make([]wire.Contact, len(args))
		for i, value := range args {
			entries[i] = wire.Contact{Kind: kind, Value: value}
		}
		return command.Show(a, showCount)(c.RemoveContacts(ctx, note, entries...))
	})
	kindFlag(cmd, &kind, "treat the values as this")
	cmd.Flags().StringVar(&note, "note", "", "reason, for the audit log")
	return cmd
}

func showCount(a *command.App, n wire.ContactCount) error {
	return a.Print("%d added, %d changed, %d removed\n", n.Added, n.Changed, n.Removed)
}

// shownBad is how many wrong lines are named.
const shownBad = 20

// imported is the result of an import.
type imported struct {
	wire.ContactCount
	Read    int  `json:"read"`
	Bad     int  `json:"bad"`
	Applied bool `json:"applied"`
}

func importCSV(a *command.App) *cobra.Command {
	var skipBad, dry bool
	cmd := command.New(a, "import FILE", command.Arguments(1, 1, "a file, or - for standard input"), func(ctx context.Context, c *client.Client, args []string) error {
		return runImport(ctx, a, c, args[0], skipBad, dry)
	})
	cmd.Flags().BoolVar(&skipBad, "skip-bad", false, "skip invalid lines and import the others")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "check the file without importing it")
	return cmd
}

func runImport(ctx context.Context, a *command.App, c *client.Client, name string, skipBad, dry bool) error {
	in, err := a.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	file, clean, err := rereadable(in)
	if err != nil {
		return err
	}
	defer clean()
	set, err := c.Settings(ctx)
	if err != nil {
		return err
	}
	settings := limits.Tenant{Timezone: set.Timezone, PhoneRegion: set.PhoneRegion, PlusAddressing: set.PlusAddressing}
	result := imported{Applied: !dry}
	err = eachEntry(ctx, file, settings, func(wire.Contact) error { result.Read++; return nil }, func(bad *contact.LineError) {
		result.Bad++
		switch {
		case result.Bad <= shownBad:
			fmt.Fprintf(a.Err, "%s:%d:%d: %s\n", name, bad.Line, bad.Column, command.Safe(strings.TrimSpace(bad.Field+" "+bad.Message)))
		case result.Bad == shownBad+1:
			fmt.Fprintln(a.Err, "…")
		}
	})
	if err != nil {
		return err
	}
	if result.Bad > 0 && !skipBad {
		return fmt.Errorf("%d of %d line(s) are invalid, so nothing was imported; --skip-bad skips them", result.Bad, result.Bad+result.Read)
	}
	if !dry {
		if err := sendParts(ctx, a, c, file, settings, &result); err != nil {
			return fmt.Errorf("%w\n%d of %d entries were imported; run the same command again for the rest", err, result.Added+result.Changed, result.Read)
		}
	}
	if dry {
		return a.Result(result, "%d read, %d wrong; nothing was imported\n", result.Read, result.Bad)
	}
	return a.Result(result, "%d read, %d wrong, %d added, %d changed\n", result.Read, result.Bad, result.Added, result.Changed)
}

// sendParts sends the entries of a file in parts.
func sendParts(ctx context.Context, a *command.App, c *client.Client, file io.ReadSeeker, settings limits.Tenant, result *imported) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the file again: %w", err)
	}
	part := make([]wire.Contact, 0, contact.MaxEntries)
	sent := 0
	flush := func() error {
		if len(part) == 0 {
			return nil
		}
		count, err := c.AddContacts(ctx, part...)
		if err != nil {
			return err
		}
		result.Added, result.Changed = result.Added+count.Added, result.Changed+count.Changed
		if sent += len(part); sent%(10*contact.MaxEntries) == 0 {
			a.Note("%d of %d", sent, result.Read)
		}
		part = part[:0]
		return nil
	}
	err := eachEntry(ctx, file, settings, func(e wire.Contact) error {
		if part = append(part, e); len(part) < contact.MaxEntries {
			return nil
		}
		return flush()
	}, func(*contact.LineError) {})
	if err != nil {
		return err
	}
	return flush()
}

// eachEntry reads a CSV to its end.
func eachEntry(ctx context.Context, in io.Reader, settings limits.Tenant, entry func(wire.Contact) error, bad func(*contact.LineError)) error {
	r, err := contact.NewCSVReader(in, settings.ContactOptions())
	if errors.Is(err, io.EOF) {
		return errors.New("the file is empty; its first line must name the columns")
	}
	if err != nil {
		return err
	}
	for {
		e, _, err := r.Read()
		if errors.Is(err, io.EOF) {
			return ctx.Err()
		}
		if wrong, ok := errors.AsType[*contact.LineError](err); ok {
			bad(wrong)
			continue
		}
		if err != nil {
			return fmt.Errorf("read the file: %w", err)
		}
		c := wire.Contact{Kind: string(e.Kind), Value: e.Value, Reason: e.Reason, Source: e.Source, ExpiresAt: e.ExpiresAt}
		if err := entry(c); err != nil {
			return err
		}
	}
}

// rereadable returns an input that can be read twice: the input itself if it is
// a file, else a copy on the disk, which the returned function removes.
func rereadable(in io.Reader) (io.ReadSeeker, func(), error) {
	if file, ok := in.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return file, func() {}, nil
		}
	}
	spool, err := os.CreateTemp("", "countersign-import-*.csv")
	if err != nil {
		return nil, nil, fmt.Errorf("keep the input: %w", err)
	}
	clean := func() {
		_ = spool.Close()
		_ = os.Remove(spool.Name())
	}
	if _, err = io.Copy(spool, in); err == nil {
		_, err = spool.Seek(0, io.SeekStart)
	}
	if err != nil {
		clean()
		return nil, nil, fmt.Errorf("keep the input: %w", err)
	}
	return spool, clean, nil
}
