package cli_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/workflow"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// tools gives the tenant the source crm: create is taken back by delete.
func (m *apiFixture) tools() {
	m.t.Helper()
	err := postgres.InTx(m.t.Context(), m.db, postgres.API(m.tenant), func(tx pgx.Tx) error {
		ctx := m.t.Context()
		if err := catalog.PutSource(ctx, tx, m.tenant, catalog.Source{ID: "crm", Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
			return err
		}
		var all []source.Tool
		for _, name := range []string{"create", "delete", "send", "message.state"} {
			effect := envelope.EffectKeyed
			if name == "message.state" {
				effect = envelope.EffectRead
			}
			all = append(all, source.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`), Effect: effect})
		}
		if err := catalog.PutListing(ctx, tx, m.tenant, "crm", all); err != nil {
			return err
		}
		if err := settings.PutMode(ctx, tx, m.tenant, "", "*", envelope.ModeAllow, "test"); err != nil {
			return err
		}
		return catalog.DescribeTool(ctx, tx, m.tenant, policy.Key{Source: "crm", Action: "create"}, catalog.Description{Reversal: &catalog.Reversal{
			Tool: policy.Key{Source: "crm", Action: "delete"}, Args: json.RawMessage(`{"id":"$outputs/id"}`),
		}})
	})
	if err != nil {
		m.t.Fatal(err)
	}
}

// drive moves batches on, as the fleet does.
func (m *apiFixture) drive() {
	m.t.Helper()
	d := workflow.NewDriver(m.db, intake.New(m.db, settings.NewCache(), intake.Config{}), slog.New(slog.DiscardHandler))
	if _, _, err := d.Sweep(m.t.Context()); err != nil {
		m.t.Fatal(err)
	}
}

func (m *apiFixture) exec(ctx context.Context, sql string, args ...any) {
	m.t.Helper()
	if _, err := m.db.Exec(ctx, sql, args...); err != nil {
		m.t.Fatal(err)
	}
}

func TestBatch(t *testing.T) {
	t.Parallel()
	m := newAPIFixture(t)
	m.tools()
	file := filepath.Join(t.TempDir(), "batch.json")
	if err := os.WriteFile(file, []byte(`[{"tool":"crm:create","inputs":{"name":"Ana"}},{"tool":"crm:create","inputs":{"of":"$0.id"}}]`), 0o600); err != nil {
		t.Fatal(err)
	}

	plan := m.run(command.ExitOK, "workflow", "run", file, "--atomic", "--dry-run")
	ran := m.run(command.ExitOK, "workflow", "run", file, "--atomic", "--external-id", "b-1", "--json")
	again := m.run(command.ExitOK, "workflow", "run", file, "--atomic", "--external-id", "b-1")
	var b wire.Workflow
	if err := json.Unmarshal([]byte(ran.out), &b); err != nil {
		t.Fatal(err)
	}

	for _, want := range []string{"crm:create", "allow", "$steps.0/id", "crm:delete"} {
		if !strings.Contains(plan.out, want) {
			t.Errorf("the plan lacks %s:\n%s", want, plan.out)
		}
	}
	if !strings.Contains(again.err, "Already started") || !strings.Contains(again.out, b.ID.String()) {
		t.Errorf("the same again says %s%s", again.out, again.err)
	}
	m.drive()
	if shown := m.run(command.ExitOK, "workflow", "show", b.ID.String()); !strings.Contains(shown.out, "atomic workflow "+b.ID.String()+" is running") || !strings.Contains(shown.err, "countersign get") {
		t.Errorf("it shows as %s%s", shown.out, shown.err)
	}
	if listed := m.run(command.ExitOK, "workflow", "list", "--state", "running"); !strings.Contains(listed.out, "0/2") {
		t.Errorf("the list is %s", listed.out)
	}
	m.run(command.ExitOK, "workflow", "cancel", b.ID.String())
	m.drive()
	if shown := m.run(command.ExitAction, "workflow", "show", b.ID.String(), "--wait"); !strings.Contains(shown.out, "reverted: cancelled by ada") {
		t.Errorf("it shows as %s", shown.out)
	}
	m.run(command.ExitFailed, "workflow", "retry", b.ID.String(), "--note", "n")
	m.exec(t.Context(), "UPDATE workflows SET state = 'compensation_failed', ended_at = NULL")
	m.exec(t.Context(), "UPDATE workflow_steps SET state = 'revert_failed' WHERE step = 0")
	if listed := m.run(command.ExitOK, "workflow", "list", "--needs-operator"); !strings.Contains(listed.out, b.ID.String()) {
		t.Errorf("the list of those that need an operator is %s", listed.out)
	}
	if shown := m.run(command.ExitAction, "workflow", "show", b.ID.String()); !strings.Contains(shown.err, "workflow retry") || !strings.Contains(shown.err, "workflow resolve") {
		t.Errorf("it does not say how to go on: %s", shown.err)
	}
	if inbox := m.run(command.ExitOK, "inbox"); !strings.Contains(inbox.out, "workflow show") {
		t.Errorf("the inbox is %s", inbox.out)
	}
	if done := m.run(command.ExitOK, "workflow", "resolve", b.ID.String(), "--abandon", "--note", "by hand"); !strings.Contains(done.out, "resolved") {
		t.Errorf("it is %s", done.out)
	}
}

func TestBatchSaysWhatIsWrongWhere(t *testing.T) {
	t.Parallel()
	m := newAPIFixture(t)
	m.tools()
	dir := t.TempDir()
	for name, test := range map[string]struct {
		text, want string
		code       int
	}{
		"a circle":            {`{"steps":[{"tool":"crm:send","inputs":{"a":"$1.x"}},{"tool":"crm:send","inputs":{"a":"$0.x"}}]}`, "/steps/0/inputs/a: the steps 0 → 1 → 0", command.ExitUsage},
		"irreversible":        {`{"atomic":true,"steps":[{"tool":"crm:send"}]}`, "/steps/0/tool: an atomic workflow takes only tools", command.ExitUsage},
		"no JSON":             {`steps`, "the file is not JSON", command.ExitUsage},
		"neither of both":     {`"steps"`, "must be an array of steps", command.ExitUsage},
		"no workflow of ours": {`{}`, "/steps: is required", command.ExitUsage},
	} {
		file := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := os.WriteFile(file, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := m.run(test.code, "workflow", "run", file); !strings.Contains(got.err, test.want) {
			t.Errorf("%s: it says %s", name, got.err)
		}
	}
	m.run(command.ExitUsage, "workflow", "show", "b-1")
	m.run(command.ExitUsage, "workflow", "list", "--state", "odd")
	m.run(command.ExitUsage, "workflow", "list", "--limit", "0")
	m.run(command.ExitUsage, "workflow", "resolve", "019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b")
	m.run(command.ExitUsage, "workflow", "frob")
}
