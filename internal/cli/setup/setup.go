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
	"github.com/countersign-dev/countersign/internal/telemetry"
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
		what := fmt.Sprintf("migrated from version %d to %d", m.From, m.To)
		if m.From == m.To {
			what = fmt.Sprintf("is already at version %d", m.To)
		}
		return a.Result(map[string]int64{"from": m.From, "to": m.To, "river": int64(m.River)}, "The schema %s (River at %d).\n", what, m.River)
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
		version, platform := telemetry.Version(), runtime.GOOS+"/"+runtime.GOARCH
		return a.Result(map[string]string{"version": version, "go": runtime.Version(), "platform": platform},
			"countersign %s (%s, %s)\n", version, runtime.Version(), platform)
	})
}

// examineFor bounds the whole examination.
const examineFor = 2 * time.Minute

// Doctor returns the command doctor.
func Doctor(a *command.App) *cobra.Command {
	return command.NewLocal("doctor", command.NoArguments(), func(ctx context.Context, _ []string) error {
		ctx, cancel := context.WithTimeout(ctx, examineFor)
		defer cancel()
		pool, err := a.OpenDatabase(ctx)
		if err != nil {
			return err
		}
		defer pool.Close()
		return showFindings(a, doctor.Run(ctx, pool, time.Now))
	})
}

// showFindings shows all findings. The error has the number of failed checks.
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
		return fmt.Errorf("%d finding(s) need a fix", n)
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
	return a.Print("%s", b.String())
}
