package cli

import (
	_ "embed" // for the texts of --help
	"strings"

	"github.com/spf13/cobra"
)

// helpText is the reference of the command line: for each command a heading
// with its words, a line of summary, a description, and examples.
//
//go:embed help.txt
var helpText string

// help is the --help of one command, without its flags.
type help struct{ short, long, example string }

// helps returns the helps of all commands, by the words of each.
func helps() map[string]help {
	all := make(map[string]help)
	for section := range strings.SplitSeq(strings.TrimPrefix(helpText, "== "), "\n== ") {
		words, rest, _ := strings.Cut(section, "\n")
		short, rest, _ := strings.Cut(rest, "\n\n")
		long, example, _ := strings.Cut("\n\n"+rest, "\n\nExamples:\n")
		all[words] = help{short, strings.Trim(long, "\n"), strings.Trim(example, "\n")}
	}
	return all
}

// addHelp gives a command, and those below it, their help.
func addHelp(cmd *cobra.Command, all map[string]help) {
	h := all[cmd.CommandPath()]
	cmd.Short, cmd.Long, cmd.Example = h.short, h.long, h.example
	for _, below := range cmd.Commands() {
		addHelp(below, all)
	}
}
