package tools

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// sourceLoginText describes the login of a source.
func sourceLoginText(src wire.Source) string {
	l := src.Login
	switch {
	case l == nil:
		return "none"
	case l.LostAt != nil:
		return "lost since " + command.Local(l.LostAt) + ": " + command.Safe(*l.LostReason)
	}
	text := "at " + command.Safe(l.Issuer) + " by " + command.Safe(l.LoginBy) + " on " + command.Local(&l.LoginAt)
	if l.Scope != "" {
		text += ", for " + command.Safe(l.Scope)
	}
	return text + lackedScopes(src)
}

// lackedScopes describes the scopes that the login of a source lacks; "" for none.
func lackedScopes(src wire.Source) string {
	if src.Login == nil || len(src.Login.NeededScopes) == 0 {
		return ""
	}
	text := ", lacks the scopes " + command.Safe(strings.Join(src.Login.NeededScopes, " "))
	if len(src.Login.NeededTools) > 0 {
		text += " for " + command.Safe(strings.Join(src.Login.NeededTools, ", "))
	}
	return text + ": countersign source login " + command.Quoted(src.ID)
}

func sourceLogin(a *command.App) *cobra.Command {
	var in wire.SourceLoginInput
	var answer string
	wait := listingWait
	cmd := command.New(a, "login ID", command.Arguments(1, 1, "the source's id"), nil)
	flags := cmd.Flags()
	cmd.RunE = a.WithClient(func(ctx context.Context, c *client.Client, args []string) error {
		if answer != "" {
			return finishLogin(ctx, a, c, args[0], answer, wait)
		}
		return LogIn(ctx, a, c, args[0], in, cmd.InOrStdin(), wait)
	})
	flags.BoolVar(&in.Device, "device", false, "log in on another device, without a browser on this one")
	flags.StringSliceVar(&in.Scopes, "scope", nil, "`scopes` to ask for (default those that the source names, and those that its login has and lacks)")
	flags.StringVar(&in.ClientID, "client-id", "", "`id` of a client that you registered at the authorization server; it is kept for its issuer")
	a.TextFlag(cmd, &in.ClientSecret, "client-secret", "secret of that client, as @`FILE`")
	flags.StringVar(&answer, "answer", "", "`line` that the browser showed, of a login that began before")
	flags.DurationVar(&wait, "wait", wait, "maximum `duration` to wait for the tool listing")
	return cmd
}

// LogIn logs a source in. The person pastes the line that the browser shows, or logs in
// on another device.
func LogIn(ctx context.Context, a *command.App, c *client.Client, id string, in wire.SourceLoginInput, from io.Reader, wait time.Duration) error {
	begun, err := c.BeginSourceLogin(ctx, id, in)
	if err != nil {
		return err
	}
	if in.Device {
		return loginDevice(ctx, a, c, id, begun, wait)
	}
	a.Note("Log in at %s:\n\n  %s\n\nThen paste the line that the browser shows:", command.Safe(begun.Issuer), command.Safe(begun.URL))
	answer, err := readLine(from)
	if err != nil {
		return err
	}
	return finishLogin(ctx, a, c, id, answer, wait)
}

func finishLogin(ctx context.Context, a *command.App, c *client.Client, id, answer string, wait time.Duration) error {
	if _, err := c.FinishSourceLogin(ctx, id, wire.SourceLoginAnswer{Answer: answer}); err != nil {
		return err
	}
	return showLoggedIn(ctx, a, c, id, wait)
}

func sourceLogout(a *command.App) *cobra.Command {
	return command.New(a, "logout ID", command.Arguments(1, 1, "the source's id"), func(ctx context.Context, c *client.Client, args []string) error {
		removed, err := c.RemoveSourceLogin(ctx, args[0])
		if err != nil {
			return err
		}
		switch removed.Revocation {
		case wire.RevocationFailed:
			a.Note("The authorization server did not revoke the tokens: revoke them there.")
		case wire.RevocationUnsupported:
			a.Note("The authorization server cannot revoke tokens; they are valid until they end.")
		}
		return a.Result(removed, "removed the login of source %s\n", command.Line(args[0]))
	})
}

// readLine reads a line that a person pastes.
func readLine(from io.Reader) (string, error) {
	text, err := bufio.NewReader(from).ReadString('\n')
	if text = strings.TrimSpace(text); text != "" {
		return text, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errors.New("no answer; log in, and finish with --answer within ten minutes")
	}
	return "", err
}

// loginDevice waits for a person to log in on another device.
func loginDevice(ctx context.Context, a *command.App, c *client.Client, id string, begun wire.BegunSourceLogin, wait time.Duration) error {
	a.Note("On any device, open\n\n  %s\n\nand enter the code %s. This waits until you have.", command.Safe(begun.URL), command.Safe(*begun.UserCode))
	pause := begun.IntervalSeconds
	for {
		timer := time.NewTimer(time.Duration(pause * float64(time.Second)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		done, err := c.FinishSourceLogin(ctx, id, wire.SourceLoginAnswer{State: begun.State})
		if err != nil {
			return err
		}
		if done.Done {
			return showLoggedIn(ctx, a, c, id, wait)
		}
		pause = done.WaitSeconds
	}
}

// showLoggedIn shows the tools of a source that was just logged in, once they are
// listed.
func showLoggedIn(ctx context.Context, a *command.App, c *client.Client, id string, wait time.Duration) error {
	asked, err := c.RefreshSource(ctx, id)
	if err != nil {
		return err
	}
	src, _, err := ListedSince(ctx, c, id, asked, wait)
	if err != nil {
		return err
	}
	if err := a.Result(src, "logged in to source %s: %s\n", command.Line(id), sourceState(src)); err != nil {
		return err
	}
	noteAddress(a, src)
	noteDenied(a, src)
	return nil
}
