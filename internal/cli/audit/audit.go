// Package audit has the commands that verify and export the log of events, over
// the API or in the database itself.
package audit

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Command returns the command audit.
func Command(a *command.App) *cobra.Command {
	return command.NewGroup("audit", auditVerify(a), auditExport(a))
}

func auditVerify(a *command.App) *cobra.Command {
	var tenant, head string
	cmd := command.NewLocal("verify", command.NoArguments(), func(ctx context.Context, _ []string) error {
		var opt audit.Options
		if head != "" {
			var err error
			if opt.KnownHead, err = audit.ParseHash(head); err != nil {
				return command.Misuse("--head must be the 64 hexadecimal digits of a head that was shown")
			}
		}
		log, err := open(ctx, a, tenant)
		if err != nil {
			return err
		}
		defer log.close()
		return runAuditVerify(ctx, a, log, opt)
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "the tenant's `name`, to look into the database itself")
	cmd.Flags().StringVar(&head, "head", "", "the `hash` of a head that was noted, which the chain must still hold")
	return cmd
}

func runAuditVerify(ctx context.Context, a *command.App, log auditor, opt audit.Options) error {
	report, err := log.verify(ctx, opt)
	for err == nil && report.Next != 0 {
		a.Note("%d events verified", report.Covered)
		opt.After = report.Next
		var rest audit.Report
		if rest, err = log.verify(ctx, opt); err == nil {
			report.Join(rest)
		}
	}
	if err != nil {
		return err
	}
	if a.JSON {
		err = a.WriteJSON(report)
	} else {
		err = showReport(a, report)
	}
	if err == nil && !report.Intact() {
		err = fmt.Errorf("the log is not what its checkpoints cover (findings: %d)", int64(len(report.Findings))+report.Omitted)
	}
	return err
}

func showReport(a *command.App, r audit.Report) error {
	if !r.Intact() {
		rows := make([][]string, len(r.Findings))
		for i, f := range r.Findings {
			rows[i] = []string{string(f.Kind), "", f.Position, "", f.Message}
			if f.Checkpoint != 0 {
				rows[i][1] = fmt.Sprint(f.Checkpoint)
			}
			if !f.At.IsZero() {
				rows[i][3] = command.Local(&f.At)
			}
		}
		if err := a.Table([]string{"FINDING", "CHECKPOINT", "POSITION", "TIME", "WHAT"}, rows); err != nil {
			return err
		}
		if r.Omitted > 0 {
			a.Note("and %d more", r.Omitted)
		}
		fmt.Fprintln(a.Out)
	}
	fmt.Fprintf(a.Out, "%d checkpoints over %d events", r.Checkpoints, r.Covered+r.Pruned)
	if r.Pruned > 0 {
		fmt.Fprintf(a.Out, ", of which retention deleted %d", r.Pruned)
	}
	if r.Uncovered > 0 {
		fmt.Fprintf(a.Out, "; %d without a checkpoint yet, since %s", r.Uncovered, command.Local(&r.UncoveredSince))
	}
	fmt.Fprintln(a.Out)
	if r.Head != nil {
		fmt.Fprintf(a.Out, "head: checkpoint %d, %s\n", r.Head.Checkpoint, r.Head.Hash)
	}
	return nil
}

func auditExport(a *command.App) *cobra.Command {
	var tenant string
	var span audit.Span
	cmd := command.NewLocal("export", command.NoArguments(), func(ctx context.Context, _ []string) error {
		log, err := open(ctx, a, tenant)
		if err != nil {
			return err
		}
		defer log.close()
		return runAuditExport(ctx, a, log, span)
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "the tenant's `name`, to look into the database itself")
	command.RangeFlags(cmd, &span.From, &span.Until, "what happened")
	return cmd
}

func runAuditExport(ctx context.Context, a *command.App, log auditor, span audit.Span) error {
	write := func(line []byte) error { return a.Print("%s\n", line) }
	var events int64
	for after := ""; ; {
		closing, err := log.export(ctx, span, after, write)
		if err != nil {
			return err
		}
		events += closing.Events
		if closing.Next == "" {
			closing.Events = events
			return a.WriteJSON(closing)
		}
		after = closing.Next
	}
}
