package cli_test

import (
	"strings"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

func looksIntoExecutions(d *fixture) {
	d.want(d.operator("tools", "snapshot", "notes:notes.create", "--read", "notes.list", "--args", `{}`), command.ExitOK, "has snapshots by notes:notes.list")
	d.want(d.operator("tools", "snapshot"), command.ExitOK, "notes:notes.create", "notes.list")
	created := d.propose("Seen before and after")
	d.want(d.operator("approve", created, "--wait"), command.ExitOK)

	d.want(d.operator("executions", "show", created), command.ExitOK,
		"notes:notes.create", "success", "Seen before and after", "api 127.0.0.1", "SNAPSHOT", "before", "after", "LEFT IT", "granted by")
	e := decode[wire.ExecutionDetail](d.t, d.want(d.operator("executions", "show", "--json", created), command.ExitOK).out)
	if e.Status != wire.ExecutionSuccess || len(e.Snapshots) != 2 || e.Snapshots[0].Stage != "before" || len(e.Snapshots[1].Result) == 0 {
		d.t.Errorf("execution = %+v", e)
	}
	listed := d.want(d.operator("executions", "list", "--tool", "notes:notes.create", "--status", "success", "--via", "api", "--since", "1h"), command.ExitOK).out
	if !strings.Contains(listed, created) {
		d.t.Errorf("the list does not hold %s:\n%s", created, listed)
	}
	exported := d.want(d.operator("executions", "export", "--status", "success", "--tool", "notes.create"), command.ExitOK, "exported").out
	for line := range strings.Lines(exported) {
		if got := decode[wire.Execution](d.t, line); got.Status != wire.ExecutionSuccess || got.Tool != "notes:notes.create" {
			d.t.Errorf("exported %s", line)
		}
	}
	d.want(d.operator("executions", "list", "--session-id", "nobody's"), command.ExitOK, "No matching executions.")
	d.want(d.agent("executions", "show", created), command.ExitOK, created)

	for text, args := range map[string][]string{
		"--status must be":         {"list", "--status", "done"},
		"--via must be":            {"list", "--via", "mail"},
		"--limit must be":          {"list", "--limit", "0"},
		"36 characters":            {"list", "--workflow-id", "ada"},
		"later than --since":       {"list", "--since", "1h", "--until", "2h"},
		"another source":           {"list", "--tool", "a:b", "--source", "c"},
		"not the id of an action":  {"show", "x"},
		"unknown command":          {"find"},
		"--since must be a time":   {"export", "--since", "yesterday"},
		"needs at least 1 argumen": {"show"},
	} {
		d.want(d.operator(append([]string{"executions"}, args...)...), command.ExitUsage, text)
	}
	d.want(d.operator("executions", "list", "--user", "demo agent"), command.ExitOK, "notes:notes.")
	d.want(d.operator("executions", "list", "--user", "nobody of this name"), command.ExitOK, "No matching executions.")
	d.want(d.operator("executions", "show", "019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b"), command.ExitFailed, "no execution")
	for text, args := range map[string][]string{
		"source:name":                  {"notes"},
		"name the tool as source:name": {"--read", "notes.list"},
		"--none cannot be combined":    {"notes:notes.create", "--none", "--required"},
		"--read, the reading tool":     {"notes:notes.create"},
		"--args must be a JSON object": {"notes:notes.create", "--read", "notes.list", "--args", "{"},
	} {
		d.want(d.operator(append([]string{"tools", "snapshot"}, args...)...), command.ExitUsage, text)
	}
	d.want(d.operator("tools", "snapshot", "notes:notes.create", "--read", "notes.delete"), command.ExitUsage, "only reads")
	d.want(d.operator("tools", "snapshot", "notes:notes.create", "--none"), command.ExitOK, "has no snapshots")
}
