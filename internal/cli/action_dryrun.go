package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/action/preflight"
)

// showDryRun says what would become of a call.
func (a *app) showDryRun(inv client.Invocation) error {
	dry := inv.DryRun
	switch {
	case dry == nil:
		return errors.New("the server did not answer as to a dry run; is it of this version?")
	case a.json:
		return a.document(inv)
	}
	goes := "only when an operator says so, or never"
	if dry.GoesOutAt != nil {
		goes = dry.GoesOutAt.Local().Format(time.DateTime) + " at the soonest"
	}
	rows := [][]string{
		{"tool", dry.Call.Source + ":" + dry.Call.Tool},
		{"would", string(dry.Would)},
		{"policy", string(inv.Policy.Mode) + " (" + because(inv.Policy) + ")"},
		{"goes out", goes},
		{"arguments", compact(dry.Call.Args)},
	}
	for _, g := range dry.Gates {
		if g.Verdict != preflight.Pass {
			rows = append(rows, []string{"gate " + g.Gate, string(g.Verdict) + ": " + g.Message})
		}
	}
	if err := table(a.sys.Out, []string{"WHAT", "IT SAYS"}, rows); err != nil {
		return err
	}
	a.note("Nothing was done. To do just this within the hour, add:")
	if _, err := fmt.Fprintf(a.sys.Out, "--plan %s\n", dry.Plan); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
