package triage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// settingsChange is a change of an account's settings, in flags.
type settingsChange struct {
	file                    string
	levels                  []string
	observeOnly, quarantine bool
	confident, unsure       float64
	travelling, dryRun, yes bool
	since                   time.Time
}

func settings(a *command.App) *cobra.Command {
	var f settingsChange
	var cmd *cobra.Command
	cmd = command.New(a, "settings ACCOUNT", command.Arguments(1, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		account, err := c.TriageAccount(ctx, args[0])
		if err != nil {
			return err
		}
		next := account.Settings
		if err := f.apply(a, cmd, &next); err != nil {
			return err
		}
		in := wire.TriagePreviewRequest{Settings: next, Since: f.since}
		if cmd.Flags().Changed("travelling") {
			if in.Travelling = &f.travelling; !f.dryRun {
				return command.Misuse("--travelling needs --dry-run; `countersign pause --travelling --automation triage/%s` sets it", args[0])
			}
		}
		preview, err := c.PreviewTriageSettings(ctx, args[0], in)
		if err != nil {
			return err
		}
		if !a.JSON || f.dryRun {
			if err := command.Show(a, showPreview)(preview, nil); err != nil || f.dryRun {
				return err
			}
		}
		if !f.yes {
			if err := a.Confirm("Apply these settings?"); err != nil {
				return err
			}
		}
		stored, err := storeSettings(ctx, c, account, next)
		if err != nil {
			return err
		}
		return a.Result(map[string]any{"account": stored, "preview": preview}, "stored the settings of %s\n", args[0])
	})
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "settings `file` in YAML or JSON, or - for standard input; it replaces all settings")
	flags.StringArrayVar(&f.levels, "level", nil, "level of a cohort, as `cohort=level`, such as newsletters=L2; \"default\" as the level is the default one (repeatable)")
	flags.BoolVar(&f.observeOnly, "observe-only", false, "require a person's approval for every action")
	flags.BoolVar(&f.quarantine, "quarantine", false, "propose moving phishing to the junk folder")
	flags.Float64Var(&f.confident, "confident", 0, "`confidence` below which a level is lowered; 0 is the default one")
	flags.Float64Var(&f.unsure, "unsure", 0, "`confidence` below which the owner is asked; 0 is the default one")
	flags.BoolVar(&f.travelling, "travelling", false, "with --dry-run: compare as if triage were set travelling, or with =false as if not")
	command.PastFlag(cmd, &f.since, "since", "compare mail received since this `time`, or a duration ago (default 7 days)")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show the difference, and change nothing")
	flags.BoolVarP(&f.yes, "yes", "y", false, "skip the confirmation prompt")
	return cmd
}

// apply changes settings by the flags that were given.
func (f *settingsChange) apply(a *command.App, cmd *cobra.Command, s *wire.TriageSettings) error {
	if f.file != "" {
		*s = wire.TriageSettings{}
		if _, err := a.ReadDocument(f.file, func(document []byte) error { return strictly(document, s) }); err != nil {
			return err
		}
	}
	s.Levels = maps.Clone(s.Levels)
	for _, text := range f.levels {
		cohort, level, ok := strings.Cut(text, "=")
		if !ok {
			return command.Misuse("--level must be cohort=level, such as newsletters=L2")
		}
		if s.Levels == nil {
			s.Levels = map[string]string{}
		}
		if delete(s.Levels, cohort); level != "default" {
			s.Levels[cohort] = level
		}
	}
	for name, set := range map[string]func(){
		"observe-only": func() { s.ObserveOnly = f.observeOnly }, "quarantine": func() { s.Quarantine = f.quarantine },
		"confident": func() { s.Confident = f.confident }, "unsure": func() { s.Unsure = f.unsure },
	} {
		if cmd.Flags().Changed(name) {
			set()
		}
	}
	return nil
}

// storeSettings stores an account with other settings, unless it was changed since
// it was read. The server keeps its password.
func storeSettings(ctx context.Context, c *client.Client, account wire.TriageAccount, settings wire.TriageSettings) (wire.TriageAccount, error) {
	raw, err := json.Marshal(account)
	var in wire.TriageAccountInput
	if err = errors.Join(err, json.Unmarshal(raw, &in)); err != nil {
		return account, err
	}
	in.Settings = &settings
	return c.PutTriageAccount(ctx, account.Name, in, account.ETag)
}

// showPreview shows a comparison: the counts by action, and what differs.
func showPreview(a *command.App, p wire.TriagePreview) error {
	if p.Recomputed == 0 {
		a.Note("No decision since %s can be recomputed.", command.Local(&p.Since))
	} else if err := showCounts(a, p); err != nil {
		return err
	}
	if len(p.Items) > 0 {
		if err := a.Print("\n"); err != nil {
			return err
		}
		if err := (command.View[wire.TriagePreviewItem]{
			Head: []string{"ID", "RECEIVED", "FROM", "SUBJECT", "WAS", "WOULD BE"},
			Row: func(it wire.TriagePreviewItem) []string {
				return []string{it.MessageID.String(), command.Local(&it.ReceivedAt), it.Sender, it.Subject, decisionText(it.Was), decisionText(it.Would)}
			},
		}).Show(a)(p.Items, nil); err != nil {
			return err
		}
	}
	a.Note("\n%d of %d decisions since %s differ.", p.Changed, p.Recomputed, command.Local(&p.Since))
	if p.Changed > len(p.Items) {
		a.Note("The newest %d of them are listed.", len(p.Items))
	}
	for _, gap := range p.Unknown {
		a.Note("%d decisions cannot be recomputed: %s.", gap.Decisions, map[string]string{
			"not_recorded": "their facts are not recorded, because an older version decided or the header has very many addresses",
			"copies":       "they join decisions about copies that differ",
		}[gap.Because])
	}
	if p.Cut {
		a.Note("Older decisions were left out.")
	}
	if len(p.Partly) > 0 {
		a.Note("%s also changes how the text of mail is judged, which is not recomputed.", strings.Join(p.Partly, ", "))
	}
	return nil
}

// countRow is a line of the counts.
type countRow struct {
	name       string
	was, would int
}

func showCounts(a *command.App, p wire.TriagePreview) error {
	var rows []countRow
	for _, part := range []struct {
		suffix     string
		was, would map[string]int
	}{{"", p.Was.Alone, p.Would.Alone}, {", by a person", p.Was.Asked, p.Would.Asked}} {
		names := maps.Clone(part.was)
		if names == nil {
			names = map[string]int{}
		}
		maps.Copy(names, part.would)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			rows = append(rows, countRow{name + part.suffix, part.was[name], part.would[name]})
		}
	}
	rows = append(rows, countRow{"kept", p.Was.Kept, p.Would.Kept}, countRow{"question", p.Was.Questions, p.Would.Questions})
	for _, bucket := range []string{"urgent", "actionable", "informational", "archived"} {
		rows = append(rows, countRow{"bucket " + bucket, p.Was.Buckets[bucket], p.Would.Buckets[bucket]})
	}
	return command.View[countRow]{
		Head: []string{"DECISION", "WAS", "WOULD BE", "DIFFERENCE"},
		Row: func(r countRow) []string {
			return []string{r.name, fmt.Sprint(r.was), fmt.Sprint(r.would), fmt.Sprintf("%+d", r.would-r.was)}
		},
	}.Show(a)(rows, nil)
}

// decisionText is a decision in short: informational L2: archive?, where a question
// mark follows an action that a person approves.
func decisionText(d wire.TriagePreviewDecision) string {
	acts := slices.Clone(d.Alone)
	for _, action := range d.Asked {
		acts = append(acts, action+"?")
	}
	text := d.Bucket + " " + d.Level
	if len(acts) > 0 {
		text += ": " + strings.Join(acts, ", ")
	}
	if d.Question {
		text += " (question)"
	}
	return text
}
