// Package setup has the commands that set Countersign up on a machine: dev,
// migrate, doctor, tenant and version.
package setup

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/insight/doctor"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// Migrate returns the command migrate.
func Migrate(a *command.App) *cobra.Command {
	return command.NewLocal("migrate", command.NoArguments(), func(ctx context.Context, _ []string) error {
		url, err := a.DatabaseURL()
		if err != nil {
			return err
		}
		m, err := postgres.Migrate(ctx, url)
		if err != nil {
			return err
		}
		if a.JSON {
			return a.WriteJSON(map[string]int64{"from": m.From, "to": m.To, "river": int64(m.River)})
		}
		if m.From == m.To {
			_, err = fmt.Fprintf(a.Out, "The schema is at version %d already (River at %d).\n", m.To, m.River)
		} else {
			_, err = fmt.Fprintf(a.Out, "The schema went from version %d to %d (River at %d).\n", m.From, m.To, m.River)
		}
		return err
	})
}

// Tenant returns the command tenant.
func Tenant(a *command.App) *cobra.Command {
	return command.NewGroup("tenant", command.NewLocal("create NAME", command.Arguments(1, 1, "a name"), func(ctx context.Context, args []string) error {
		var id envelope.TenantID
		err := a.InDatabase(ctx, "", func(ctx context.Context, tx pgx.Tx, _ envelope.TenantID) (err error) {
			id, err = identity.NewTenant(ctx, tx, args[0])
			return err
		})
		if err != nil {
			return err
		}
		return a.Result(map[string]string{"tenant_id": id.String(), "name": args[0]}, "%s\n", id)
	}))
}

// Version returns the command version.
func Version(a *command.App) *cobra.Command {
	return command.NewLocal("version", command.NoArguments(), func(_ context.Context, _ []string) error {
		if a.JSON {
			return a.WriteJSON(map[string]string{
				"version": command.Version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
			})
		}
		_, err := fmt.Fprintf(a.Out, "countersign %s (%s, %s/%s)\n", command.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	})
}

// examineFor bounds the whole examination.
const examineFor = 2 * time.Minute

// Doctor returns the command doctor.
func Doctor(a *command.App) *cobra.Command {
	return command.NewLocal("doctor", command.NoArguments(), func(ctx context.Context, _ []string) error {
		return runDoctor(ctx, a)
	})
}

func runDoctor(ctx context.Context, a *command.App) error {
	url, err := a.DatabaseURL()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, examineFor)
	defer cancel()
	pool, err := postgres.Open(ctx, postgres.Config{URL: url, MaxConns: 1, Name: "countersign-doctor"})
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := pool.Ping(ctx); err != nil {
		return fmt.Errorf("the database of %s does not answer; is it running, and is the address right?", command.DatabaseEnv)
	}
	return showFindings(a, doctor.Run(ctx, pool, time.Now))
}

// unwellError says that something failed. What it was has been shown.
type unwellError struct{ failed int }

func (e *unwellError) Error() string {
	return fmt.Sprintf("%d of what was examined must be put right", e.failed)
}

// showFindings shows all of them. The error is an *unwellError if some failed.
func showFindings(a *command.App, all []doctor.Finding) error {
	counts := make(map[doctor.Status]int)
	for _, f := range all {
		counts[f.Status]++
	}
	if a.JSON {
		err := a.WriteJSON(struct {
			Checks   []doctor.Finding `json:"checks"`
			Failed   int              `json:"failed"`
			Warnings int              `json:"warnings"`
		}{all, counts[doctor.Failed], counts[doctor.Warning]})
		if err != nil {
			return err
		}
	} else if err := writeFindings(a, all); err != nil {
		return err
	}
	if n := counts[doctor.Failed]; n > 0 {
		return &unwellError{n}
	}
	return nil
}

func writeFindings(a *command.App, all []doctor.Finding) error {
	var b strings.Builder
	for _, f := range all {
		mark := string(f.Status)
		if f.Status != doctor.OK {
			mark = strings.ToUpper(mark)
		}
		fmt.Fprintf(&b, "%-8s %-21s  %s\n", mark, f.Check, command.Safe(f.Message))
		if f.Fix != "" {
			fmt.Fprintf(&b, "%-30s  → %s\n", "", command.Safe(f.Fix))
		}
	}
	if _, err := fmt.Fprint(a.Out, b.String()); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
