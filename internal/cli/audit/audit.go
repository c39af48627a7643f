// Package audit has the commands that verify and export the log of events, over
// the API or in the database itself.
package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// Command returns the command audit.
func Command(a *command.App) *cobra.Command {
	return command.NewGroup("audit", auditVerify(a), auditExport(a), auditHead(a), auditKeygen(a))
}

func auditVerify(a *command.App) *cobra.Command {
	var tenant, head string
	var since time.Time
	cmd := command.NewLocal("verify", command.NoArguments(), func(ctx context.Context, _ []string) error {
		var known note
		if head != "" {
			var err error
			if known, err = knownHead(head); err != nil {
				return err
			}
		}
		log, err := open(ctx, a, tenant)
		if err != nil {
			return err
		}
		defer log.close()
		return runAuditVerify(ctx, a, log, known, since)
	})
	command.PastFlag(cmd, &since, "since", "with --tenant, compare only the actions that were proposed since this `time`")
	cmd.Flags().StringVar(&tenant, "tenant", "", "the tenant's `name`, to look into the database itself")
	cmd.Flags().StringVar(&head, "head", "", "the `note` of a head (a file of audit head, or the hash alone), which the chain must still hold")
	return cmd
}

// verified is what verify found: in the chain of events, and where the database
// itself is open, in the rows that they tell of.
type verified struct {
	audit.Report
	Rows *audit.RowsReport `json:"rows,omitempty"`
}

func (r *verified) findings() int64 {
	n := int64(len(r.Findings)) + r.Omitted
	if r.Rows != nil {
		n += int64(len(r.Rows.Findings)) + r.Rows.Omitted
	}
	return n
}

// verifyChain compares all events with the chain, and a head that was noted, unless
// it is zero.
func verifyChain(ctx context.Context, a *command.App, log auditor, known note) (audit.Report, error) {
	if known.Checkpoint != 0 {
		is, err := currentHead(ctx, log)
		if err == nil && is.Tenant != known.Tenant {
			err = fmt.Errorf("the note is of a head of tenant %s, and this is the chain of tenant %s", known.Tenant, is.Tenant)
		}
		if err != nil {
			return audit.Report{}, err
		}
	}
	opt := audit.Options{KnownHead: known.Hash}
	report, err := log.verify(ctx, opt)
	for err == nil && report.Next != 0 {
		a.Note("%d events verified", report.Covered)
		opt.After = report.Next
		var rest audit.Report
		if rest, err = log.verify(ctx, opt); err == nil {
			report.Join(rest)
		}
	}
	if has := report.KnownHead; err == nil && has != nil && known.Checkpoint != 0 && has.Checkpoint != known.Checkpoint {
		report.Findings = append(report.Findings, audit.Finding{
			Kind: audit.ChainBroken, Checkpoint: has.Checkpoint,
			Message: fmt.Sprintf("it has the hash that the note says checkpoint %d has: the note or the checkpoint's number was changed", known.Checkpoint),
		})
	}
	return report, err
}

func runAuditVerify(ctx context.Context, a *command.App, log auditor, known note, since time.Time) error {
	report, err := verifyChain(ctx, a, log, known)
	if err != nil {
		return err
	}
	all := verified{Report: report}
	if all.Rows, err = log.verifyRows(ctx, audit.RowsOptions{Since: since, Progress: func(r audit.RowsReport) { noteRows(a, r) }}); err != nil {
		return err
	}
	if a.JSON {
		err = a.WriteJSON(all)
	} else if err = showReport(a, report); err == nil {
		err = showRows(a, all.Rows)
	}
	if n := all.findings(); err == nil && n > 0 {
		err = fmt.Errorf("the record is not what its checkpoints and events cover (findings: %d)", n)
	}
	return err
}

// noteRows says how far the comparison of rows has come, every 100,000 actions.
func noteRows(a *command.App, r audit.RowsReport) {
	if r.Actions > 0 && r.Actions%100_000 < 200 {
		a.Note("part %d of %d: %d actions compared with their events", r.Part, r.Parts, r.Actions)
	}
}

func showRows(a *command.App, r *audit.RowsReport) error {
	if r == nil {
		a.Note("Only events were verified. To compare actions, votes and attempts with them, add --tenant NAME beside the database.")
		return nil
	}
	if len(r.Findings) > 0 {
		rows := make([][]string, len(r.Findings))
		for i, f := range r.Findings {
			rows[i] = []string{string(f.Kind), f.Table, f.Action.String(), f.Columns, f.Message}
		}
		if err := a.Table([]string{"FINDING", "TABLE", "ACTION", "COLUMNS", "WHAT"}, rows); err != nil {
			return err
		}
		if r.Omitted > 0 {
			a.Note("and %d more", r.Omitted)
		}
		fmt.Fprintln(a.Out)
	}
	fmt.Fprintf(a.Out, "%d actions, %d votes and %d attempts compared with the events", r.Actions, r.Votes, r.Attempts)
	if r.Pruned > 0 {
		fmt.Fprintf(a.Out, "; retention deleted %d actions", r.Pruned)
	}
	if r.Unchecked > 0 {
		fmt.Fprintf(a.Out, "; %d are older than the events that were read", r.Unchecked)
	}
	fmt.Fprintln(a.Out)
	return nil
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
	if r.KnownHead != nil {
		fmt.Fprintf(a.Out, "the chain contains the noted head: checkpoint %d, %s\n", r.KnownHead.Checkpoint, r.KnownHead.Hash)
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

// auditor reads a tenant's log, a part at a time: each answer says where to
// continue.
type auditor interface {
	verify(ctx context.Context, opt audit.Options) (audit.Report, error)
	// verifyRows returns nil where only the events can be read.
	verifyRows(ctx context.Context, opt audit.RowsOptions) (*audit.RowsReport, error)
	export(ctx context.Context, span audit.Span, after string, line func([]byte) error) (audit.Closing, error)
	// note records that a head was noted.
	note(ctx context.Context, head audit.Head) error
	close()
}

// open returns an auditor over the API or, for the tenant of a name, in the
// database.
func open(ctx context.Context, a *command.App, tenant string) (auditor, error) {
	if tenant == "" {
		c, err := a.Client()
		return remoteAuditor{c}, err
	}
	pool, err := a.OpenDatabase(ctx)
	if err != nil {
		return nil, err
	}
	l := &localAuditor{pool: pool}
	err = postgres.InTx(ctx, pool, postgres.Admin(), func(tx pgx.Tx) (err error) {
		l.tenant, err = identity.TenantByName(ctx, tx, tenant)
		return err
	})
	if err != nil {
		pool.Close()
		return nil, err
	}
	return l, nil
}

// remoteAuditor asks the API.
type remoteAuditor struct{ c *client.Client }

func (r remoteAuditor) verify(ctx context.Context, opt audit.Options) (report audit.Report, err error) {
	head := ""
	if opt.KnownHead != (audit.Hash{}) {
		head = opt.KnownHead.String()
	}
	got, err := r.c.VerifyAudit(ctx, opt.After, head)
	if err != nil {
		return report, err
	}
	return report, convert(got, &report)
}

func (remoteAuditor) verifyRows(context.Context, audit.RowsOptions) (*audit.RowsReport, error) {
	return nil, nil
}

func (r remoteAuditor) export(ctx context.Context, span audit.Span, after string, line func([]byte) error) (closing audit.Closing, err error) {
	got, err := r.c.ExportAudit(ctx, client.AuditRange{From: span.From, Until: span.Until, After: after}, line)
	if err != nil {
		return closing, err
	}
	return closing, convert(got, &closing)
}

func (r remoteAuditor) note(ctx context.Context, head audit.Head) error {
	return r.c.NoteHead(ctx, wire.AuditHead{Checkpoint: head.Checkpoint, Hash: head.Hash.String()})
}

// convert turns a representation of the API into the type of which it is.
func convert(from, to any) error {
	text, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	return err
}

func (remoteAuditor) close() {}

// localAuditor asks the database.
type localAuditor struct {
	pool   *pgxpool.Pool
	tenant envelope.TenantID
}

// verifyAtOnce is about how many events are verified in one transaction, and
// partFor how long one may take.
const (
	verifyAtOnce = 500_000
	partFor      = 10 * time.Minute
)

func (l *localAuditor) inTx(ctx context.Context, do func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, partFor)
	defer cancel()
	return postgres.InTx(ctx, l.pool, postgres.API(l.tenant), func(tx pgx.Tx) error { return do(ctx, tx) })
}

func (l *localAuditor) verify(ctx context.Context, opt audit.Options) (report audit.Report, err error) {
	opt.Limit = verifyAtOnce
	return report, l.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		report, err = audit.Verify(ctx, tx, l.tenant, opt)
		return err
	})
}

func (l *localAuditor) verifyRows(ctx context.Context, opt audit.RowsOptions) (*audit.RowsReport, error) {
	report, err := postgres.InTxReturning(ctx, l.pool, postgres.API(l.tenant).Snapshot(), func(tx pgx.Tx) (audit.RowsReport, error) {
		return audit.VerifyRows(ctx, tx, l.tenant, opt)
	})
	return &report, err
}

func (l *localAuditor) export(ctx context.Context, span audit.Span, after string, line func([]byte) error) (audit.Closing, error) {
	closing := audit.Closing{End: true, Tenant: l.tenant}
	place := audit.Position{}
	if after != "" {
		var err error
		if place, err = audit.ParsePosition(after); err != nil {
			return closing, err
		}
	}
	var page []audit.Entry
	err := l.inTx(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if page, err = audit.Export(ctx, tx, l.tenant, span, place); err != nil {
			return err
		}
		closing.Head, err = audit.CurrentHead(ctx, tx, l.tenant)
		return err
	})
	if err != nil {
		return closing, err
	}
	for _, e := range page {
		text, err := e.Line()
		if err != nil {
			return closing, err
		}
		if err := line(text[:len(text)-1]); err != nil {
			return closing, err
		}
	}
	closing.Events = int64(len(page))
	if len(page) == audit.ExportRows {
		closing.Next = page[len(page)-1].Position.String()
	}
	return closing, nil
}

func (l *localAuditor) note(ctx context.Context, head audit.Head) error {
	return l.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		_, err := audit.NoteHead(ctx, tx, l.tenant, head)
		return err
	})
}

func (l *localAuditor) close() { l.pool.Close() }
