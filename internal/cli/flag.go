package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/envelope"
)

// maxWait is the longest that the API lets anybody wait.
const maxWait = 5 * time.Minute

// waitFlag adds --wait, which may stand without a value.
func waitFlag(cmd *cobra.Command, d *time.Duration, about string) {
	flag := cmd.Flags().VarPF((*waiting)(d), "wait", "", about+"; at most 5m")
	flag.DefValue = ""
	flag.NoOptDefVal = "30s"
}

// waiting is a duration that the API accepts.
type waiting time.Duration

// String writes the duration; none is empty.
func (w *waiting) String() string {
	if *w == 0 {
		return ""
	}
	return time.Duration(*w).String()
}

// Type names the kind of value in the help.
func (*waiting) Type() string { return "duration" }

// Set reads a duration.
func (w *waiting) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Millisecond || d > maxWait {
		return fmt.Errorf("must be a duration from 1ms to 5m, such as 30s; mind the equals sign: --wait=30s")
	}
	*w = waiting(d)
	return nil
}

// fixed offers the values of a flag to the shell's completion.
func fixed(cmd *cobra.Command, flag string, values ...string) {
	// The only errors are a flag that is not there, or was offered values
	// before; a test asks for completions.
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
}

// oneOf refuses a flag's value that is none of a few words.
func oneOf(flag, value string, words ...string) error {
	if value == "" {
		return nil
	}
	for _, w := range words {
		if value == w {
			return nil
		}
	}
	return misuse("--%s must be %s", flag, strings.Join(words, ", "))
}

// ids reads arguments that name actions.
func ids(args []string) ([]envelope.ActionID, error) {
	all := make([]envelope.ActionID, len(args))
	for i, text := range args {
		if err := all[i].UnmarshalText([]byte(text)); err != nil {
			return nil, misuse("argument %d is not the id of an action, which has 36 characters; `countersign list` shows them", i+1)
		}
	}
	return all, nil
}

// readArgs replaces @FILE by what the file holds.
func (a *app) readArgs(f *proposalFlags) error {
	name, ok := strings.CutPrefix(f.args, "@")
	if !ok {
		return nil
	}
	in, err := a.open(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	text, err := io.ReadAll(io.LimitReader(in, envelope.MaxBytes+1))
	if err != nil {
		return fmt.Errorf("read the arguments: %w", err)
	}
	f.args = string(text)
	return nil
}
