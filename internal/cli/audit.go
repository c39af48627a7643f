package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/audit"
)

const auditHelp = `Everything that happens is an event: who proposed, decided and changed what.
Events are sealed every minute into a chain of hashes, so that nobody can change
one unseen, not even in the database itself.

It takes an operator's token; with --tenant it works on the database of
DATABASE_URL itself, and needs no API.`

func (a *app) audit() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Verify and export the log of what happened",
		Long:  auditHelp,
		Example: `  countersign audit verify
  countersign audit export --from 2026-01-01 --until 2026-02-01 > january.jsonl`,
		Args: cobra.ArbitraryArgs,
		RunE: group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(a.auditVerify(), a.auditExport())
	return cmd
}

const auditVerifyHelp = `Compare every event with its seal, and every seal with the one before. What was
changed, taken out or put in since is named, and the exit code is then 1.

Whoever can write to the database as its owner can also write the whole chain
anew. So note the head that is shown somewhere else, and give it with --head the
next time: it must still be in the chain.`

func (a *app) auditVerify() *cobra.Command {
	var tenant, head string
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Find events that were changed, taken out or put in",
		Long:  auditVerifyHelp,
		Example: `  countersign audit verify
  countersign audit verify --json | jq -r .head.hash >> heads.txt
  countersign audit verify --head "$(tail -n 1 heads.txt)"
  DATABASE_URL=postgres://auditor@localhost/countersign countersign audit verify --tenant acme`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var opt audit.Options
			if head != "" {
				var err error
				if opt.Noted, err = audit.ParseHash(head); err != nil {
					return misuse("--head must be the 64 hexadecimal digits of a head that was shown")
				}
			}
			log, err := a.auditor(cmd.Context(), tenant)
			if err != nil {
				return err
			}
			defer log.close()
			return a.runAuditVerify(cmd.Context(), log, opt)
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "the tenant's `name`, to look into the database itself")
	cmd.Flags().StringVar(&head, "head", "", "the `hash` of a head that was noted, which the chain must still hold")
	return cmd
}

func (a *app) runAuditVerify(ctx context.Context, log auditor, opt audit.Options) error {
	report, err := log.verify(ctx, opt)
	for err == nil && report.Next != 0 {
		a.note("%d events verified", report.Sealed)
		opt.After = report.Next
		var rest audit.Report
		if rest, err = log.verify(ctx, opt); err == nil {
			report.Join(rest)
		}
	}
	if err != nil {
		return err
	}
	if a.json {
		err = a.document(report)
	} else {
		err = a.showReport(report)
	}
	if err == nil && !report.Intact() {
		err = fmt.Errorf("the log is not what was sealed (findings: %d)", int64(len(report.Findings))+report.Omitted)
	}
	return err
}

func (a *app) showReport(r audit.Report) error {
	if !r.Intact() {
		rows := make([][]string, len(r.Findings))
		for i, f := range r.Findings {
			rows[i] = []string{string(f.Kind), "", f.Place, "", f.What}
			if f.Seal != 0 {
				rows[i][1] = fmt.Sprint(f.Seal)
			}
			if !f.At.IsZero() {
				rows[i][3] = local(&f.At)
			}
		}
		if err := table(a.sys.Out, []string{"FINDING", "SEAL", "PLACE", "TIME", "WHAT"}, rows); err != nil {
			return err
		}
		if r.Omitted > 0 {
			a.note("and %d more", r.Omitted)
		}
		fmt.Fprintln(a.sys.Out)
	}
	fmt.Fprintf(a.sys.Out, "%d seals over %d events", r.Seals, r.Sealed+r.Pruned)
	if r.Pruned > 0 {
		fmt.Fprintf(a.sys.Out, ", of which retention deleted %d", r.Pruned)
	}
	if r.Unsealed > 0 {
		fmt.Fprintf(a.sys.Out, "; %d not sealed yet, since %s", r.Unsealed, local(&r.UnsealedSince))
	}
	fmt.Fprintln(a.sys.Out)
	if r.Head != nil {
		fmt.Fprintf(a.sys.Out, "head: seal %d, %s\n", r.Head.Seal, r.Head.Hash)
	}
	return nil
}

const auditExportHelp = `Write the events of a range of time as JSON, one a line, in the order in which
they were committed: its place, its seal, the hash that the seal keeps of it,
and what happened. The last line holds the head of the chain.`

func (a *app) auditExport() *cobra.Command {
	var tenant, from, until string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write events as JSON, one a line",
		Long:  auditExportHelp,
		Example: `  countersign audit export --from 2026-01-01 --until 2026-02-01 > january.jsonl
  countersign audit export --from 24h | jq -c 'select(.kind == "configured")'`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var span audit.Span
			var err error
			now := time.Now()
			if span.From, err = timeFlag("from", from, now); err != nil {
				return err
			}
			if span.Until, err = timeFlag("until", until, now); err != nil {
				return err
			}
			if !span.Until.IsZero() && !span.From.Before(span.Until) {
				return misuse("--until must be later than --from")
			}
			log, err := a.auditor(cmd.Context(), tenant)
			if err != nil {
				return err
			}
			defer log.close()
			return a.runAuditExport(cmd.Context(), log, span)
		},
	}
	cmd.Flags().StringVar(&tenant, "tenant", "", "the tenant's `name`, to look into the database itself")
	cmd.Flags().StringVar(&from, "from", "", "only what happened since this `time`: 24h ago, 2026-01-02 or 2026-01-02T03:04:05Z")
	cmd.Flags().StringVar(&until, "until", "", "only what happened before this `time`")
	return cmd
}

func (a *app) runAuditExport(ctx context.Context, log auditor, span audit.Span) error {
	write := func(line []byte) error {
		if _, err := fmt.Fprintf(a.sys.Out, "%s\n", line); err != nil {
			return fmt.Errorf("write the output: %w", err)
		}
		return nil
	}
	var events int64
	for after := ""; ; {
		closing, err := log.export(ctx, span, after, write)
		if err != nil {
			return err
		}
		events += closing.Events
		if closing.Next == "" {
			closing.Events = events
			return a.document(closing)
		}
		after = closing.Next
	}
}
