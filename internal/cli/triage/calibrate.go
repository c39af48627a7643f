package triage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/evaluate"
)

// calibrationFolds is the number of folds of the training mail, so that
// embedded models have not seen the mail that they classify.
const calibrationFolds = 3

func calibrate(a *command.App) *cobra.Command {
	var m asked
	var training, out string
	cmd := command.NewLocal("calibrate", command.NoArguments(), func(ctx context.Context, _ []string) error {
		if out == "" {
			return command.Misuse("--out is required: the file for the calibrations")
		}
		if len(m.urls) == 0 && m.file == "" {
			return command.Misuse("name the models with --model or --models")
		}
		own, err := folder(training)
		if err != nil {
			return err
		}
		was, err := calibrationsIn(out)
		if err != nil {
			return err
		}
		backends, closeAll, err := m.open(ctx)
		defer closeAll()
		if err != nil {
			return err
		}
		o := evaluate.Options{
			Training: own, Cold: classify.Untuned(), Folds: calibrationFolds, Limit: m.limit,
			Progress: func(text string) { a.Progress(text, "%s", text) },
		}
		var all []evaluate.Fitted
		for _, b := range backends {
			fitted, err := evaluate.Calibrate(ctx, o, b)
			if err != nil {
				return fmt.Errorf("calibrate: %w", err)
			}
			all = append(all, fitted...)
		}
		return showFitted(a, out, was, all)
	})
	m.flags(cmd)
	cmd.Flags().StringVar(&training, "training", ownTraining, "`folder` of the project's training mail")
	cmd.Flags().StringVar(&out, "out", "", "output `file` for the calibrations; it keeps those of other models (required)")
	return cmd
}

// calibrationsIn returns the calibrations of a file, none if it is not there.
func calibrationsIn(path string) (cascade.Calibrations, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	was, err := cascade.ReadCalibrations(data)
	if err != nil {
		return nil, command.Misuse("invalid calibrations file %s, which is left unchanged: %v", path, err)
	}
	return was, nil
}

// showFitted shows the calibrations, and writes those that may be used.
func showFitted(a *command.App, out string, was cascade.Calibrations, all []evaluate.Fitted) error {
	usable := 0
	for _, f := range all {
		line := fmt.Sprintf("error %.3f (was %.3f) on %d answers; calibrated on %d", f.After, f.Before, f.Held, f.Made)
		if f.Why == "" {
			usable++
		} else {
			line = fmt.Sprintf("NOT CALIBRATED: %s; %d and %d answers, error %.3f", f.Why, f.Made, f.Held, f.After)
		}
		if !a.JSON {
			if err := a.Print("%s %s %s: %s\n", command.Safe(f.Model), f.Tier, f.Question, line); err != nil {
				return err
			}
		}
	}
	if usable > 0 {
		if err := replace(out, evaluate.Calibrations(all, was)); err != nil {
			return err
		}
	}
	if a.JSON {
		if err := a.WriteJSON(map[string]any{"questions": all, "written": usable}); err != nil {
			return err
		}
	}
	if usable == 0 {
		return errors.New("nothing was written: no question has a calibration that may be used")
	}
	a.Note("wrote %s: %d calibrations", out, usable)
	return nil
}

// replace writes a file of calibrations, whole or not at all.
func replace(path string, c cascade.Calibrations) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(path), ".calibrations-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	_, err = draft.Write(append(data, '\n'))
	if err := errors.Join(err, draft.Chmod(0o644), draft.Close()); err != nil {
		return err
	}
	return os.Rename(draft.Name(), path)
}
