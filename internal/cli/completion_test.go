package cli_test

import (
	"strings"

	"github.com/countersign-dev/countersign/internal/cli/command"
)

// completed returns what a shell offers after some words.
func (d *fixture) completed(as func(args ...string) result, args ...string) string {
	d.t.Helper()
	return d.want(as(append([]string{"__complete"}, args...)...), command.ExitOK).out
}

func completesWords(d *fixture) {
	id := d.propose("Completed")
	for args, want := range map[string]string{
		"get ":                        id + "\tnotes:notes.create\n",
		"get " + id[:30]:              id,
		"history ":                    id,
		"undo ":                       id,
		"approve ":                    id + "\tnotes:notes.create\n",
		"deny ":                       id,
		"edit ":                       id,
		"tools show ":                 "notes:notes.create\n",
		"policy explain notes:notes.": "notes:notes.create\n",
		"policy mode set ":            "notes:notes.create\n",
		"policy mode set a:b ":        "require_approval\n",
		"policy danger ":              "require_approval\n",
		"source show ":                "notes\n",
		"breaker reset ":              "notes\n",
		"bucket show ":                "default\n",
		"submit --tool ":              "notes:notes.create\n",
		"submit --bucket ":            "default\n",
		"list --source ":              "notes\n",
		"pause --source=":             "notes\n",
	} {
		if got := d.completed(d.operator, strings.Split(args, " ")...); !strings.Contains(got, want) {
			d.t.Errorf("%s: a shell offers %q, want %q", args, got, want)
		}
	}
	for _, args := range []string{"get " + id + " " + id[:30], "source show notes ", "get x", "policy danger deny ", "proposals show ", "dnc add --source ", "policy danger "} {
		if got := d.completed(d.operator, strings.Split(args, " ")...); strings.Contains(got, id) || strings.Contains(got, "notes") || strings.Contains(got, "allow") {
			d.t.Errorf("%s: a shell offers %q, want nothing", args, got)
		}
	}
	nobody := func(args ...string) result { return d.run(d.t.Context(), "", "", args...) }
	if got := d.completed(nobody, "get", ""); !strings.HasPrefix(got, ":4\n") {
		d.t.Errorf("without a token a shell offers %q, want nothing", got)
	}
}
