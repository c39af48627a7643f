// Package subscriptions has the commands for webhooks and Slack channels that
// hear of events.
package subscriptions

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/actions"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Command returns the command subscription.
func Command(a *command.App) *cobra.Command {
	cmd := command.NewGroup("subscription", command.NewList(a, command.View[wire.Subscription]{
		Empty: "No subscriptions.", Head: []string{"SUBSCRIPTION", "SOURCE", "KINDS", "TOOL", "RISK", "BEHIND", "STATE"},
		Row: func(s wire.Subscription) []string {
			return []string{s.Name, s.Source, strings.Join(s.Kinds, " "), s.Tool, string(s.MinRisk), fmt.Sprint(s.Behind), subscriptionState(s)}
		},
	}, (*client.Client).Subscriptions),
		a.CreateFlag(subscriptionSet(a)),
		command.NewChange(a, "delete NAME", "the subscription's name", "removed subscription %s", (*client.Client).DeleteSubscription),
		subscriptionTest(a), resend(a))
	cmd.Aliases = []string{"subscriptions"}
	return cmd
}

func subscriptionState(s wire.Subscription) string {
	switch {
	case s.Enabled:
		return "on"
	case s.DisabledReason != "":
		return "off: " + s.DisabledReason
	}
	return "off"
}

func subscriptionSet(a *command.App) *cobra.Command {
	var in wire.SubscriptionInput
	var secret string
	var off bool
	cmd := command.New(a, "set NAME", command.Arguments(1, 1, "the subscription's name"), func(ctx context.Context, c *client.Client, args []string) (err error) {
		if in.Source == "" {
			return command.Misuse("--source is required: a source of the kind webhook or slack")
		}
		in.Enabled = new(!off)
		if in.SigningSecret, err = secretFile(a, secret); err != nil {
			return err
		}
		made, err := c.PutSubscription(ctx, args[0], in)
		if err != nil {
			return err
		}
		if a.JSON {
			return a.WriteJSON(made)
		}
		if made.Interactions != "" {
			a.Note("Interactivity request URL of the Slack app: %s%s", c, made.Interactions)
		}
		return a.Done(nil, "stored subscription %s", args[0])
	})
	flags := cmd.Flags()
	flags.StringVar(&in.Source, "source", "", "`source` that delivers the messages (required)")
	flags.StringSliceVar(&in.Kinds, "kinds", nil, "events to deliver, comma-separated `names`")
	flags.StringVar(&in.Tool, "tool", "", "deliver only events of this `tool`, as source:name; either part may be *")
	command.EnumFlag(cmd, &in.MinRisk, "min-risk", "deliver only events of actions of at least this `risk`: low, medium or high", "low", "medium", "high")
	flags.StringVar(&in.Channel, "channel", "", "`id` of the Slack channel")
	flags.StringVar(&in.Link, "link", "", "`address` for a button that opens the action; its id is appended")
	flags.BoolVar(&in.ShowMail, "show-mail", false, "show sender and subject of mail in this channel; needs the scope mail:read")
	flags.StringVar(&in.RateBucket, "rate-bucket", "", "rate-limit `bucket` of the messages")
	flags.StringVar(&secret, "signing-secret", "", "`file` that holds the signing secret of the Slack app")
	flags.BoolVar(&off, "off", false, "disable the subscription; waiting messages are dropped")
	flags.BoolVar(&in.FromNow, "from-now", false, "skip events from while it was disabled")
	return cmd
}

// secretFile reads a secret from a file; empty for no file.
func secretFile(a *command.App, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	raw, err := a.ReadFile(name, 4<<10)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(string(raw))
	if text == "" {
		return "", command.Misuse("the file of the secret is empty")
	}
	return text, nil
}

func subscriptionTest(a *command.App) *cobra.Command {
	var wait time.Duration
	cmd := command.New(a, "test NAME", command.Arguments(1, 1, "the subscription's name"), func(ctx context.Context, c *client.Client, args []string) error {
		sent, err := c.TestSubscription(ctx, args[0], wait)
		if err != nil {
			return err
		}
		return actions.ShowOutcome(a, []wire.Action{sent}, wait)
	})
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "maximum `duration` to wait for delivery")
	return cmd
}

func resend(a *command.App) *cobra.Command {
	var in wire.ResendRequest
	var wait time.Duration
	cmd := command.New(a, "resend DELIVERY...", command.Arguments(1, command.Many, "one or more ids of deliveries"), func(ctx context.Context, c *client.Client, args []string) error {
		return actions.Each(ctx, a, args, wait, func(ctx context.Context, id envelope.ActionID) (wire.Action, error) {
			return c.ResendDelivery(ctx, id, in, wait)
		})
	})
	cmd.Flags().StringVar(&in.Note, "note", "", "`reason`, for the audit log")
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "maximum `duration` to wait for delivery")
	return cmd
}
