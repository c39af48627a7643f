package dev_test

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// nix returns the path of nix-instantiate, or skips the test.
func nix(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("nix-instantiate")
	if err != nil {
		t.Skip("no nix-instantiate is installed: scripts/servers.sh installs it")
	}
	return path
}

// TestNixModule evaluates the module, and reads its file as an account.
func TestNixModule(t *testing.T) {
	t.Parallel()
	program, dir := nix(t), filepath.Join("..", "..", "deploy", "nix")
	if out, err := exec.CommandContext(t.Context(), program, "--parse", filepath.Join(dir, "module.nix")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	test, err := filepath.Abs(filepath.Join(dir, "testdata", "eval.nix"))
	if err != nil {
		t.Fatal(err)
	}
	eval := func(values string, home string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, "--store", "dummy://", "--eval", "--strict", "--json", "-E", "import "+test+" { home = "+home+"; values = "+values+"; }")
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		return string(out) + errs.String(), err
	}
	const whole = `{
		enable = true;
		maxActionsPerSync = 3;
		account = { kind = "maildir"; connection.path = "/srv/mail"; proposals = { source = "mail"; account = "ann"; }; };
		actions."save-receipt" = { description = "Save receipt"; gateway.server = "expenses"; gateway.tool = "add_expense"; prompt = "The shop."; defaultArgs = { project = "Home"; amount = 12; draft = true; tags = [ "a" ]; }; };
		actions."flag-important" = { gateway.server = "mail"; gateway.tool = "send_email"; };
	}`

	for home, at := range map[string][]string{"false": {"environment", "etc"}, "true": {"xdg", "configFile"}} {
		out, err := eval(whole, home)
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var config map[string]map[string]map[string]struct{ Text string }
		if err := json.NewDecoder(strings.NewReader(out)).Decode(&config); err != nil {
			t.Fatal(err)
		}
		file := config[at[0]][at[1]]["countersign/triage.json"].Text
		dec := json.NewDecoder(strings.NewReader(file))
		dec.DisallowUnknownFields()
		var in wire.TriageAccountInput
		if err := dec.Decode(&in); err != nil {
			t.Fatalf("%v: %s", err, file)
		}
		want := map[string]wire.TriageActionDefinition{
			"save-receipt": {Description: "Save receipt", Source: "expenses", Tool: "add_expense", Prompt: "The shop.", DefaultArgs: map[string]json.RawMessage{
				"project": json.RawMessage(`"Home"`), "amount": json.RawMessage("12"), "draft": json.RawMessage("true"), "tags": json.RawMessage(`["a"]`),
			}},
			"flag-important": {Source: "mail", Tool: "send_email"},
		}
		if diff := cmp.Diff(want, in.Proposals.Actions); diff != "" || in.Kind != "maildir" || in.Proposals.MaxActions != 3 {
			t.Errorf("account = %s (-want +got):\n%s", file, diff)
		}
		raw, err := json.Marshal(in.Proposals)
		if err != nil {
			t.Fatal(err)
		}
		var checked plan.Config
		if err := json.Unmarshal(raw, &checked); err != nil || checked.Check() != nil {
			t.Errorf("the proposals are invalid: %v, %v", err, checked.Check())
		}
	}
	for values, want := range map[string]string{
		`{ enable = false; }`: "{}",
		`{ enable = true; actions.a = { gateway.server = "x"; }; }`:                                    "tool has no value",
		`{ enable = true; actions.a = { gateway.server = "x"; gateway.tool = "y"; danger = true; }; }`: "no option danger",
		`{ enable = true; actions.a = { gateway.server = 1; gateway.tool = "y"; }; }`:                  "is not a text",
		`{ enable = true; maxActionsPerSync = 0; }`:                                                    "is not a number of the range",
	} {
		if out, _ := eval(values, "false"); !strings.Contains(out, want) {
			t.Errorf("%s = %s, want %q", values, out, want)
		}
	}
}
