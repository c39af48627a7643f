package setup

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/insight/doctor"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
)

// consult runs the command against a database.
func consult(t *testing.T, url string, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = command.Execute(t.Context(), args, command.System{
		Out: &o, Err: &e, Getenv: func(name string) string { return map[string]string{command.DatabaseEnv: url}[name] },
	}, func(a *command.App) *cobra.Command { return Doctor(a) })
	return code, o.String(), e.String()
}

func TestDoctorSaysWhatToDo(t *testing.T) {
	t.Parallel()
	url := dbtest.URL(t)
	db, err := postgres.Open(t.Context(), postgres.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(t.Context(), "ALTER TABLE actions DISABLE ROW LEVEL SECURITY"); err != nil {
		t.Fatal(err)
	}

	code, out, errs := consult(t, url)

	if code != command.ExitFailed || !strings.Contains(errs, "need a fix") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	for _, text := range []string{
		"FAILED   row security           tenants see each other's rows of actions",
		"→ ALTER TABLE countersign_data.actions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;",
		"ok       grants ",
	} {
		if !strings.Contains(out, text) {
			t.Errorf("it does not say %q:\n%s", text, out)
		}
	}
}

func TestDoctorInJSON(t *testing.T) {
	t.Parallel()

	code, out, errs := consult(t, dbtest.EmptyURL(t), "--json")

	var got struct {
		Checks []doctor.Finding
		Failed int
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != command.ExitFailed || got.Failed == 0 || len(got.Checks) < 5 {
		t.Errorf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	if strings.Contains(out, "postgres://") {
		t.Error("it shows where the database is")
	}
}

// TestWarningsAloneAreNoFailure checks only the exit code.
func TestWarningsAloneAreNoFailure(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	a := &command.App{System: command.System{Out: &out}}

	err := showFindings(a, []doctor.Finding{
		{Check: doctor.CheckClock, Status: doctor.OK, Message: "fine"}, {Check: doctor.CheckPauses, Status: doctor.Warning, Message: "hm\x1b[2J", Fix: "look"},
	})

	want := "ok       clock                  fine\nWARNING  pauses                 hm\\u{001B}[2J\n                                → look\n"
	if err != nil || out.String() != want {
		t.Errorf("showFindings = %v and writes\n%swant\n%s", err, out.String(), want)
	}
}

func TestDoctorNeedsADatabase(t *testing.T) {
	t.Parallel()

	if code, _, errs := consult(t, ""); code != command.ExitUsage || !strings.Contains(errs, command.DatabaseEnv) {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if code, _, errs := consult(t, "postgres://ana:hunter2@127.0.0.1:1/none"); code != command.ExitFailed || !strings.Contains(errs, "does not answer") || strings.Contains(errs, "hunter2") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
