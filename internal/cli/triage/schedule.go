package triage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/brief"
)

// schedule is when and where the briefs about an account are sent, with the grants
// that approve them.
type schedule struct {
	Account  string                    `json:"account"`
	Briefs   *wire.TriageBriefSettings `json:"briefs"`
	Channels []scheduledChannel        `json:"channels"`
	// Revoked are grants that ended.
	Revoked []uuid.UUID `json:"revoked"`
}

// scheduledChannel is a channel of briefs. Without a grant each message waits for a
// person, unless a mode allows the tool.
type scheduledChannel struct {
	wire.TriageBriefChannel
	Tool    string                     `json:"tool"`
	Pins    map[string]json.RawMessage `json:"pins"`
	GrantID *uuid.UUID                 `json:"grant_id"`
	Expires *time.Time                 `json:"expires_at"`
}

// name names a channel for people, in the form of the flags.
func (c scheduledChannel) name() string {
	return cmp.Or(c.To, strings.TrimSuffix(c.Source+":"+c.Channel, ":"))
}

// channelsOf returns the channels of an account, without grants.
func channelsOf(v wire.TriageAccount) (all []scheduledChannel, err error) {
	all = []scheduledChannel{}
	if v.Proposals.Brief == nil {
		return all, nil
	}
	for _, c := range v.Proposals.Brief.Channels {
		of := scheduledChannel{
			TriageBriefChannel: c, Tool: cmp.Or(c.Source, v.Proposals.Source) + ":" + brief.Channel(c).Tool(), Pins: map[string]json.RawMessage{},
		}
		fixed := map[string]string{"channel": c.Channel}
		if c.To != "" {
			fixed = map[string]string{"account": v.Proposals.Account, "to": c.To}
		}
		for name, text := range fixed {
			if text == "" {
				continue // a webhook has one channel
			}
			raw, failed := json.Marshal(text)
			of.Pins["/"+name], err = raw, errors.Join(err, failed)
		}
		all = append(all, of)
	}
	return all, err
}

// loose are the arguments of a brief that differ each time.
func (c scheduledChannel) loose() []string {
	if c.To != "" {
		return []string{"/subject", "/text"}
	}
	return []string{"/text", "/blocks"}
}

// reason is the reason of the grants for the briefs about an account.
func reason(account string) string { return "briefs about " + account }

// briefGrants returns the grants that the command made for an account.
func briefGrants(ctx context.Context, c *client.Client, account string) (found []wire.Grant, err error) {
	all, err := c.Grants(ctx, false)
	for _, g := range all {
		if g.Reason == reason(account) {
			found = append(found, g)
		}
	}
	return found, err
}

// holds reports whether a grant is for a channel.
func (c scheduledChannel) holds(g wire.Grant) bool {
	wanted := make(map[string]json.RawMessage, len(c.Pins))
	for pointer, value := range c.Pins {
		wanted[strings.TrimPrefix(pointer, "/")] = value
	}
	text, err := json.Marshal(wanted)
	if err != nil || g.Tool != c.Tool {
		return false
	}
	held, err := json.Marshal(heldArgs(g))
	return err == nil && bytes.Equal(held, text)
}

// scheduleOf returns the schedule of an account with the grants that hold.
func scheduleOf(ctx context.Context, c *client.Client, v wire.TriageAccount) (schedule, error) {
	s := schedule{Account: v.Name, Briefs: v.Proposals.Brief, Revoked: []uuid.UUID{}}
	grants, failed := briefGrants(ctx, c, v.Name)
	var err error
	s.Channels, err = channelsOf(v)
	for i := range s.Channels {
		for _, g := range grants {
			if s.Channels[i].holds(g) {
				s.Channels[i].GrantID, s.Channels[i].Expires = &g.ID, &g.ExpiresAt
			}
		}
	}
	return s, errors.Join(failed, err)
}

func (s schedule) print(a *command.App) error {
	b := s.Briefs
	if b == nil || b.Morning == "" && b.Evening == "" && !b.Alerts {
		return a.Print("%s sends no briefs; `countersign triage brief schedule %s --morning 07:30 --to ADDRESS` sends them\n", s.Account, s.Account)
	}
	shows := "counts alone"
	if b.ShowMail {
		shows = "senders and subjects"
	}
	if err := a.Fields("account", s.Account, "morning", cmp.Or(b.Morning, "-"), "evening", cmp.Or(b.Evening, "-"), "zone", b.Zone, "shows", shows,
		"calendar", cmp.Or(b.Calendar, "-"), "alerts", fmt.Sprint(b.Alerts)); err != nil {
		return err
	}
	return command.View[scheduledChannel]{
		Empty: "No channels.", Head: []string{"CHANNEL", "TOOL", "GRANT", "UNTIL", "APPROVES"}, Whole: true,
		Row: func(c scheduledChannel) []string {
			if c.GrantID == nil {
				return []string{c.name(), c.Tool, "-", "-", "each message waits for a person, unless a mode allows the tool"}
			}
			return []string{c.name(), c.Tool, c.GrantID.String(), command.Local(c.Expires), "any call with " + command.Held(c.Pins, c.loose())}
		},
	}.Show(a)(s.Channels, nil)
}

// scheduling are the flags of the command.
type scheduling struct {
	to       wire.TriageBriefSettings
	mail     []string
	slack    []string
	lifetime time.Duration
	undo     bool
}

// defaultGrant is the default lifetime of a grant for briefs, which is the longest one.
const defaultGrant = 90 * 24 * time.Hour

func scheduleBrief(a *command.App) *cobra.Command {
	var f scheduling
	cmd := command.New(a, "schedule ACCOUNT", command.Arguments(1, 1, "the account's name"), nil)
	cmd.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		v, err := c.TriageAccount(ctx, args[0])
		if err != nil {
			return err
		}
		changed := false
		for _, name := range []string{"morning", "evening", "zone", "to", "slack", "show-mail", "calendar", "alerts", "grant"} {
			changed = changed || cmd.Flags().Changed(name)
		}
		switch {
		case f.undo && changed:
			return command.Misuse("--undo cannot be combined with other flags")
		case f.undo:
			return f.end(ctx, a, c, v)
		case changed:
			return f.begin(ctx, a, c, cmd, v)
		}
		return command.Show(a, func(a *command.App, s schedule) error { return s.print(a) })(scheduleOf(ctx, c, v))
	})
	flags := cmd.Flags()
	flags.StringVar(&f.to.Morning, "morning", "", "send a brief at this `time` of day, such as 07:30; \"\" ends it")
	flags.StringVar(&f.to.Evening, "evening", "", "send a brief at this `time` of day; \"\" ends it")
	flags.StringVar(&f.to.Zone, "zone", "", "IANA time `zone` of these times (default UTC)")
	flags.StringSliceVar(&f.mail, "to", nil, "mail it to this `address` of yours (repeatable; replaces the channels)")
	flags.StringSliceVar(&f.slack, "slack", nil, "send it over this `source` of kind slack: source:channel, or source for its webhook (repeatable; replaces the channels)")
	flags.BoolVar(&f.to.ShowMail, "show-mail", false, "show senders and subjects (default: counts alone)")
	flags.StringVar(&f.to.Calendar, "calendar", "", "`source` of kind dav with the calendar to show")
	flags.BoolVar(&f.to.Alerts, "alerts", false, "also send urgent mail to the channels of Slack at once, at most five messages an hour")
	command.LifetimeFlag(cmd, &f.lifetime, "grant", "`duration` for which grants approve the briefs, 90 days (default) at most; run the command again to renew them")
	flags.BoolVar(&f.undo, "undo", false, "end the briefs and their grants")
	return cmd
}

// apply returns the settings of an account with the flags that were given.
func (f scheduling) apply(cmd *cobra.Command, v wire.TriageAccount) (wire.TriageBriefSettings, error) {
	var to wire.TriageBriefSettings
	if v.Proposals.Brief != nil {
		to = *v.Proposals.Brief
	}
	for name, set := range map[string]func(){
		"morning": func() { to.Morning = f.to.Morning }, "evening": func() { to.Evening = f.to.Evening }, "zone": func() { to.Zone = f.to.Zone },
		"show-mail": func() { to.ShowMail = f.to.ShowMail }, "calendar": func() { to.Calendar = f.to.Calendar }, "alerts": func() { to.Alerts = f.to.Alerts },
	} {
		if cmd.Flags().Changed(name) {
			set()
		}
	}
	to.Zone = cmp.Or(to.Zone, "UTC")
	if cmd.Flags().Changed("to") || cmd.Flags().Changed("slack") {
		to.Channels = nil
	}
	for _, address := range f.mail {
		to.Channels = append(to.Channels, wire.TriageBriefChannel{To: address})
	}
	for _, text := range f.slack {
		source, channel, _ := strings.Cut(text, ":")
		to.Channels = append(to.Channels, wire.TriageBriefChannel{Source: source, Channel: channel})
	}
	switch {
	case to.Morning == "" && to.Evening == "" && !to.Alerts:
		return to, command.Misuse("--morning or --evening is required: when are briefs sent?")
	case len(to.Channels) == 0:
		return to, command.Misuse("--to or --slack is required: where are briefs sent?")
	case v.Proposals.Source == "" && slices.ContainsFunc(to.Channels, func(c wire.TriageBriefChannel) bool { return c.To != "" }):
		return to, command.Misuse("the account %s names no source for its proposals, so nothing can mail its briefs", v.Name)
	}
	return to, nil
}

// begin makes a grant for each channel, stores the settings, and ends the grants of
// before. A failure ends the new grants.
func (f scheduling) begin(ctx context.Context, a *command.App, c *client.Client, cmd *cobra.Command, v wire.TriageAccount) error {
	to, err := f.apply(cmd, v)
	if err != nil {
		return err
	}
	old, err := briefGrants(ctx, c, v.Name)
	if err != nil {
		return err
	}
	v.Proposals.Brief = &to
	channels, err := channelsOf(v)
	if err != nil {
		return err
	}
	var made []wire.Grant
	undo := func(err error) error { return errors.Join(err, revoke(context.WithoutCancel(ctx), c, made)) }
	for _, channel := range channels {
		id, err := c.MakeGrant(ctx, wire.GrantInput{
			Tool: channel.Tool, Pins: channel.Pins, Loose: channel.loose(), ExpiresIn: envelope.Duration(cmp.Or(f.lifetime, defaultGrant)), Reason: reason(v.Name),
		})
		if err != nil {
			return undo(fmt.Errorf("a grant for %s: %w", channel.name(), err))
		}
		made = append(made, wire.Grant{ID: id})
	}
	if v, err = putProposals(ctx, c, v); err != nil {
		return undo(err)
	}
	if err := revoke(ctx, c, old); err != nil {
		return err
	}
	s, err := scheduleOf(ctx, c, v)
	for _, g := range old {
		s.Revoked = append(s.Revoked, g.ID)
	}
	return command.Show(a, func(a *command.App, s schedule) error { return s.print(a) })(s, err)
}

// end takes times, channels and alerts out of the settings, and ends the grants.
func (f scheduling) end(ctx context.Context, a *command.App, c *client.Client, v wire.TriageAccount) error {
	if to := v.Proposals.Brief; to != nil {
		rest := wire.TriageBriefSettings{Zone: to.Zone, ShowMail: to.ShowMail, ArchivingCloses: to.ArchivingCloses, Calendar: to.Calendar}
		v.Proposals.Brief = &rest
		if !rest.ShowMail && !rest.ArchivingCloses && rest.Calendar == "" {
			v.Proposals.Brief = nil
		}
		var err error
		if v, err = putProposals(ctx, c, v); err != nil {
			return err
		}
	}
	grants, err := briefGrants(ctx, c, v.Name)
	if err != nil {
		return err
	}
	s := schedule{Account: v.Name, Briefs: v.Proposals.Brief, Channels: []scheduledChannel{}, Revoked: []uuid.UUID{}}
	for _, g := range grants {
		s.Revoked = append(s.Revoked, g.ID)
	}
	if err := revoke(ctx, c, grants); err != nil {
		return err
	}
	return a.Result(s, "%s sends no briefs; %d grants are revoked\n", v.Name, len(grants))
}
