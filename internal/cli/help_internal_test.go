package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/cli/command"
)

var update = flag.Bool("update", false, "rewrite golden files")

// everyCommand returns the words of every command, without the program's.
func everyCommand(cmd *cobra.Command, words []string) [][]string {
	all := [][]string{words}
	for _, c := range cmd.Commands() {
		all = append(all, everyCommand(c, append(words[:len(words):len(words)], c.Name()))...)
	}
	return all
}

func TestHelp(t *testing.T) {
	t.Parallel()

	for _, words := range everyCommand(root(&command.App{}), nil) {
		name := strings.Join(append([]string{"countersign"}, words...), "-")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, errs bytes.Buffer

			code := Run(t.Context(), append(words[:len(words):len(words)], "--help"), command.System{
				Out: &out, Err: &errs, Getenv: func(string) string { return "" },
			})

			if code != command.ExitOK || errs.Len() > 0 {
				t.Errorf("exit code %d, %s", code, errs.String())
			}
			path := filepath.Join("testdata", "help", name+".txt")
			if *update {
				if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil { // a golden file
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("run go test ./internal/cli -update (-want +got):\n%s", diff)
			}
			if !strings.Contains(out.String(), "Examples:\n") {
				t.Error("it shows no example")
			}
			for _, line := range strings.Split(strings.SplitN(out.String(), "Examples:", 2)[0], "\n") {
				if len([]rune(line)) > 80 {
					t.Errorf("line is wider than 80: %s", line)
				}
			}
		})
	}
}

// TestEveryCommandHasAHelp compares the sections of help.txt with the commands.
func TestEveryCommandHasAHelp(t *testing.T) {
	t.Parallel()
	sections := helps()

	for _, words := range everyCommand(root(&command.App{}), []string{"countersign"}) {
		name := strings.Join(words, " ")
		if h := sections[name]; h.short == "" || h.example == "" {
			t.Errorf("help.txt has no summary or no examples of %s", name)
		}
		delete(sections, name)
	}
	for name := range sections {
		t.Errorf("help.txt has a section of %s, which is no command", name)
	}
}

func TestFlagsWithFewValuesAreCompleted(t *testing.T) {
	t.Parallel()

	for _, tt := range []struct{ words, want string }{
		{"submit --risk", "low"}, {"list --status", "unknown"}, {"list --approval", "required"},
		{"dlq list --reason", "exhausted"}, {"dlq replay --reason", "exhausted"}, {"token create --role", "operator"},
		{"retention set --action", "delete"}, {"retention set", "actions"},
	} {
		var out bytes.Buffer
		args := append(append([]string{"__complete"}, strings.Fields(tt.words)...), "")
		Run(t.Context(), args, command.System{Out: &out, Err: &bytes.Buffer{}, Getenv: func(string) string { return "" }})
		if !strings.Contains(out.String(), tt.want+"\n") {
			t.Errorf("%s completes to %q, want %q among it", tt.words, out.String(), tt.want)
		}
	}
}
