package audit

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

func auditVerify(a *command.App) *cobra.Command {
	var tenant, head, from string
	v := &verification{a: a}
	cmd := command.NewLocal("verify", command.NoArguments(), func(ctx context.Context, _ []string) (err error) {
		if from != "" {
			if v.at, err = parsePlace(from); err != nil {
				return err
			}
			if v.at.rows && (tenant == "" || head != "") {
				return command.Misuse("--from %s compares rows: it requires --tenant and cannot be combined with --head", from)
			}
		}
		if head != "" {
			if v.known, err = knownHead(head); err != nil {
				return err
			}
		}
		if v.log, err = open(ctx, a, tenant); err != nil {
			return err
		}
		defer v.log.close()
		return v.run(ctx)
	})
	command.PastFlag(cmd, &v.since, "since", "with --tenant: compare only actions proposed since this `time`")
	cmd.Flags().StringVar(&tenant, "tenant", "", "`name` of the tenant; reads the database of DATABASE_URL directly")
	cmd.Flags().StringVar(&head, "head", "", "noted `head` that the chain must still contain: a file written by \"audit head\", or a hash")
	cmd.Flags().StringVar(&from, "from", "", "`place` to continue from, as printed by an interrupted run: a checkpoint number, or rows:2/5")
	return cmd
}

// place is where a verification continues: after a checkpoint, or, if the whole
// chain was verified, with a part of the rows; with the first if it is zero.
type place struct {
	checkpoint int64
	rows       bool
	part       audit.Part
}

// rowsPlace is the text of the place before the rows, or begins that of a part.
const rowsPlace = "rows"

func (p place) String() string {
	switch {
	case p.part != (audit.Part{}):
		return rowsPlace + ":" + p.part.String()
	case p.rows:
		return rowsPlace
	}
	return fmt.Sprint(p.checkpoint)
}

func parsePlace(text string) (p place, err error) {
	if part, ok := strings.CutPrefix(text, rowsPlace+":"); ok {
		p.rows = true
		p.part, err = audit.ParsePart(part)
	} else if p.rows = text == rowsPlace; !p.rows {
		p.checkpoint, err = strconv.ParseInt(text, 10, 64)
	}
	if err != nil || p.checkpoint < 0 {
		return place{}, command.Misuse("invalid --from %s: want the number of a checkpoint, rows, or a part of the rows such as rows:2/5", text)
	}
	return p, nil
}

// verified holds the findings of verify: in the chain of events and, with the
// database open, in the rows that belong to them.
type verified struct {
	audit.Report
	Rows *audit.RowsReport `json:"rows,omitempty"`
	// From is where this run continued another, and ContinueFrom where the next
	// continues this one, which did not reach the end.
	From         string `json:"from,omitempty"`
	ContinueFrom string `json:"continue_from,omitempty"`
}

func (r *verified) findings() int64 {
	n := int64(len(r.Findings)) + r.Omitted
	if r.Rows != nil {
		n += int64(len(r.Rows.Findings)) + r.Rows.Omitted
	}
	return n
}

// verification is one run of verify.
type verification struct {
	a     *command.App
	log   auditor
	known Note
	since time.Time
	// at is the place that was reached, and begun whether anything was verified.
	at     place
	begun  bool
	result verified
	// told is how much was done when progress was last told.
	told int64
}

// run verifies the chain and then the rows. A run that is interrupted or fails
// shows its findings and the place to continue from.
func (v *verification) run(ctx context.Context) error {
	v.result.Findings = []audit.Finding{}
	if v.at != (place{}) {
		v.result.From = v.at.String()
	}
	chain := !v.at.rows
	var err error
	if chain {
		err = v.chain(ctx)
	}
	if err == nil {
		err = v.rows(ctx)
	}
	if err != nil {
		if !v.begun {
			return err
		}
		v.result.ContinueFrom = v.at.String()
	}
	if failed := v.show(chain); failed != nil {
		return failed
	}
	if n := v.result.findings(); err == nil && n > 0 {
		err = fmt.Errorf("the records do not match their checkpoints and events (findings: %d)", n)
	}
	return err
}

// chain compares all events with the chain, and a head that was noted, unless it is
// zero.
func (v *verification) chain(ctx context.Context) error {
	known := v.known
	if known.Checkpoint != 0 {
		is, err := currentHead(ctx, v.log)
		if err == nil && is.Tenant != known.Tenant {
			err = fmt.Errorf("the noted head belongs to tenant %s, and this chain to tenant %s", known.Tenant, is.Tenant)
		}
		if err != nil {
			return err
		}
	}
	report := &v.result.Report
	for more := true; more; {
		part, err := v.log.verify(ctx, audit.Options{After: v.at.checkpoint, KnownHead: known.Hash})
		if err != nil {
			return err
		}
		report.Join(part)
		v.begun, more, v.at.checkpoint = true, part.Next != 0, part.Next
		if more {
			v.a.Progress(map[string]any{"checkpoint_no": v.at.checkpoint, "events": v.result.Covered},
				"%d events verified, up to checkpoint %d", v.result.Covered, v.at.checkpoint)
		}
	}
	if has := report.KnownHead; has != nil && known.Checkpoint != 0 && has.Checkpoint != known.Checkpoint {
		report.Findings = append(report.Findings, audit.Finding{
			Kind: audit.ChainBroken, Checkpoint: has.Checkpoint,
			Message: fmt.Sprintf("it has the hash of checkpoint %d in the note: the note or the checkpoint's number was changed", known.Checkpoint),
		})
	}
	return nil
}

// rows compares the rows with the events, a part at a time, each in the state of
// the database as the part begins.
func (v *verification) rows(ctx context.Context) error {
	for {
		v.at.rows, v.told = true, 0
		part, err := v.log.verifyRows(ctx, audit.RowsOptions{Since: v.since, Part: v.at.part, Progress: v.tellRows})
		if part == nil || err != nil {
			return err
		}
		if v.result.Rows == nil {
			v.result.Rows = &audit.RowsReport{Findings: []audit.Finding{}}
		}
		v.begun = true
		v.result.Rows.Join(*part)
		if part.Next == (audit.Part{}) {
			return nil
		}
		v.at.part = part.Next
	}
}

// tellEvery is after how many events and actions progress is told.
const tellEvery = 100_000

func (v *verification) tellRows(r audit.RowsReport) {
	v.at.part = r.Part
	if done := r.Events + r.Actions; done >= v.told+tellEvery {
		v.told = done
		v.a.Progress(map[string]any{"part": r.Part.String(), "events_read": r.Events, "actions": r.Actions},
			"part %s of the rows: %d events read, %d actions compared", r.Part, r.Events, r.Actions)
	}
}

// show prints the findings. chain reports whether the chain was verified.
func (v *verification) show(chain bool) error {
	if v.a.JSON {
		return v.a.WriteJSON(v.result)
	}
	if chain {
		if err := showReport(v.a, v.result.Report); err != nil {
			return err
		}
	}
	if v.result.Rows != nil || v.result.ContinueFrom == "" {
		if err := showRows(v.a, v.result.Rows); err != nil {
			return err
		}
	}
	if v.result.ContinueFrom != "" {
		v.a.Note("Not all was verified. To continue, add --from %s", v.result.ContinueFrom)
	}
	return nil
}

func showRows(a *command.App, r *audit.RowsReport) error {
	if r == nil {
		a.Note("Only events were verified. To compare actions, decisions, votes and attempts with them, add --tenant NAME, with DATABASE_URL set.")
		return nil
	}
	if len(r.Findings) > 0 {
		rows := make([][]string, len(r.Findings))
		for i, f := range r.Findings {
			id := f.Action
			if f.Decision != uuid.Nil {
				id = f.Decision
			}
			rows[i] = []string{string(f.Kind), f.Table, id.String(), f.Columns, f.Message}
		}
		if err := a.Table([]string{"FINDING", "TABLE", "ID", "COLUMNS", "WHAT"}, rows); err != nil {
			return err
		}
		if r.Omitted > 0 {
			a.Note("and %d more", r.Omitted)
		}
		fmt.Fprintln(a.Out)
	}
	fmt.Fprintf(a.Out, "%d actions, %d votes and %d attempts compared with the events, %d decisions with their ids", r.Actions, r.Votes, r.Attempts, r.Decisions)
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
