package triage

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

func note(a *command.App) *cobra.Command {
	var about string
	var yes bool
	var wait time.Duration
	cmd := command.NewLocal("note FILE", command.Arguments(1, 1, "a recording"), func(ctx context.Context, args []string) error {
		text, err := transcribe(ctx, a, args[0])
		if err != nil {
			return err
		}
		if about == "" {
			return a.Result(map[string]string{"text": text}, "%s\n", text)
		}
		a.Note("%s", text)
		if !yes {
			if err := a.Confirm("Ask for a draft with this note?"); err != nil {
				return err
			}
		}
		c, err := a.Client()
		if err != nil {
			return err
		}
		id, err := find(ctx, c, about)
		if err != nil {
			return err
		}
		return askText(ctx, a, c, id, wire.TriageTextInput{Kind: "draft", Note: text}, wait)
	})
	cmd.Flags().StringVar(&about, "draft", "", "ask for a draft of a reply to this `message`, with the note as instructions")
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "skip the confirmation prompt")
	cmd.Flags().DurationVar(&wait, "wait", time.Minute, "maximum `duration` to wait for the draft; 0 does not wait")
	return cmd
}

// transcribe returns the text of a recording.
func transcribe(ctx context.Context, a *command.App, file string) (string, error) {
	path := a.Getenv(modelsVariable)
	if path == "" {
		return "", command.Misuse("no model for dictation: %s is not set", modelsVariable)
	}
	c, err := model.ReadConfig(path)
	if err != nil {
		return "", command.Misuse("%v", err)
	}
	t, err := model.OpenTranscriber(c)
	switch {
	case err != nil:
		return "", command.Misuse("the file of models %s: %v", path, err)
	case t == nil:
		return "", command.Misuse("no model for dictation: the file of models %s has no dictation", path)
	}
	defer t.Close()
	audio, err := a.ReadFile(file, model.MaxAudio+1)
	if err != nil {
		return "", err
	}
	format := strings.ToLower(strings.TrimPrefix(filepath.Ext(file), "."))
	if file == "-" {
		format = "wav"
	}
	return t.Transcribe(ctx, audio, format)
}
