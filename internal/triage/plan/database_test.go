package plan_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// TestDatabaseHasTheSameRules compares the rules with those for the
// arguments of a proposal in the latest migration.
func TestDatabaseHasTheSameRules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../db/migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	body := ""
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, after, found := strings.Cut(string(raw), "FUNCTION triage_args_allowed(tool"); found {
			body, _, _ = strings.Cut(after, "-- +goose StatementEnd")
		}
	}

	var got []plan.Rule
	for _, row := range regexp.MustCompile(`\('\{([^}]*)\}'(?:::text\[\])?, '(/[^']*)', '\{([^}]*)\}'`).FindAllStringSubmatch(body, -1) {
		rule := plan.Rule{Pattern: row[2]}
		for tool := range strings.SplitSeq(row[1], ",") {
			rule.Tools = append(rule.Tools, plan.Tool(tool))
		}
		for origin := range strings.SplitSeq(row[3], ",") {
			rule.Origins = append(rule.Origins, plan.Origin(origin))
		}
		got = append(got, rule)
	}

	if diff := cmp.Diff(plan.Rules(), got); diff != "" {
		t.Errorf("the database takes other places or origins (-code +database):\n%s", diff)
	}
}
