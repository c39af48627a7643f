// Package config reads the configuration of a process from its environment: the
// variables of each command, their defaults, their checks and their help. The
// effect of a value is documented at its destination. Nothing else in the module
// reads COUNTERSIGN_ variables of a server process.
package config

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
)

// Exit codes of all commands that this package configures.
const (
	ExitOK     = 0
	ExitFailed = 1
	// ExitConfig is the exit code for an invalid configuration.
	ExitConfig = 2
)

// A Command is the configuration of one command, such as API or Worker.
type Command interface {
	// name is the command's name, and usage its help, with the placeholder
	// {variables} for the table of variables.
	name() string
	usage() string
	// variables binds the variables to the fields of the configuration.
	variables() []variable
	// keep stores the configuration without its secrets, for logs.
	keep(shown slog.Value)
}

// logged is the part of a configuration that may be logged.
type logged struct{ shown slog.Value }

func (l *logged) keep(shown slog.Value) { l.shown = shown }

// LogValue returns the configuration without its secrets: each value under the
// last part of its variable's name.
func (l logged) LogValue() slog.Value { return l.shown }

// A variable is an environment variable. Its default has the syntax of its
// values.
type variable struct {
	name     string
	standard string
	about    string
	required bool
	// parse stores a value. Its error describes valid values, as in "must be
	// true or false", and does not repeat the value, which may be a secret.
	parse func(text string) error
	// shown returns the value for logs; nil means the text itself.
	shown func(text string) string
}

// startup is the time after which a process has begun its work. About half of the
// program's mapped pages, some 16 MB, are used only until then.
const startup = 10 * time.Second

// Run reads a command's configuration into c, does its work until ctx ends, and
// returns the exit code.
func Run(ctx context.Context, c Command, args, environ []string, stdout, stderr io.Writer, work func() error) int {
	if exit, ended := Start(c, args, environ, stdout, stderr); ended {
		return exit
	}
	started := time.AfterFunc(startup, unmapProgram)
	defer started.Stop()
	err := work()
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled) { // stopped before it had begun
		return ExitOK
	}
	fmt.Fprintf(stderr, "%s: %v\n", c.name(), err)
	return ExitFailed
}

// Start reads a command's configuration into c. ended reports whether the
// command is done, with the exit code exit: after --help, or after an invalid
// configuration, whose problems and remedies are written to stderr.
func Start(c Command, args, environ []string, stdout, stderr io.Writer) (exit int, ended bool) {
	if len(args) > 0 {
		if slices.Contains([]string{"--help", "-help", "-h", "help"}, args[0]) {
			writeHelp(stdout, c)
			return ExitOK, true
		}
		fmt.Fprintf(stderr, "%s: it takes no arguments; --help lists the variables that configure it\n", c.name())
		return ExitConfig, true
	}
	if err := Read(c, environ); err != nil {
		fmt.Fprintf(stderr, "%s: the configuration cannot be used:\n%v\n", c.name(), err)
		return ExitConfig, true
	}
	return ExitOK, false
}

// Read reads environ, which has the form of os.Environ, into c. The error has a
// line with a remedy for every invalid variable. It repeats no value.
func Read(c Command, environ []string) error {
	values := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	wrong := unknown(values)
	var shown []slog.Attr
	for _, v := range c.variables() {
		text := values[v.name]
		if text == "" && v.required {
			wrong = append(wrong, fmt.Errorf("  %s is required: %s", v.name, v.about))
			continue
		}
		text = cmp.Or(text, v.standard)
		if text != "" {
			if err := v.parse(text); err != nil {
				wrong = append(wrong, fmt.Errorf("  %s %w", v.name, err))
			}
		}
		if v.shown != nil {
			text = v.shown(text)
		}
		shown = append(shown, slog.String(strings.ToLower(strings.TrimPrefix(v.name, prefix)), text))
	}
	c.keep(slog.GroupValue(shown...))
	return errors.Join(wrong...)
}

// ReadVariables is Read with a lookup function, for a command that shares its
// environment with others. It ignores unknown variables.
func ReadVariables(c Command, lookup func(name string) string) error {
	var environ []string
	for _, v := range c.variables() {
		environ = append(environ, v.name+"="+lookup(v.name))
	}
	return Read(c, environ)
}

// writeHelp writes a command's help. It ignores write errors.
func writeHelp(w io.Writer, c Command) {
	before, after, _ := strings.Cut(c.usage(), "{variables}")
	fmt.Fprint(w, before)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, v := range c.variables() {
		standard := v.standard
		switch {
		case v.required:
			standard = "required"
		case standard == "":
			standard = "none"
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\n", v.name, standard, v.about)
	}
	_ = table.Flush()
	fmt.Fprint(w, after)
}

// prefix is the prefix of Countersign's variables.
const prefix = "COUNTERSIGN_"

// serviceLink matches the variables that Kubernetes sets in every container for
// a Service with a name that begins with countersign.
var serviceLink = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?)$`)

// unknown returns an error for every unknown variable with our prefix, most
// likely a misspelt one.
func unknown(values map[string]string) []error {
	known := names()
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		ours := strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, prefix+"TEST_") && !strings.HasPrefix(name, secretPrefix)
		if !ours || slices.Contains(known, name) || serviceLink.MatchString(strings.TrimPrefix(name, strings.TrimSuffix(prefix, "_"))) {
			continue
		}
		edits := func(to string) int { return fault.EditDistance([]rune(name), []rune(to), math.MaxInt32) }
		nearest := slices.MinFunc(known, func(a, b string) int { return edits(a) - edits(b) })
		wrong = append(wrong, fmt.Errorf("  %s is unknown; the nearest name is %s", name, nearest))
	}
	return wrong
}

// names returns the variables of all commands, which may share one environment,
// and those of the command line and the scripts.
func names() []string {
	all := []string{"URL", "TOKEN", "CONFIG", "CLIENT_ID", "ISSUER", "PG_BIN"}
	for i := range all {
		all[i] = prefix + all[i]
	}
	for _, c := range []Command{&API{}, &Worker{}, &Triage{}} {
		for _, v := range c.variables() {
			all = append(all, v.name)
		}
	}
	return all
}

// collectPercent is the growth of the heap, in percent of the live heap, at
// which the garbage collector runs. The heaps of API and workers have some dozen
// megabytes, so memory is cheaper than a collection at each doubling.
const collectPercent = 400

// CollectSeldom makes the garbage collector run less often than by default,
// unless the environment sets GOGC. GOMEMLIMIT still bounds the heap.
func CollectSeldom(environ []string) {
	if !slices.ContainsFunc(environ, func(pair string) bool { return strings.HasPrefix(pair, "GOGC=") }) {
		debug.SetGCPercent(collectPercent)
	}
}
