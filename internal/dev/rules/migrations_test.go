package rules_test

import (
	"io/fs"
	"path"
	"testing"
)

// TestMigrationsHaveNumbersOfTheirOwn checks that no two migrations have one number: with
// two, no database can be migrated.
func TestMigrationsHaveNumbersOfTheirOwn(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(root(), "db/migrations/*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("Glob() = %q, %v, want migrations", names, err)
	}
	known := make(map[string]string)
	for _, name := range names {
		number := path.Base(name)[:5]
		if other, ok := known[number]; ok {
			t.Errorf("%s and %s have one number; give the later one the next free number", other, name)
		}
		known[number] = name
	}
}
