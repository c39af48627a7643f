package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// composeDir has compose.yaml.
var composeDir = filepath.Join("..", "compose")

// composed copies the deployment, with secrets of its own, and changes its
// compose.yaml; old is replaced with new.
func composed(t *testing.T, old, new string) (*types.Project, error) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"compose.yaml", "logins.sh", "secrets.sh"} {
		text, err := os.ReadFile(filepath.Join(composeDir, name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "compose.yaml" && old != "" {
			if !strings.Contains(string(text), old) {
				t.Fatalf("compose.yaml has no %q", old)
			}
			text = []byte(strings.Replace(string(text), old, new, 1))
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "secrets.sh")).CombinedOutput(); err != nil {
		t.Fatalf("secrets.sh: %v\n%s", err, out)
	}
	options, err := cli.NewProjectOptions([]string{filepath.Join(dir, "compose.yaml")}, cli.WithWorkingDirectory(dir), cli.WithProfiles([]string{"triage"}))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

// programsOf are the services of the image.
func programsOf(project *types.Project) map[string]types.ServiceConfig {
	all := maps.Clone(map[string]types.ServiceConfig(project.Services))
	delete(all, "postgres")
	return all
}

// wrongWith returns the problems of a deployment.
func wrongWith(ctx context.Context, project *types.Project, rootfs string) (wrong []string) {
	names := slices.Sorted(maps.Keys(programsOf(project)))
	if !slices.Equal(names, []string{"api", "migrate", "triage", "worker"}) {
		wrong = append(wrong, fmt.Sprintf("the programs are %q", names))
	}
	for name, s := range programsOf(project) {
		if s.User != "65532:65532" || !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || s.Privileged || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			wrong = append(wrong, name+" may do more than it needs")
		}
		if _, ok := s.Networks["database"]; !ok || s.MemLimit == 0 || s.DependsOn["postgres"].Condition != types.ServiceConditionHealthy {
			wrong = append(wrong, name+" lacks the database, its network, or a limit of memory")
		}
		wrong = append(wrong, starts(ctx, name, s, rootfs)...)
	}
	least := map[string]time.Duration{"api": 5*time.Second + 20*time.Second, "worker": 10 * time.Second}
	if grace := project.Services["worker"].Environment["COUNTERSIGN_GRACE"]; grace != nil {
		d, err := time.ParseDuration(*grace)
		if err != nil {
			wrong = append(wrong, err.Error())
		}
		least["worker"] += d
	}
	for name, d := range least {
		if of := project.Services[name].StopGracePeriod; of == nil || time.Duration(*of) < d {
			wrong = append(wrong, fmt.Sprintf("%s is killed before it has ended, which takes %s", name, d))
		}
	}
	if len(project.Services["postgres"].Ports) > 0 || !bool(project.Networks["database"].Internal) {
		wrong = append(wrong, "PostgreSQL can be reached from elsewhere")
	}
	return wrong
}

// starts runs a program of the image with its environment. If the configuration
// is valid, the program exits with the status of an unreachable database, since
// there is none; otherwise with that of wrong use.
func starts(ctx context.Context, name string, s types.ServiceConfig, rootfs string) (wrong []string) {
	program := exec.CommandContext(ctx, filepath.Join(rootfs, s.Entrypoint[0]), s.Entrypoint[1:]...)
	program.Env = []string{}
	for variable, value := range s.Environment {
		if value == nil {
			wrong = append(wrong, fmt.Sprintf("%s: %s has no value", name, variable))
			continue
		}
		program.Env = append(program.Env, variable+"="+strings.ReplaceAll(*value, "@postgres:5432/", "@127.0.0.1:1/"))
	}
	help, err := exec.CommandContext(ctx, filepath.Join(rootfs, s.Entrypoint[0]), append(slices.Clone(s.Entrypoint[1:]), "--help")...).Output()
	if err != nil {
		wrong = append(wrong, fmt.Sprintf("%s --help: %v", name, err))
	}
	for variable := range s.Environment {
		if variable != "GOMEMLIMIT" && !regexp.MustCompile(`\b`+variable+`\b`).Match(help) {
			wrong = append(wrong, fmt.Sprintf("%s: its --help does not name %s", name, variable))
		}
	}
	var out bytes.Buffer
	program.Stdout, program.Stderr = &out, &out
	exit, ok := errors.AsType[*exec.ExitError](program.Run())
	if !ok || exit.ExitCode() != 1 || !regexp.MustCompile(`does not answer|connection refused|failed to connect`).Match(out.Bytes()) {
		wrong = append(wrong, fmt.Sprintf("%s does not come to its database: %v\n%s", name, exit, out.Bytes()))
	}
	return wrong
}

// composition is a subtest of TestImage: it needs the programs.
func composition(t *testing.T, f fixture) {
	for name, change := range map[string]struct{ old, new string }{
		"as it is":               {},
		"a misspelt key":         {"stop_grace_period: 75s", "stop_grace_periode: 75s"},
		"an unknown variable":    {"COUNTERSIGN_GRACE: 45s", "COUNTERSIGN_GRACEFUL: 45s"},
		"another's variable":     {"COUNTERSIGN_GRACE: 45s", "COUNTERSIGN_LINGER: 45s"},
		"an invalid value":       {"COUNTERSIGN_GRACE: 45s", "COUNTERSIGN_GRACE: soon"},
		"a grace that is longer": {"COUNTERSIGN_GRACE: 45s", "COUNTERSIGN_GRACE: 70s"},
		"an end that is early":   {"stop_grace_period: 30s", "stop_grace_period: 10s"},
		"another's secrets":      {"secrets/worker.env", "secrets/missing.env"},
		"no secrets":             {"    env_file: [secrets/api.env]\n", ""},
		"a writable root":        {"read_only: true", "read_only: false"},
		"root":                   {`user: "65532:65532"`, `user: "0:0"`},
		"capabilities":           {"cap_drop: [ALL]", "cap_drop: [CHOWN]"},
		"an open database":       {"internal: true", "internal: false"},
		"another program":        {"entrypoint: [/worker]", "entrypoint: [/api]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			project, err := composed(t, change.old, change.new)
			var wrong []string
			if err == nil {
				wrong = wrongWith(t.Context(), project, f.rootfs)
			}

			switch {
			case change.old == "" && (err != nil || len(wrong) > 0):
				t.Errorf("%v, %s", err, strings.Join(wrong, "\n"))
			case change.old != "" && err == nil && len(wrong) == 0:
				t.Errorf("with %q nothing is wrong", change.new)
			}
		})
	}
}

// TestComposeHasTheReleasedImage holds both deployments to one name and version.
func TestComposeHasTheReleasedImage(t *testing.T) {
	t.Parallel()
	project, err := composed(t, "", "")
	if err != nil {
		t.Fatal(err)
	}
	release, err := os.ReadFile(filepath.Join("..", "k8s", "release", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^  - name: (\S+)\n    newTag: (\S+)$`).FindSubmatch(release)
	if found == nil {
		t.Fatal("the release names no image")
	}

	for name, s := range programsOf(project) {
		if want := string(found[1]) + ":" + string(found[2]); s.Image != want {
			t.Errorf("%s is of %s, and Kubernetes runs %s", name, s.Image, want)
		}
	}
}

func TestSecretsAreDrawnOnce(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs(filepath.Join(composeDir, "secrets.sh"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "secrets")
	if out, err := exec.CommandContext(t.Context(), script, dir).CombinedOutput(); err != nil {
		t.Fatalf("secrets.sh: %v\n%s", err, out)
	}

	if err := exec.CommandContext(t.Context(), script, dir).Run(); err == nil {
		t.Error("a second run draws them again")
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v, want it to be its owner's alone", info.Mode(), err)
	}
	logins, err := os.ReadFile(filepath.Join(dir, "logins.sql"))
	if err != nil {
		t.Fatal(err)
	}
	passwords := make(map[string]bool)
	for _, name := range []string{"migrate", "api", "worker", "triage"} {
		text, err := os.ReadFile(filepath.Join(dir, name+".env"))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`DATABASE_URL=postgres://(cs_[a-z]+):([0-9a-f]{48})@`).FindSubmatch(text)
		if found == nil || !strings.Contains(string(logins), "CREATE ROLE "+string(found[1])+" LOGIN PASSWORD '"+string(found[2])+"'") {
			t.Fatalf("the login of %s is not made", name)
		}
		passwords[string(found[2])] = true
	}
	if len(passwords) != 4 {
		t.Errorf("%d passwords, want one for each program", len(passwords))
	}
}
