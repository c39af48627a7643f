package triage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// awayTool is the tool of the answers.
const awayTool = "message.away"

func away(a *command.App) *cobra.Command {
	return command.NewGroup("away", showAway(a), setAway(a), endAway(a))
}

// absence is the answer of an account in its owner's absence, with the grants that
// approve it.
type absence struct {
	Account string           `json:"account"`
	State   string           `json:"state"`
	Away    *wire.TriageAway `json:"away"`
	Grants  []uuid.UUID      `json:"grants"`
}

func (v absence) print(a *command.App) error {
	if v.Away == nil {
		return a.Print("%s gives no answers in absence; set one with `countersign triage away set %s`\n", v.Account, v.Account)
	}
	grants := make([]string, len(v.Grants))
	for i, id := range v.Grants {
		grants[i] = id.String()
	}
	return a.Fields("account", v.Account, "state", v.State, "since", command.Local(&v.Away.Since), "until", command.Local(&v.Away.Until),
		"cohorts", strings.Join(v.Away.Cohorts, ", "), "most a day", fmt.Sprintf("%d, by the days of %s", v.Away.MostADay, cmp.Or(v.Away.Zone, "UTC")),
		"grant", cmp.Or(strings.Join(grants, ", "), "none: each answer waits for a person"), "subject", v.Away.Subject, "text", v.Away.Text)
}

// absenceOf returns the answer of an account.
func absenceOf(ctx context.Context, c *client.Client, v wire.TriageAccount) (absence, error) {
	found := absence{Account: v.Name, State: "none", Away: v.Proposals.Away, Grants: []uuid.UUID{}}
	if found.Away == nil {
		return found, nil
	}
	switch now := time.Now(); {
	case !v.Enabled:
		found.State = "off, as the account is"
	case now.Before(found.Away.Since):
		found.State = "to come"
	case now.Before(found.Away.Until):
		found.State = "away"
	default:
		found.State = "over"
	}
	grants, err := awayGrants(ctx, c, v)
	wanted, failed := pinned(v.Proposals)
	for _, g := range grants {
		if held, err := json.Marshal(heldArgs(g)); err == nil && string(held) == string(wanted) {
			found.Grants = append(found.Grants, g.ID)
		}
	}
	return found, errors.Join(err, failed)
}

// heldArgs returns the arguments that a grant holds.
func heldArgs(g wire.Grant) map[string]string {
	var held map[string]string
	if json.Unmarshal(g.Pins[""], &held) != nil {
		return nil
	}
	return held
}

// fixed returns the arguments of all answers of an account.
func fixed(p wire.TriageProposals) map[string]string {
	return map[string]string{
		"account": p.Account, "subject": p.Away.Subject, "text": p.Away.Text,
		"since": p.Away.Since.UTC().Format(time.RFC3339), "until": p.Away.Until.UTC().Format(time.RFC3339),
	}
}

func pinned(p wire.TriageProposals) ([]byte, error) { return json.Marshal(fixed(p)) }

// awayGrants returns the grants for answers of an account.
func awayGrants(ctx context.Context, c *client.Client, v wire.TriageAccount) ([]wire.Grant, error) {
	all, err := c.Grants(ctx, false)
	var found []wire.Grant
	for _, g := range all {
		if g.Tool == v.Proposals.Source+":"+awayTool && heldArgs(g)["account"] == v.Proposals.Account {
			found = append(found, g)
		}
	}
	return found, err
}

func showAway(a *command.App) *cobra.Command {
	return command.New(a, "show ACCOUNT", command.Arguments(1, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		v, err := c.TriageAccount(ctx, args[0])
		if err != nil {
			return err
		}
		return command.Show(a, func(a *command.App, v absence) error { return v.print(a) })(absenceOf(ctx, c, v))
	})
}

// putProposals stores an account with other proposals, unless it was changed since it was
// read.
func putProposals(ctx context.Context, c *client.Client, v wire.TriageAccount) (wire.TriageAccount, error) {
	_, err := c.PutTriageAccount(ctx, v.Name, wire.TriageAccountInput{
		Kind: v.Kind, Connection: v.Connection, Settings: &v.Settings, Proposals: &v.Proposals, Texts: &v.Texts, SecretFrom: v.SecretFrom,
		Enabled: &v.Enabled, Every: &v.Every, BackfillDays: &v.BackfillDays, Operator: v.Operator,
	}, v.ETag)
	return v, err
}

// revoke ends grants.
func revoke(ctx context.Context, c *client.Client, grants []wire.Grant) (err error) {
	for _, g := range grants {
		err = errors.Join(err, c.RevokeGrant(ctx, g.ID))
	}
	return err
}

func setAway(a *command.App) *cobra.Command {
	var to wire.TriageAway
	cmd := command.New(a, "set ACCOUNT", command.Arguments(1, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		if to.Subject == "" || to.Text == "" || to.Until.IsZero() || len(to.Cohorts) == 0 {
			return command.Misuse("--subject, --text, --until and --cohort are required")
		}
		v, err := c.TriageAccount(ctx, args[0])
		if err != nil {
			return err
		}
		if v.Proposals.Source == "" {
			return command.Misuse("the account %s names no source for its proposals, so nothing can send its answers", v.Name)
		}
		now := time.Now()
		if before := v.Proposals.Away; to.Since.IsZero() && before != nil && !now.Before(before.Since) && now.Before(before.Until) {
			to.Since = before.Since // the same absence: who has an answer gets no second
		}
		if to.Since.IsZero() {
			to.Since = now
		}
		to.Since, to.Until = to.Since.UTC().Truncate(time.Second), to.Until.UTC().Truncate(time.Second)
		to.Text = strings.ReplaceAll(strings.TrimRight(to.Text, "\r\n"), "\r\n", "\n")
		old, err := awayGrants(ctx, c, v)
		if err != nil {
			return err
		}
		v.Proposals.Away = &to
		pins := map[string]json.RawMessage{}
		for name, text := range fixed(v.Proposals) {
			if pins["/"+name], err = json.Marshal(text); err != nil {
				return err
			}
		}
		id, err := c.MakeGrant(ctx, wire.GrantInput{
			Tool: v.Proposals.Source + ":" + awayTool, Pins: pins, Loose: []string{"/to", "/message"}, ExpiresIn: envelope.Duration(to.Until.Sub(now).Truncate(time.Second)),
			Reason: "answers in the absence of the owner of " + v.Name,
		})
		if err != nil {
			return err
		}
		if v, err = putProposals(ctx, c, v); err != nil {
			return errors.Join(err, c.RevokeGrant(ctx, id))
		}
		if err := revoke(ctx, c, old); err != nil {
			return err
		}
		return a.Result(absence{Account: v.Name, State: "set", Away: &to, Grants: []uuid.UUID{id}}, "%s answers until %s; grant %s\n", v.Name, command.Local(&to.Until), id)
	})
	cmd.Flags().StringVar(&to.Subject, "subject", "", "`subject` of the answer (required)")
	a.TextFlag(cmd, &to.Text, "text", "`text` of the answer, or @ and a file (required)")
	command.FutureFlag(cmd, &to.Until, "until", "end of the absence, at most 90 days away (required)")
	command.FutureFlag(cmd, &to.Since, "since", "begin of the absence (default now, or that of the present one)")
	cmd.Flags().StringVar(&to.Zone, "zone", "", "IANA time `zone` whose days --most counts (default UTC)")
	cmd.Flags().StringSliceVar(&to.Cohorts, "cohort", nil, "`cohorts` whose senders get an answer, such as vip,intra_org (required)")
	cmd.Flags().IntVar(&to.MostADay, "most", 20, "`number` of answers a day at most")
	return cmd
}

func endAway(a *command.App) *cobra.Command {
	return command.New(a, "end ACCOUNT", command.Arguments(1, 1, "the account's name"), func(ctx context.Context, c *client.Client, args []string) error {
		v, err := c.TriageAccount(ctx, args[0])
		if err != nil {
			return err
		}
		grants, err := awayGrants(ctx, c, v)
		if err != nil {
			return err
		}
		if err := revoke(ctx, c, grants); err != nil {
			return err
		}
		if v.Proposals.Away != nil {
			v.Proposals.Away = nil
			if v, err = putProposals(ctx, c, v); err != nil {
				return err
			}
		}
		return a.Result(absence{Account: v.Name, State: "none", Grants: []uuid.UUID{}}, "%s gives no answers in absence\n", v.Name)
	})
}
