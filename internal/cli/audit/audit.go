// Package audit has the commands that verify and export the log of events, over
// the API or in the database itself.
package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/postgres"
)

// Command returns the command audit.
func Command(a *command.App) *cobra.Command {
	return command.NewGroup("audit", auditLog(a), auditVerify(a), auditExport(a), auditHead(a), auditKeygen(a))
}

func auditLog(a *command.App) *cobra.Command {
	var f client.AuditFilter
	cmd := command.New(a, "log", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return command.View[wire.AuditEvent]{
			Empty: "No matching events.", Head: []string{"AT", "KIND", "BY", "ABOUT"}, Whole: true,
			Row: func(e wire.AuditEvent) []string {
				return []string{command.Local(&e.At), e.Kind, e.Actor.Brief(), about(e)}
			},
		}.ShowPage(a)(c.AuditLog(ctx, f))
	})
	flags := cmd.Flags()
	flags.StringVar(&f.Kind, "kind", "", "filter by `kind`, such as configured")
	flags.StringVar(&f.Actor, "actor", "", "filter by a `part` of the actor")
	flags.StringVar(&f.Subject, "subject", "", "filter by a `part` of the subject")
	command.Flag(cmd, "action", "id", "filter by action", func(text string) (err error) {
		f.Action, err = uuid.Parse(text)
		return err
	})
	command.RangeFlags(cmd, &f.Since, &f.Until, "events")
	command.PageFlags(cmd, &f.Limit, &f.Cursor)
	return cmd
}

// about returns the first item of an event in words, and the number of others.
func about(e wire.AuditEvent) string {
	var items []struct {
		Action  string `json:"action_id"`
		Status  string `json:"status"`
		Subject string `json:"subject"`
		Note    string `json:"note"`
	}
	if json.Unmarshal(e.Items, &items) != nil || len(items) == 0 {
		return ""
	}
	text := items[0].Subject
	if text == "" {
		text = strings.TrimSpace(items[0].Action + " " + items[0].Status)
	}
	if items[0].Note != "" {
		text += ": " + items[0].Note
	}
	if e.ItemsTotal > 1 {
		text += fmt.Sprintf(" (and %d more)", e.ItemsTotal-1)
	}
	return text
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
	cmd.Flags().StringVar(&tenant, "tenant", "", "`name` of the tenant; reads the database of DATABASE_URL directly")
	command.RangeFlags(cmd, &span.From, &span.Until, "events")
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

// auditor reads a tenant's log in parts: each answer has the position to
// continue from.
type auditor interface {
	verify(ctx context.Context, opt audit.Options) (audit.Report, error)
	// verifyRows compares one part of the rows. It returns nil where only the
	// events can be read.
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
	id, err := command.Tenant(ctx, pool, tenant)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &localAuditor{pool: pool, tenant: id}, nil
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
	verifyAtOnce = 100_000
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
