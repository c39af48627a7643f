package triage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

func accounts(a *command.App) *cobra.Command {
	cmd := command.NewGroup("accounts", command.NewList(a, command.View[wire.TriageAccount]{
		Empty: "No accounts.", Head: []string{"ACCOUNT", "KIND", "WHERE", "PASSWORD", "EVERY", "PROPOSES FOR", "STATE"},
		Row: func(v wire.TriageAccount) []string {
			state := "on"
			if !v.Enabled {
				state = "off"
			}
			return []string{v.Name, v.Kind, where(v.Connection), password(v), v.Every.String(), v.Proposals.Source, state}
		},
	}, (*client.Client).TriageAccounts), showAccount(a), a.CreateFlag(setAccount(a)),
		command.NewChange(a, "delete NAME", "the account's name", "deleted account %s", (*client.Client).DeleteTriageAccount))
	cmd.Aliases = []string{"account"}
	return cmd
}

func where(c wire.TriageConnection) string {
	if c.Host != "" {
		return c.User + " at " + c.Host
	}
	return cmp.Or(c.URL, strings.Join(c.Command, " "), c.Path)
}

func password(v wire.TriageAccount) string {
	if v.HasSecret {
		return "stored"
	}
	return v.SecretFrom
}

func showAccount(a *command.App) *cobra.Command {
	return command.New(a, "show NAME", command.Arguments(1, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		return command.Show(a, func(a *command.App, v wire.TriageAccount) error {
			raw, err := json.Marshal(v)
			if err != nil {
				return err
			}
			return a.Print("%s\n", command.Indented(raw))
		})(c.TriageAccount(ctx, args[0]))
	})
}

func setAccount(a *command.App) *cobra.Command {
	var file, secret, tag string
	cmd := command.New(a, "set NAME", command.Arguments(1, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		var in wire.TriageAccountInput
		f, err := a.ReadDocument(file, func(document []byte) error { return strictly(document, &in) })
		if err != nil {
			return err
		}
		if secret != "" {
			raw, err := a.ReadFile(secret, 16<<10)
			if err != nil {
				return err
			}
			if in.Secret = strings.TrimRight(string(raw), "\r\n"); in.Secret == "" {
				return command.Misuse("the file of the password is empty")
			}
		}
		made, err := c.PutTriageAccount(ctx, args[0], in, tag)
		if err != nil {
			return f.Answered(err)
		}
		return a.Result(made, "stored account %s\n", args[0])
	})
	cmd.Aliases = []string{"put"}
	cmd.Flags().StringVarP(&file, "file", "f", "", "account `file` in YAML or JSON, or - for standard input (required)")
	cmd.Flags().StringVar(&secret, "password", "", "`file` that holds the mailbox password; it is stored encrypted")
	cmd.Flags().StringVar(&tag, "if-match", "", "only if the account's `ETag` still matches; \"show\" prints it")
	return cmd
}

// strictly decodes a document that has no members but those of v.
func strictly(document []byte, v any) error {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return fmt.Errorf("the file: %s", strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}
