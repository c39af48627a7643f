package main

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// names are the programs of the image, at /NAME.
func names() []string { return []string{"api", "countersign", "triage", "worker"} }

// programs are built binaries, and their build information.
type programs struct {
	dir                  string
	system, architecture string
	info                 map[string]*buildinfo.BuildInfo
	version, revision    string
	// committed is the time of the commit, or zero.
	committed time.Time
}

// buildPrograms builds the committed files, since only those have a version: in a
// copy, because Go finds no version in a git worktree, and other files in the
// folder must not be in the image. A folder without git is built unchanged, and
// has the version devel.
func buildPrograms(ctx context.Context, root, scratch, system, architecture string) (programs, error) {
	p := programs{dir: filepath.Join(scratch, "bin"), system: system, architecture: architecture, info: make(map[string]*buildinfo.BuildInfo)}
	from, err := filepath.Abs(root)
	if err != nil {
		return p, err
	}
	if commit, err := command(ctx, from, nil, "git", "rev-parse", "HEAD"); err == nil {
		copied := filepath.Join(scratch, "source")
		if _, err := command(ctx, from, nil, "git", "clone", "--quiet", "--shared", "--no-checkout", from, copied); err != nil {
			return p, err
		}
		if _, err := command(ctx, copied, nil, "git", "checkout", "--quiet", "--detach", commit); err != nil {
			return p, err
		}
		from = copied
	}
	arguments := []string{"build", "-trimpath", "-buildvcs=auto", "-ldflags=-s -w", "-o", p.dir + string(filepath.Separator)}
	for _, name := range names() {
		arguments = append(arguments, "./cmd/"+name)
	}
	environ := []string{"CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off", "GOOS=" + system, "GOARCH=" + architecture}
	if _, err := command(ctx, from, environ, "go", arguments...); err != nil {
		return p, err
	}
	for _, name := range names() {
		if p.info[name], err = buildinfo.ReadFile(filepath.Join(p.dir, name)); err != nil {
			return p, fmt.Errorf("build information of %s: %w", name, err)
		}
	}
	return p, p.describe()
}

// describe reads the build information of the binaries, as the programs
// themselves do for their version.
func (p *programs) describe() (err error) {
	info := p.info[names()[0]]
	if p.version = info.Main.Version; p.version == "" || p.version == "(devel)" {
		p.version = "devel"
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			p.revision = setting.Value
		case "vcs.time":
			p.committed, err = time.Parse(time.RFC3339, setting.Value)
		}
	}
	return err
}

// command runs a program in a folder and returns the first line of its output.
func command(ctx context.Context, dir string, environ []string, name string, args ...string) (string, error) {
	run := exec.CommandContext(ctx, name, args...)
	run.Dir, run.Env = dir, append(os.Environ(), environ...)
	var errs strings.Builder
	run.Stderr = &errs
	out, err := run.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, args[0], err, errs.String())
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line, nil
}
