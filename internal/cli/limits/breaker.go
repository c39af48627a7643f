package limits

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Breakers returns the command breaker.
func Breakers(a *command.App) *cobra.Command {
	return command.NewGroup("breaker", command.NewList(a, command.View[wire.Breaker]{
		Empty: "No breaker has opened so far.", Head: []string{"SOURCE", "STATE", "CAUSE", "SINCE", "UNTIL", "OPENINGS"},
		Row: func(b wire.Breaker) []string {
			return []string{b.Source, b.State, b.Cause, command.Local(&b.Since), command.Local(&b.OpenUntil), strconv.Itoa(b.Openings)}
		},
	}, (*client.Client).Breakers),
		command.NewChange(a, "reset SOURCE", "the id of a source", "reset the breaker of %s", (*client.Client).ResetBreaker))
}
