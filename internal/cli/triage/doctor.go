package triage

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

// modelsVariable names the file of models in the environment.
const modelsVariable = "COUNTERSIGN_TRIAGE_MODELS"

// examineFor bounds the examination of all models: on a slow machine a prompt
// that fills a long context takes minutes.
const examineFor = 30 * time.Minute

func doctor(a *command.App) *cobra.Command {
	return command.NewLocal("doctor [FILE]", command.Arguments(0, 1, "the file of models"), func(ctx context.Context, args []string) error {
		path := cmp.Or(command.Argument(args, 0), a.Getenv(modelsVariable))
		if path == "" {
			return command.Misuse("%s is not set; name the file of models", modelsVariable)
		}
		c, err := model.ReadConfig(path)
		if err != nil {
			return command.Misuse("%v", err)
		}
		set, err := model.Open(c, model.Observer{})
		if err != nil {
			return command.Misuse("the file of models %s: %v", path, err)
		}
		defer set.Close()
		ctx, cancel := context.WithTimeout(ctx, examineFor)
		defer cancel()
		return showReports(a, set.Reports(ctx))
	})
}

// showReports shows all reports. The error has the number of models that cannot
// be used.
func showReports(a *command.App, all []model.Report) error {
	unfit := 0
	for _, r := range all {
		if !r.Usable {
			unfit++
		}
	}
	if a.JSON {
		err := a.WriteJSON(struct {
			Models []model.Report `json:"models"`
			Unfit  int            `json:"unfit"`
		}{all, unfit})
		if err != nil {
			return err
		}
	} else if err := writeReports(a, all); err != nil {
		return err
	}
	if unfit > 0 {
		return fmt.Errorf("%d of %d models cannot be used", unfit, len(all))
	}
	return nil
}

func writeReports(a *command.App, all []model.Report) error {
	if len(all) == 0 {
		a.Note("No tier has a model in the file: triage uses its rules and embedded models.")
		return nil
	}
	for _, r := range all {
		mark := "ok"
		if !r.Usable {
			mark = "UNFIT"
		}
		if err := a.Print("%-6s %s on %s (%s), for %s\n", mark, command.Safe(r.Model), r.Server, command.Safe(r.URL), strings.Join(r.Tiers, ", ")); err != nil {
			return err
		}
		for _, line := range describe(r) {
			if err := a.Print("       %s\n", command.Safe(line)); err != nil {
				return err
			}
		}
	}
	return nil
}

// describe returns the lines of a report.
func describe(r model.Report) []string {
	if !r.Usable {
		lines := []string{fmt.Sprintf("%s: %s", strings.ReplaceAll(string(r.Kind), "_", " "), r.Why)}
		return append(lines, advice(r)...)
	}
	cached := "it does not report cached tokens"
	if r.Cached >= 0 {
		cached = fmt.Sprintf("%d tokens of a repeated prompt come from its cache", r.Cached)
	}
	lines := []string{
		fmt.Sprintf("it runs on your own machine, enforces schemas, and has the API of %s", r.Dialect),
		fmt.Sprintf("%d concurrent questions; prompts of %d tokens are read in full, with a context of %d; longer ones: %s", r.Slots, r.Accepted, r.Context, r.Overflow),
		fmt.Sprintf("log-probabilities: %s; thinking: %s; %s", yesNo(r.Logprobs), yesNo(r.Thinks), cached),
		fmt.Sprintf("a pack of %d takes %s (p95 %s); 100 messages take about %s", r.Pack, took(r.P50MS), took(r.P95MS), took(r.HundredMS)),
	}
	return append(lines, advice(r)...)
}

func advice(r model.Report) []string {
	var lines []string
	for _, text := range r.Advice {
		lines = append(lines, "→ "+text)
	}
	return lines
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func took(ms float64) string {
	return time.Duration(ms * float64(time.Millisecond)).Round(time.Millisecond).String()
}
