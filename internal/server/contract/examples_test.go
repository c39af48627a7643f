package contract_test

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Each agent sends an e-mail. It prints the same whatever it is written in.
func TestAgentsInExamples(t *testing.T) {
	t.Parallel()
	agents := map[string]func(t *testing.T, f *fixture, args ...string) *exec.Cmd{
		"Go": func(t *testing.T, f *fixture, args ...string) *exec.Cmd {
			return f.program("../../../examples/agent-go", "go", append([]string{"run", "."}, args...)...)
		},
		"TypeScript": func(t *testing.T, f *fixture, args ...string) *exec.Cmd {
			dir := compile(t, "../../../examples/agent-typescript/agent.ts")
			return f.program(dir, "node", append([]string{"agent.js"}, args...)...)
		},
		"Python": func(t *testing.T, f *fixture, args ...string) *exec.Cmd {
			dir, err := filepath.Abs("../../../examples/agent-python")
			if err != nil {
				t.Fatal(err)
			}
			return f.program(dir, requireProgram(t, "python3"), append([]string{"agent.py"}, args...)...)
		},
	}
	for language, agent := range agents {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			for _, c := range []struct {
				mode envelope.Mode
				want string
				code int
			}{
				{envelope.ModeAllow, "sent: ", 0},
				{envelope.ModeRequireApproval, "waits for a person: ", 3},
				{envelope.ModeDeny, "denied: ", 2},
			} {
				f.setMode(c.mode)
				cmd := agent(t, f, "ana@example.org", string(c.mode))
				cmd.Env = append(cmd.Env, "AGENT_WAIT=2s")

				out, err := cmd.CombinedOutput()

				code := 0
				if exit, ok := err.(*exec.ExitError); ok {
					code = exit.ExitCode()
				} else if err != nil {
					t.Fatal(err)
				}
				// go run exits with 1 and prints the program's own code.
				if language == "Go" && strings.Contains(string(out), "exit status ") {
					code = int(out[strings.LastIndex(string(out), "exit status ")+len("exit status ")] - '0')
				}
				if !strings.HasPrefix(string(out), c.want) || code != c.code {
					t.Errorf("under %s it printed %q and exited with %d, want %q and %d", c.mode, out, code, c.want, c.code)
				}
			}
		})
	}
}

// setMode sets what policy says of the tool send_email.
func (f *fixture) setMode(mode envelope.Mode) {
	f.t.Helper()
	ctx := context.WithoutCancel(f.t.Context())
	err := postgres.InTx(ctx, f.db, postgres.API(f.tenant), func(tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, f.tenant, "", "mail:send_email", mode, "test")
	})
	if err != nil {
		f.t.Fatal(err)
	}
}
