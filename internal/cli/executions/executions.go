// Package executions has the commands that list, show and export the log of
// executions.
package executions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/action/snapshot"
	"github.com/countersign-dev/countersign/internal/cli/actions"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/insight/execution"
)

const executionsHelp = `Look into the forensic log: every execution with what went in and came out, who
asked for it and from where, what policy said, how things stood before and
after, and what it belongs with. Dry runs are in it too, for 30 days.

Inputs are shown without what looks like a credential, save to the token that
proposed them. An agent's token sees the executions of its own session.`

// Command returns the command executions.
func Command(a *command.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "executions",
		Short: "Look into what was executed, and what was asked about",
		Long:  executionsHelp,
		Example: `  countersign executions list --status error --since 24h
  countersign executions show 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b
  countersign executions export --since 2026-01-01 > january.jsonl`,
		Args: cobra.ArbitraryArgs,
		RunE: command.Group,

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(executionList(a), executionShow(a), executionExport(a))
	return cmd
}

// executionFilter is the flags that narrow the forensic log.
type executionFilter struct {
	client.ExecutionFilter
	status       string
	since, until string
}

func executionStatuses() []string {
	return []string{"success", "error", "denied", "expired", "skipped", "unknown", "pending", "executing", "dry_run"}
}

func (f *executionFilter) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Tool, "tool", "", "only those of the tool of this `name`, with its source before it if you like: source:name")
	flags.StringVar(&f.Source, "source", "", "only those of the source of this `id`")
	flags.StringVar(&f.status, "status", "", "only those of this `status`: success, error, denied, expired, skipped, unknown, pending, executing or dry_run")
	flags.StringVar(&f.Session, "session", "", "only those of this `session`")
	flags.StringVar(&f.Employee, "employee", "", "only those on behalf of the employee of this `id`")
	flags.StringVar(&f.User, "user", "", "only those that the token of this `id` proposed")
	flags.StringVar(&f.Automation, "automation", "", "only those of this `automation`")
	flags.StringVar(&f.Workflow, "workflow", "", "only the steps of the workflow of this `id`")
	flags.StringVar(&f.Code, "code", "", "only those whose last attempt came to this `word`, such as timeout")
	flags.StringVar(&f.Via, "via", "", "only those that came in this `way`: api, mcp, ui, webhook, workflow or system")
	flags.StringVar(&f.IP, "ip", "", "only those that came from this `address`")
	flags.StringVar(&f.since, "since", "", "only those proposed since this `time`: 24h ago, 2026-01-02 or 2026-01-02T03:04:05Z")
	flags.StringVar(&f.until, "until", "", "only those proposed before this `time`")
	command.Fixed(cmd, "status", executionStatuses()...)
	command.Fixed(cmd, "via", "api", "mcp", "ui", "webhook", "workflow", "system")
}

// read checks the flags.
func (f *executionFilter) read() (client.ExecutionFilter, error) {
	out := f.ExecutionFilter
	if err := command.OneOf("status", f.status, executionStatuses()...); err != nil {
		return out, err
	}
	if err := command.OneOf("via", f.Via, "api", "mcp", "ui", "webhook", "workflow", "system"); err != nil {
		return out, err
	}
	out.Status = execution.Status(f.status)
	if source, tool, ok := strings.Cut(f.Tool, ":"); ok {
		if f.Source != "" && f.Source != source {
			return out, command.Misuse("--tool names another source than --source")
		}
		out.Source, out.Tool = source, tool
	}
	for flag, id := range map[string]string{"employee": f.Employee, "user": f.User, "workflow": f.Workflow} {
		if _, err := uuid.Parse(id); id != "" && err != nil {
			return out, command.Misuse("--%s must be an id of 36 characters", flag)
		}
	}
	now := time.Now()
	var err error
	if out.Since, err = command.TimeFlag("since", f.since, now); err != nil {
		return out, err
	}
	if out.Until, err = command.TimeFlag("until", f.until, now); err != nil {
		return out, err
	}
	if !out.Until.IsZero() && !out.Since.Before(out.Until) {
		return out, command.Misuse("--until must be later than --since")
	}
	return out, nil
}

const executionListHelp = `List executions, newest first. A filter that matches little makes it go through
much of the log, a part at a time; it says how far it is.

With --json it is one document, {"items": [...], "next_cursor": ...}; the cursor
gets the next page, and is null at the end.`

func executionList(a *command.App) *cobra.Command {
	var f executionFilter
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List executions",
		Long:  executionListHelp,
		Example: `  countersign executions list
  countersign executions list --tool mail:send_email --status denied
  countersign executions list --session s-4711 --via mcp --since 24h
  countersign executions list --status dry_run --json | jq -r '.items[].outlook.would'`,
		Args: command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			filter, err := f.read()
			if err != nil {
				return err
			}
			if filter.Limit < 1 || filter.Limit > 200 {
				return command.Misuse("--limit must be from 1 to 200")
			}
			return runExecutionList(ctx, a, c, filter)
		}),
	}
	f.flags(cmd)
	cmd.Flags().IntVar(&f.Limit, "limit", 50, "how many, at most 200")
	cmd.Flags().StringVar(&f.Cursor, "cursor", "", "go on where the page before ended")
	return cmd
}

func runExecutionList(ctx context.Context, a *command.App, c *client.Client, f client.ExecutionFilter) error {
	wanted := f.Limit
	page := client.Page[execution.Execution]{Items: []execution.Execution{}}
	for parts := 0; ; parts++ {
		f.Limit = wanted - len(page.Items)
		part, err := c.Executions(ctx, f)
		if err != nil {
			return err
		}
		page.Items, page.NextCursor = append(page.Items, part.Items...), part.NextCursor
		if part.NextCursor == nil || len(page.Items) >= wanted {
			break
		}
		f.Cursor = *part.NextCursor
		if parts%10 == 9 {
			a.Note("still looking; %d found so far", len(page.Items))
		}
	}
	if a.JSON {
		return a.WriteJSON(page)
	}
	if len(page.Items) == 0 {
		a.Note("There are none.")
		return nil
	}
	rows := make([][]string, len(page.Items))
	for i, e := range page.Items {
		rows[i] = []string{e.ID.String(), e.Source + ":" + e.Tool, string(e.Status), command.Local(&e.ProposedAt), took(e.DurationMS), userName(e.User), cameVia(e.Context)}
	}
	if err := command.Table(a.Out, []string{"ID", "TOOL", "STATUS", "PROPOSED", "TOOK", "BY", "FROM"}, rows); err != nil {
		return err
	}
	if page.NextCursor != nil {
		a.Note("There are more: add --cursor %s", *page.NextCursor)
	}
	return nil
}

func took(ms *int64) string {
	if ms == nil {
		return ""
	}
	return (time.Duration(*ms) * time.Millisecond).String()
}

func userName(u *execution.User) string {
	if u == nil {
		return ""
	}
	return cmp.Or(u.Name, u.Token.String())
}

func cameVia(o *execution.Origin) string {
	if o == nil {
		return ""
	}
	return strings.TrimSpace(string(o.Via) + " " + o.IP)
}

func executionShow(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:   "show ID...",
		Short: "Show all that is known of executions",
		Long: `Show all that is known of executions: the ids are those of actions or of dry
runs. Besides what "countersign get" tells of an action, it shows where the
request came from, the snapshots before and after, and what it belongs with.`,
		Example: `  countersign executions show 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b
  countersign executions show 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b --json | jq .snapshots`,
		Args: command.Arguments(1, command.Many, "the ids of executions"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			return runExecutionShow(ctx, a, c, args)
		}),
	}
}

func runExecutionShow(ctx context.Context, a *command.App, c *client.Client, args []string) error {
	wanted, err := command.Ids(args)
	if err != nil {
		return err
	}
	for i, id := range wanted {
		e, err := c.Execution(ctx, id)
		if err != nil {
			return err
		}
		if a.JSON {
			if err := a.WriteJSON(e); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		if err := showExecution(a, e); err != nil {
			return err
		}
	}
	return nil
}

// showExecution shows one execution with all that is known of it.
func showExecution(a *command.App, e client.Execution) error {
	t := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(t, "%s\t%s\n", name, command.Safe(value))
		}
	}
	row("id", e.ID.String())
	row("tool", e.Source+":"+e.Tool)
	row("status", strings.TrimSuffix(string(e.Status)+" (phase "+string(e.Phase)+")", " (phase )"))
	row("external id", e.ExternalID)
	row("inputs", command.Compact(e.Inputs)+map[bool]string{true: "  (redacted)"}[e.Redacted])
	if e.EditedBy != "" {
		row("as proposed", command.Compact(e.Proposed)+"  (edited by "+e.EditedBy+")")
	}
	row("outputs", command.Compact(e.Outputs))
	if e.Error != nil {
		row("error", e.Error.Code+": "+e.Error.Message)
	}
	row("proposed", command.Local(&e.ProposedAt)+" by "+cmp.Or(userName(e.User), "the system"))
	row("from", cameVia(e.Context))
	if e.Context != nil {
		row("user agent", e.Context.UserAgent)
		row("request", e.Context.RequestID)
	}
	row("session", e.Session)
	row("automation", e.Automation)
	if e.Workflow != nil {
		row("workflow", e.Workflow.String())
	}
	row("policy", string(e.Policy.Mode)+": "+e.Policy.Source)
	if d := e.Decision; d != nil && d.At != nil {
		row("decision", string(d.Approval)+" by "+d.By+" at "+command.Local(d.At)+command.Noted(d.Note))
	}
	row("outlook", command.Compact(e.Outlook))
	row("risk", string(e.Risk)+", effect "+string(e.Effect))
	row("began", command.Local(e.StartedAt))
	row("ended", command.Local(e.FinishedAt))
	row("took", took(e.DurationMS))
	if err := t.Flush(); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	if err := actions.ShowAttempts(a, e.Ledger); err != nil {
		return err
	}
	if err := showSnapshots(a, e.Snapshots); err != nil {
		return err
	}
	return showRelated(a, e.Related)
}

func showSnapshots(a *command.App, all []snapshot.Snapshot) error {
	if len(all) == 0 {
		return nil
	}
	rows := make([][]string, len(all))
	for i, s := range all {
		rows[i] = []string{fmt.Sprint(s.Attempt), string(s.Stage), command.Local(&s.At), s.Tool, cmp.Or(s.Code, command.Compact(s.Result))}
	}
	fmt.Fprintln(a.Out)
	return command.Table(a.Out, []string{"TRY", "SNAPSHOT", "AT", "READ", "RESULT"}, rows)
}

func showRelated(a *command.App, all []execution.Related) error {
	if len(all) == 0 {
		return nil
	}
	rows := make([][]string, len(all))
	for i, r := range all {
		rows[i] = []string{string(r.Relation), r.ID.String(), r.Source + ":" + r.Tool, command.Local(&r.ProposedAt), r.ExternalID}
	}
	slices.SortStableFunc(rows, func(a, b []string) int { return strings.Compare(a[0], b[0]) })
	fmt.Fprintln(a.Out)
	return command.Table(a.Out, []string{"BELONGS WITH", "ID", "TOOL", "PROPOSED", "EXTERNAL ID"}, rows)
}

const executionExportHelp = `Write executions as JSON, one a line, newest first, all that the filter matches.
It goes through the log a part at a time, and each part is bounded, however
little matches.`

func executionExport(a *command.App) *cobra.Command {
	var f executionFilter
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write executions as JSON, one a line",
		Long:  executionExportHelp,
		Example: `  countersign executions export --since 2026-01-01 --until 2026-02-01 > january.jsonl
  countersign executions export --status error --since 24h | jq -r .error.code | sort | uniq -c`,
		Args: command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			filter, err := f.read()
			if err != nil {
				return err
			}
			return runExecutionExport(ctx, a, c, filter)
		}),
	}
	f.flags(cmd)
	return cmd
}

func runExecutionExport(ctx context.Context, a *command.App, c *client.Client, f client.ExecutionFilter) error {
	f.Limit = 200
	for written := 0; ; {
		page, err := c.Executions(ctx, f)
		if err != nil {
			return err
		}
		for _, e := range page.Items {
			if err := a.WriteJSON(e); err != nil {
				return err
			}
		}
		written += len(page.Items)
		if page.NextCursor == nil {
			a.Note("%d exported", written)
			return nil
		}
		f.Cursor = *page.NextCursor
	}
}
