package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-dev/countersign/internal/cli"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/classify"
)

// TestTriageTrain trains on a few examples, twice, without a server.
func TestTriageTrain(t *testing.T) {
	t.Parallel()
	const small = "../triage/classify/testdata/small"
	dir := t.TempDir()
	run := func(args ...string) (int, string) {
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), append([]string{"triage"}, args...), command.System{Out: &out, Err: &errs, Getenv: func(string) string { return "" }})
		return code, out.String() + errs.String()
	}
	for name, row := range map[string]struct {
		args []string
		code int
	}{
		"train says where to":            {[]string{"train", "--training", small}, command.ExitUsage},
		"train needs a folder":           {[]string{"train", "--training", "none", "--out", filepath.Join(dir, "x")}, command.ExitUsage},
		"eval needs a folder":            {[]string{"eval", "--training", small, "--fixture", "none"}, command.ExitUsage},
		"a file is not a folder":         {[]string{"eval", "--corpus", small + "/mail.jsonl", "--training", small}, command.ExitUsage},
		"cross-validation divides":       {[]string{"eval", "--training", small, "--folds", "1"}, command.ExitUsage},
		"training takes no server":       {[]string{"train", "--training", small, "--languages", "", "--lures", "", "--out", filepath.Join(dir, "one"), "--sheet", filepath.Join(dir, "one.md")}, command.ExitOK},
		"training is the same each time": {[]string{"train", "--training", small, "--languages", "", "--lures", "", "--out", filepath.Join(dir, "two"), "--json"}, command.ExitOK},
	} {
		if code, said := run(row.args...); code != row.code {
			t.Errorf("%s: exit code %d, want %d: %s", name, code, row.code, said)
		}
	}

	one, err := os.ReadFile(filepath.Join(dir, "one"))
	if err != nil {
		t.Fatal(err)
	}
	two, err := os.ReadFile(filepath.Join(dir, "two"))
	if err != nil || !bytes.Equal(one, two) {
		t.Errorf("the same mail trained two different files (%v)", err)
	}
	model, err := classify.Open(one)
	if err != nil {
		t.Fatal(err)
	}
	if sheet, err := os.ReadFile(filepath.Join(dir, "one.md")); err != nil || !bytes.Contains(sheet, []byte(model.Digest())) {
		t.Errorf("the sheet does not name the digest (%v)", err)
	}
}
