package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		answer  string
		version string
		major   int
		ok      bool
	}{
		"Debian":   {"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n", "15.18", 15, true},
		"plain":    {"postgres (PostgreSQL) 18.4\n", "18.4", 18, true},
		"beta":     {"postgres (PostgreSQL) 19beta2\n", "19beta2", 19, true},
		"old":      {"postgres (PostgreSQL) 9.6.24\n", "9.6.24", 9, true},
		"empty":    {"", "", 0, false},
		"cut off":  {"postgres (PostgreSQL) \n", "", 0, false},
		"unstable": {"postgres (PostgreSQL) devel\n", "", 0, false},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			version, major, err := parseVersion(row.answer)

			if version != row.version || major != row.major || (err == nil) != row.ok {
				t.Errorf("parseVersion(%q) = %q, %d, %v, want %q, %d, ok %t",
					row.answer, version, major, err, row.version, row.major, row.ok)
			}
		})
	}
}

func FuzzParseVersion(f *testing.F) {
	f.Add("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n")
	f.Add("postgres (PostgreSQL) 99999999999999999999")
	f.Fuzz(func(t *testing.T, answer string) {
		version, major, err := parseVersion(answer)
		if err == nil && (version == "" || major < 0 || !strings.Contains(answer, version)) {
			t.Errorf("parseVersion(%q) = %q, %d, nil", answer, version, major)
		}
	})
}

func TestGlobNewest(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, version := range []string{"15", "18", "16"} {
		if err := os.MkdirAll(filepath.Join(root, "postgresql@"+version, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
	}

	got := globNewest(filepath.Join(root, "postgresql@*", "bin"))

	var want []string
	for _, version := range []string{"18", "16", "15"} {
		want = append(want, filepath.Join(root, "postgresql@"+version, "bin"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("globNewest() (-want +got):\n%s", diff)
	}
}

// program writes a shell script that replaces a server's program, in a folder
// that an unprivileged account may enter.
func program(t *testing.T, versionLine string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "countersign-embedded-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "initdb"} {
		script := "#!/bin/sh\necho '" + versionLine + "'\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestInspect(t *testing.T) {
	t.Parallel()
	acc, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]struct{ answer, want string }{
		"new enough":      {"postgres (PostgreSQL) 15.1", ""},
		"too old":         {"postgres (PostgreSQL) 14.9", "15 is the oldest supported version"},
		"something else":  {"hello", "answered"},
		"an empty answer": {"", "answered"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := program(t, row.answer)

			bin, err := inspect(t.Context(), dir, acc)

			switch {
			case row.want == "" && (err != nil || bin.dir != dir):
				t.Errorf("inspect() = %+v, %v, want the folder %s", bin, err, dir)
			case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
				t.Errorf("inspect() = %v, want an error with %q", err, row.want)
			}
		})
	}
}

func TestLocateUsesTheVariable(t *testing.T) {
	dir := program(t, "postgres (PostgreSQL) 99.1")
	t.Setenv(binEnv, dir)
	acc, err := serverAccount()
	if err != nil {
		t.Fatal(err)
	}

	got, err := locate(t.Context(), Config{}, acc, nil)

	if got.dir != dir || err != nil {
		t.Errorf("locate() = %q, %v, want %q, nil", got.dir, err, dir)
	}
}

func TestNotFoundNamesTheRemedies(t *testing.T) {
	t.Parallel()
	cause := errors.New("no network")

	err := notFound([]error{errors.New("not used: /old holds PostgreSQL 9.6"), cause})

	for _, want := range []string{"apt-get install", binEnv, "DATABASE_URL", "/old holds", "no network"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("notFound() = %q, want %q in it", err, want)
		}
	}
	if !errors.Is(err, cause) {
		t.Error("errors.Is(err, cause) = false, want true")
	}
}
