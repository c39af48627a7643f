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
	"github.com/countersign-dev/countersign/internal/cli/actions"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Command returns the command subscription.
func Command(a *command.App) *cobra.Command {
	cmd := command.NewGroup("subscription", "Deliver events to webhooks and Slack",
		`Deliver events to a webhook, whose messages are signed, or to a channel in
Slack, where people approve and deny by buttons.

Each message is an action of its own: it is retried, limited and on record like
any other, and no subscription delivers its events. Looking takes any person's
token, the rest an administrator's.`,
		`  countersign subscription list
  countersign subscription set approvals --source approvals-bot --channel C024BE91L
  countersign subscription test approvals`,
		command.NewList(a, command.Help{
			Short:   "List the subscriptions",
			Long:    "List the subscriptions, and how far behind each is. One that the server disabled\nsays why. With --json it is one object a line.",
			Example: "  countersign subscription list\n  countersign subscription list --json | jq 'select(.behind > 100)'",
		}, command.View[wire.Subscription]{
			Empty: "There are none.", Head: []string{"SUBSCRIPTION", "SOURCE", "KINDS", "TOOL", "RISK", "BEHIND", "STATE"},
			Row: func(s wire.Subscription) []string {
				return []string{s.Name, s.Source, strings.Join(s.Kinds, " "), s.Tool, string(s.MinRisk), fmt.Sprint(s.Behind), subscriptionState(s)}
			},
		}, func(ctx context.Context, c *client.Client) ([]wire.Subscription, error) { return c.Subscriptions(ctx) }),
		subscriptionSet(a),
		command.NewChange(a, "delete NAME", command.Help{
			Short: "Remove a subscription", Long: "Remove a subscription. What it still has to deliver is not delivered any more.",
			Example: "  countersign subscription delete hooks",
		}, "the subscription's name", "removed subscription %s", func(ctx context.Context, c *client.Client, name string) error {
			return c.DeleteSubscription(ctx, name)
		}),
		subscriptionTest(a))
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

const subscriptionSetHelp = `Make a subscription, or replace one: what is left out has its default.

--source is a source of the kind webhook or slack. --kinds are names of events:
action_approval_request, action_approval_result and action_completed, or what
"countersign watch" shows, such as settled. A webhook that names none
receives those three, Slack action_approval_request.

For Slack, --channel is the channel's id. --signing-secret is a file with the
signing secret of the Slack app; the app's interactivity request URL is the
server's address with the path that is printed. --link makes a button that opens
an action. Use an app that agents cannot use otherwise: whoever can change its
messages can change what people believe they approve.

A new subscription delivers what happens from now on. One that was off also
delivers what happened meanwhile, unless --from-now is given.`

func subscriptionSet(a *command.App) *cobra.Command {
	var in wire.SubscriptionInput
	var secret string
	var off bool
	cmd := &cobra.Command{
		Use:   "set NAME",
		Short: "Make or change a subscription",
		Long:  subscriptionSetHelp,
		Example: `  countersign source set hooks --kind webhook --config '{"url":"https://hooks.example.com/in"}' --credentials @hooks.json
  countersign subscription set hooks --source hooks --kinds settled,decided --tool 'mail:*'
  countersign subscription set approvals --source approvals-bot --channel C024BE91L \
    --signing-secret slack-signing-secret --link https://ops.example.com/actions/ --min-risk medium`,
		Args: command.Arguments(1, 1, "the subscription's name"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) (err error) {
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
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&in.Source, "source", "", "the `source` that delivers (required)")
	flags.StringSliceVar(&in.Kinds, "kinds", nil, "the `names` of the events to deliver, with commas between")
	flags.StringVar(&in.Tool, "tool", "", "only of this `tool`, as source:name; either may be *")
	command.EnumFlag(cmd, &in.MinRisk, "min-risk", "only of actions of this `risk` or a higher one: low, medium or high", "low", "medium", "high")
	flags.StringVar(&in.Channel, "channel", "", "the `id` of the channel in Slack")
	flags.StringVar(&in.Link, "link", "", "the `address` to which an action's id is appended, for a button that opens it")
	flags.StringVar(&in.RateBucket, "rate-bucket", "", "the rate `bucket` of its messages")
	flags.StringVar(&secret, "signing-secret", "", "the `file` that holds the Slack app's signing secret")
	flags.BoolVar(&off, "off", false, "switch it off; what waits to be delivered is not delivered any more")
	flags.BoolVar(&in.FromNow, "from-now", false, "leave out what happened while it was off")
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
	cmd := &cobra.Command{
		Use:     "test NAME",
		Short:   "Send a message that only shows that messages arrive",
		Long:    "Send a message that only shows that messages arrive, and show what became of it.\nIt exits with 3 if the message was not taken.",
		Example: "  countersign subscription test hooks\n  countersign subscription test hooks --wait=1m --json | jq .envelope.result",
		Args:    command.Arguments(1, 1, "the subscription's name"),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
			sent, err := c.TestSubscription(ctx, args[0], wait)
			if err != nil {
				return err
			}
			return actions.ShowOutcome(a, []wire.Action{sent}, wait)
		}),
	}
	cmd.Flags().DurationVar(&wait, "wait", 30*time.Second, "wait this `long` for the message to be taken")
	return cmd
}
