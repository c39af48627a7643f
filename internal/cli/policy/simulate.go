package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/server/rest/policies"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// simulation is a simulation in flags.
type simulation struct {
	wire.Simulation
	file         string
	risks        map[string]string // by tool
	examples     int
	failOnChange bool
}

func simulate(a *command.App) *cobra.Command {
	var f simulation
	cmd := command.New(a, "simulate", command.NoArguments(), func(ctx context.Context, c *client.Client, _ []string) error {
		return run(ctx, a, c, f)
	})
	flags := cmd.Flags()
	flags.StringVarP(&f.file, "file", "f", "", "`file` to read, or - for standard input (required)")
	command.RangeFlags(cmd, &f.From, &f.To, "actions proposed")
	flags.Lookup("since").DefValue = "168h"
	flags.StringVar(&f.Tool, "tool", "", "filter by tools that this `key` covers")
	flags.StringToStringVar(&f.risks, "override", nil, "simulate another risk of a tool, as `tool=risk` such as mail:send=danger (repeatable)")
	flags.IntVar(&f.examples, "examples", 20, "number of changed decisions to show")
	flags.BoolVar(&f.failOnChange, "fail-on-change", false, "exit with code 3 if a decision changes")
	return cmd
}

func run(ctx context.Context, a *command.App, c *client.Client, f simulation) error {
	file, err := a.ReadDocument(f.file, policies.CheckDocument)
	if err != nil {
		return err
	}
	if f.examples < 0 {
		return command.Misuse("--examples must not be negative")
	}
	now := time.Now()
	f.Policy, f.From, f.To = file.JSON, cmp.Or(f.From, now.AddDate(0, 0, -7)), cmp.Or(f.To, now)
	for tool, risk := range f.risks {
		f.Overrides = append(f.Overrides, wire.SimulatedOverride{Tool: tool, Risk: risk})
	}
	sum := &summary{most: f.examples, counts: make(map[wire.SimulationCount]int), Counts: []wire.SimulationCount{}}
	stopped := simulatePages(ctx, a, c, f.Simulation, sum)
	if p, ok := errors.AsType[*client.Problem](stopped); ok && len(p.Errors) > 0 {
		for i := range p.Errors {
			p.Errors[i].Pointer = strings.TrimPrefix(p.Errors[i].Pointer, "/policy")
		}
		return file.Place(p.Errors)
	}
	sum.Partial = stopped != nil
	if stopped != nil && sum.Looked == 0 {
		return stopped
	}
	if err := showSummary(a, sum); err != nil {
		return err
	}
	if stopped == nil && f.failOnChange && sum.Changed > 0 {
		return command.ErrPolicyChange
	}
	return stopped
}

// progressPages is how many pages pass between two notes about the progress.
const progressPages = 5

// simulate reads all pages. sum holds the results, also of an interrupted run.
func simulatePages(ctx context.Context, a *command.App, c *client.Client, ask wire.Simulation, sum *summary) error {
	for pages := 1; ; pages++ {
		page, err := c.Simulate(ctx, ask)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		if a.JSON {
			if err := command.WriteJSONLines(a, page.Differences); err != nil {
				return err
			}
		}
		sum.add(page)
		if page.NextCursor == nil {
			return nil
		}
		if pages%progressPages == 0 {
			a.Note("%d action(s) examined, %d decided differently", sum.Looked, sum.Changed)
		}
		ask.Cursor = *page.NextCursor
	}
}

// summary is the result of a simulation.
type summary struct {
	// Partial reports whether the simulation was stopped before its end.
	Partial bool `json:"partial"`
	// Moved reports whether the current policy changed meanwhile.
	Moved    bool `json:"policy_moved"`
	Looked   int  `json:"looked"`
	Compared int  `json:"compared"`
	Gone     int  `json:"gone"`
	// Changed counts the actions that come out differently than by the current
	// policy.
	Changed int                    `json:"changed"`
	Counts  []wire.SimulationCount `json:"counts"`

	version  int64
	counts   map[wire.SimulationCount]int
	most     int
	examples []wire.SimulationDifference
}

// add adds a page.
func (s *summary) add(r wire.SimulationPage) {
	s.Moved = s.Moved || s.Looked > 0 && r.Version != s.version
	s.version = r.Version
	s.Looked, s.Compared, s.Gone = s.Looked+r.Examined, s.Compared+r.Compared, s.Gone+r.WithoutTool
	for _, c := range r.Counts {
		n := c.Count
		if c.Differs() {
			s.Changed += n
		}
		c.Count = 0
		s.counts[c] += n
	}
	for _, d := range r.Differences {
		if len(s.examples) < s.most && d.Now.Differs(d.Changed) {
			s.examples = append(s.examples, d)
		}
	}
}

// close sorts the counts.
func (s *summary) close() {
	for c, n := range s.counts {
		c.Count = n
		s.Counts = append(s.Counts, c)
	}
	slices.SortFunc(s.Counts, func(a, b wire.SimulationCount) int {
		return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Now, b.Now), cmp.Compare(a.Changed, b.Changed), cmp.Compare(a.Then, b.Then),
			cmp.Compare(a.NowApprovals, b.NowApprovals), cmp.Compare(a.ChangedApprovals, b.ChangedApprovals))
	})
}

func showSummary(a *command.App, s *summary) error {
	s.close()
	if a.JSON {
		return a.WriteJSON(struct {
			Summary *summary `json:"summary"`
		}{s})
	}
	if err := showCounts(a, s.Counts); err != nil {
		return err
	}
	err := section(a, s.examples, []string{"ACTION", "PROPOSED", "TOOL", "THEN", "NOW", "WOULD", "BECAUSE OF"}, func(d wire.SimulationDifference) []string {
		return []string{
			d.Action.String(), command.Local(&d.ProposedAt), d.Tool, string(d.Then.Mode), modeText(d.Now.Mode, d.Now.Approvals), modeText(d.Changed.Mode, d.Changed.Approvals),
			causesText(d.Causes),
		}
	})
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%d action(s) examined, %d compared: %d decided differently than by the current policy.", s.Looked, s.Compared, s.Changed)
	if s.Gone > 0 {
		text += fmt.Sprintf(" %d skipped: their tool no longer exists.", s.Gone)
	}
	if s.Partial {
		text = "Stopped early; so far: " + text
	}
	if s.Moved {
		text += " The policy changed meanwhile; run the command again."
	}
	return a.Print("%s\n", text)
}

// showCounts shows how many decisions change: first compared with now, then
// with then. Tools without a change are left out.
func showCounts(a *command.App, counts []wire.SimulationCount) error {
	for _, side := range []struct {
		name string
		mode func(wire.SimulationCount) (from, to string)
	}{
		{"NOW", func(c wire.SimulationCount) (from, to string) {
			return modeText(c.Now, c.NowApprovals), modeText(c.Changed, c.ChangedApprovals)
		}},
		{"THEN", func(c wire.SimulationCount) (from, to string) { return string(c.Then), string(c.Changed) }},
	} {
		type change struct{ tool, from, to string }
		sums := make(map[change]int)
		var order []change
		for _, c := range counts {
			from, to := side.mode(c)
			at := change{c.Tool, from, to}
			if at.from == at.to {
				continue
			}
			if sums[at] == 0 {
				order = append(order, at)
			}
			sums[at] += c.Count
		}
		err := section(a, order, []string{"TOOL", side.name, "WOULD", "ACTIONS"}, func(at change) []string {
			return []string{at.tool, at.from, at.to, strconv.Itoa(sums[at])}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// modeText returns a mode, with the required approvals if more than one person
// must agree.
func modeText(mode envelope.Mode, approvals int) string {
	if approvals > 1 {
		return fmt.Sprintf("%s by %d", mode, approvals)
	}
	return string(mode)
}

// causesText names the layers that make the difference, each with its rule.
func causesText(causes []wire.SimulationCause) string {
	texts := make([]string, len(causes))
	for i, c := range causes {
		texts[i] = policy.LayerText(c.Layer)
		if rule := cmp.Or(c.Rule, c.Tool); rule != "" {
			texts[i] += " " + rule
		}
		if c.Changed == "" {
			texts[i] += " (gone)"
		}
	}
	return strings.Join(texts, ", ")
}

// section writes a table with an empty line below it, unless it has no rows.
func section[T any](a *command.App, all []T, head []string, row func(T) []string) error {
	if len(all) == 0 {
		return nil
	}
	if err := command.Table(a, all, head, row); err != nil {
		return err
	}
	return a.Print("\n")
}
