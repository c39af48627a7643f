package triage

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/evaluate"
)

func eval(a *command.App) *cobra.Command {
	var f folders
	var m asked
	var fixture string
	var folds, seeds int
	var repeat, locked bool
	cmd := command.NewLocal("eval", command.NoArguments(), func(ctx context.Context, _ []string) error {
		of, err := f.open()
		if err != nil {
			return err
		}
		if folds < 2 || seeds < 1 {
			return command.Misuse("--folds must be at least 2, and --seeds at least 1")
		}
		own, err := folder(fixture)
		if err != nil {
			return err
		}
		o := evaluate.Options{
			Fixture: own, Training: of.Training, Languages: of.Languages, Lures: of.Lures, Locked: locked, Corpus: of.Labelled, SpamAssassin: of.SpamAssassin,
			Config: classify.Defaults(), Cold: classify.Untuned(), Folds: folds, Seeds: seeds,
			Limit: m.limit, Repeat: repeat, Progress: func(text string) { a.Progress(text, "%s", text) },
		}
		if len(m.urls) == 0 && m.file == "" && (m.limit > 0 || repeat) {
			return command.Misuse("--limit and --repeat require --model or --models")
		}
		var closeAll func()
		o.Backends, closeAll, err = m.open(ctx)
		defer closeAll()
		if err != nil {
			return err
		}
		return runEval(ctx, a, o)
	})
	f.flags(cmd)
	m.flags(cmd)
	cmd.Flags().BoolVar(&repeat, "repeat", false, "ask the models twice, and in reversed packs")
	cmd.Flags().BoolVar(&locked, "locked", false, "evaluate the locked thirds of the sets, which is done once a release and recorded")
	cmd.Flags().StringVar(&fixture, "fixture", ownFixture, "`folder` of the project's evaluation fixture")
	cmd.Flags().IntVar(&folds, "folds", 5, "`number` of folds for cross-validation")
	cmd.Flags().IntVar(&seeds, "seeds", 3, "`number` of repetitions of cross-validation")
	return cmd
}

// runEval evaluates, and shows the report also where it was interrupted after models
// had answered.
func runEval(ctx context.Context, a *command.App, o evaluate.Options) error {
	report, err := evaluate.Run(ctx, o)
	if err != nil && (!errors.Is(err, context.Canceled) || len(report.Sections) == 0) {
		return fmt.Errorf("evaluate: %w", err)
	}
	write := report.Text
	if a.JSON {
		write = report.JSON
	}
	if err := write(a.Out); err != nil {
		return err
	}
	switch {
	case err != nil:
		return errors.New("interrupted: the figures cover the questions asked so far")
	case report.Partial:
		return errors.New("a model server failed: the figures cover only the answered questions")
	}
	return nil
}
