// Package executions has the commands that list, show and export the log of
// executions.
package executions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/actions"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Command returns the command executions.
func Command(a *command.App) *cobra.Command {
	return command.NewGroup("executions", list(a), show(a), export(a))
}

// filterFlags adds the flags that narrow the log.
func filterFlags(cmd *cobra.Command, f *client.ExecutionFilter) {
	flags := cmd.Flags()
	command.ToolFlag(cmd, &f.Tool)
	flags.StringVar(&f.Source, "source", "", "filter by source `id`")
	command.EnumFlag(cmd, &f.Status, "status", "filter by `status`: success, error, denied, expired, skipped, unknown, pending, executing or dry_run",
		"success", "error", "denied", "expired", "skipped", "unknown", "pending", "executing", "dry_run")
	flags.StringVar(&f.Session, "session-id", "", "filter by `session`")
	command.AutomationFlag(cmd, &f.Automation, "filter by `automation`")
	command.IDFlag(cmd, &f.Employee, "employee-id", "filter by employee `id`")
	command.IDFlag(cmd, &f.Workflow, "workflow-id", "filter by workflow `id`")
	command.Flag(cmd, "user", "string", "filter by `name` or id of the proposing token", func(text string) error {
		if f.User, f.UserName = "", text; uuid.Validate(text) == nil {
			f.User, f.UserName = text, ""
		}
		return nil
	})
	flags.StringVar(&f.Code, "code", "", "filter by error `code` of the last attempt, such as timeout")
	command.EnumFlag(cmd, &f.Via, "via", "filter by `channel`: api, mcp, ui, webhook, sql, workflow or system",
		"api", "mcp", "ui", "webhook", "sql", "workflow", "system")
	flags.StringVar(&f.IP, "ip", "", "filter by client IP `address`")
	command.RangeFlags(cmd, &f.Since, &f.Until, "actions proposed")
}

func list(a *command.App) *cobra.Command {
	var f client.ExecutionFilter
	cmd := command.New(a, "list", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		page, err := fullPage(ctx, a, c, f)
		if err != nil {
			return err
		}
		return command.View[wire.Execution]{
			Empty: "No matching executions.", Head: []string{"ID", "TOOL", "STATUS", "PROPOSED", "TOOK", "BY", "FROM"},
			Row: func(e wire.Execution) []string {
				return []string{
					e.ID.String(), e.Tool, string(e.Status), command.Local(&e.ProposedAt), took(e.DurationMS), userName(e.User), cameVia(e.Context),
				}
			},
		}.ShowPage(a)(page, nil)
	})
	filterFlags(cmd, &f)
	command.PageFlags(cmd, &f.Limit, &f.Cursor)
	return cmd
}

// fullPage reads until a page is full, since the server's may be short.
func fullPage(ctx context.Context, a *command.App, c *client.Client, f client.ExecutionFilter) (wire.Page[wire.Execution], error) {
	wanted := f.Limit
	page := wire.Page[wire.Execution]{Items: []wire.Execution{}}
	for parts := 1; ; parts++ {
		f.Limit = wanted - len(page.Items)
		part, err := c.Executions(ctx, f)
		if err != nil {
			return page, err
		}
		page.Items, page.NextCursor = append(page.Items, part.Items...), part.NextCursor
		if part.NextCursor == nil || len(page.Items) >= wanted {
			return page, nil
		}
		f.Cursor = *part.NextCursor
		if parts%10 == 0 {
			a.Note("still looking; %d found so far", len(page.Items))
		}
	}
}

func took(ms *int64) string {
	if ms == nil {
		return ""
	}
	return (time.Duration(*ms) * time.Millisecond).String()
}

func userName(u *wire.TokenName) string {
	if u == nil {
		return ""
	}
	operator := uuid.Nil
	if u.OperatorID != nil {
		operator = *u.OperatorID
	}
	return envelope.NewActor(u.Name, u.ID, operator).Brief()
}

func cameVia(o *wire.Origin) string {
	if o == nil {
		return ""
	}
	return strings.TrimSpace(o.Via + " " + o.IP)
}

func show(a *command.App) *cobra.Command {
	return command.New(a, "show ID...", command.Arguments(1, command.Many, "one or more execution ids"), func(ctx context.Context, c *client.Client, args []string) error {
		ids, err := command.IDs(args)
		if err != nil {
			return err
		}
		for i, id := range ids {
			e, err := c.Execution(ctx, id)
			if err == nil && a.JSON {
				err = a.WriteJSON(e)
			} else if err == nil {
				if i > 0 {
					fmt.Fprintln(a.Out)
				}
				err = showExecution(a, e)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// showExecution shows an execution with all that is recorded of it.
func showExecution(a *command.App, e wire.ExecutionDetail) error {
	pairs := []string{
		"id", e.ID.String(),
		"tool", e.Tool,
		"status", strings.TrimSuffix(string(e.Status)+" (phase "+string(e.Phase)+")", " (phase )"),
		"external id", e.ExternalID,
		"inputs", command.Compact(e.Inputs) + map[bool]string{true: "  (redacted)"}[e.Redacted],
	}
	if e.EditedBy != "" {
		pairs = append(pairs, "as proposed", command.Compact(e.Proposed)+"  (edited by "+e.EditedBy.Brief()+")")
	}
	pairs = append(pairs, "outputs", command.Compact(e.Outputs))
	if e.Error != nil {
		pairs = append(pairs, "error", e.Error.Code+": "+e.Error.Message)
	}
	pairs = append(pairs, "proposed", command.Local(&e.ProposedAt)+" by "+cmp.Or(userName(e.User), "the system"), "from", cameVia(e.Context))
	if e.Context != nil {
		pairs = append(pairs, "user agent", e.Context.UserAgent, "request", e.Context.RequestID)
	}
	pairs = append(pairs, "session", e.Session, "automation", e.Automation)
	if e.WorkflowID != nil {
		pairs = append(pairs, "workflow", e.WorkflowID.String())
	}
	pairs = append(pairs, "policy", string(e.Policy.Mode)+": "+policy.SourceText(e.Policy.Source))
	if d := e.Decision; d != nil && d.At != nil {
		pairs = append(pairs, "decision", string(d.Approval)+" by "+d.By.Brief()+" at "+command.Local(d.At)+command.Noted(d.Note))
	}
	pairs = append(pairs,
		"preview", command.Compact(e.Preview),
		"risk", string(e.Risk)+", effect "+string(e.Effect),
		"started", command.Local(e.StartedAt),
		"ended", command.Local(e.FinishedAt),
		"took", took(e.DurationMS),
	)
	if err := a.Fields(pairs...); err != nil {
		return err
	}
	if err := actions.ShowAttempts(a, e.AttemptLog); err != nil {
		return err
	}
	if err := showSnapshots(a, e.Snapshots); err != nil {
		return err
	}
	return showRelated(a, e.Related)
}

func showSnapshots(a *command.App, all []wire.Snapshot) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintln(a.Out)
	return command.Table(a, all, []string{"TRY", "SNAPSHOT", "AT", "READ", "RESULT"}, func(s wire.Snapshot) []string {
		return []string{fmt.Sprint(s.Attempt), s.Stage, command.Local(&s.At), s.Tool, cmp.Or(s.Code, command.Compact(s.Result))}
	})
}

func showRelated(a *command.App, all []wire.Relation) error {
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, func(a, b wire.Relation) int { return strings.Compare(a.Relation, b.Relation) })
	fmt.Fprintln(a.Out)
	return command.Table(a, all, []string{"RELATED", "ID", "TOOL", "PROPOSED", "EXTERNAL ID"}, func(r wire.Relation) []string {
		return []string{r.Relation, r.ID.String(), r.Tool, command.Local(&r.ProposedAt), r.ExternalID}
	})
}

func export(a *command.App) *cobra.Command {
	var f client.ExecutionFilter
	cmd := command.New(a, "export", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		f.Limit = 200
		return command.Export(a, func(cursor string) (wire.Page[wire.Execution], error) {
			f.Cursor = cursor
			return c.Executions(ctx, f)
		})
	})
	filterFlags(cmd, &f)
	return cmd
}
