package command

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-dev/countersign/client/wire"
)

// Held describes the arguments that a grant holds, in one line.
func Held(pins map[string]json.RawMessage, loose []string) string {
	var parts []string
	for _, at := range slices.Sorted(maps.Keys(pins)) {
		if at == "" {
			parts = append(parts, "exactly "+string(pins[at]))
		} else {
			parts = append(parts, at+"="+string(pins[at]))
		}
	}
	switch others := strings.Join(loose, ", "); {
	case len(loose) == 0:
	case others != "":
		parts = append(parts, "any "+others)
	case len(pins) == 0:
		parts = append(parts, "any arguments")
	default:
		parts = append(parts, "any other arguments")
	}
	return strings.Join(parts, "; ")
}

// LooseFlags returns the pointers of --loose flags; all is the empty pointer.
func LooseFlags(texts []string) []string {
	loose := make([]string, len(texts))
	for i, text := range texts {
		if loose[i] = text; text == "all" {
			loose[i] = ""
		}
	}
	return loose
}

// ShowGrant shows a grant that would be made, and the past calls that it would
// have let through.
func ShowGrant(a *App, g wire.GrantPreview) error {
	if a.JSON {
		return a.WriteJSON(g)
	}
	if err := a.Fields("lets through", g.Tool, "with", Held(g.Pins, g.Loose), "for", g.ExpiresIn.String(), "session", g.Session, "automation", g.Automation); err != nil {
		return err
	}
	of := "since " + Local(&g.Since)
	if !g.Complete {
		of = "among the last " + strconv.Itoa(g.Examined) + " actions"
	}
	if err := a.Print("%d of %d calls of %s %s would have run without a person.\n", g.Count, g.Compared, Line(g.Tool), of); err != nil || g.Count == 0 {
		return err
	}
	err := Table(a, g.Calls, []string{"ID", "PROPOSED", "ARGUMENTS"}, func(c wire.PastCall) []string {
		args := string(c.Args)
		if c.ArgsCut {
			args = c.ArgsPreview + "… (see `countersign get`)"
		}
		return []string{c.ActionID.String(), Local(&c.ProposedAt), args}
	})
	if more := g.Count - len(g.Calls); err == nil && more > 0 {
		err = a.Print("and %d more\n", more)
	}
	return err
}
