package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// sampled is a program whose samples are compared, and the kind of its worker.
type sampled struct{ name, program, kind string }

// measureCPU compares the cost of an action in this build with that of a job in
// River, or of an action of another -kind or in another build, in -pairs pairs. Each sample has its
// own process and database, and the first of a pair is the second of the next.
// Other work on the machine makes a sample take longer, which is not measured,
// and its caches colder, which both samples of a pair share.
func measureCPU(ctx context.Context, s *suite) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ours, other := sampled{"ours", self, s.kind}, sampled{"river", self, "river"}
	if s.kind != "ours" {
		other = sampled{"without", self, "ours"}
	}
	if s.against != "" {
		dir, err := os.MkdirTemp("", "countersign-bench")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }() // in the folder for temporary files
		other = sampled{s.against, filepath.Join(dir, "bench"), s.kind}
		if err := buildOther(ctx, s.against, dir, other.program); err != nil {
			return err
		}
	}
	restore, err := s.withoutAutovacuum(ctx)
	if err != nil {
		return err
	}
	defer restore()
	var pairs [][2]costs
	for n := range s.pairs {
		var pair [2]costs
		for step := range 2 {
			at := (n + step) % 2
			if pair[at], err = s.sample(ctx, [2]sampled{ours, other}[at]); err != nil {
				return err
			}
		}
		pairs = append(pairs, pair)
		s.rep.note("pair %d: Go and PostgreSQL, ours %s, %s %s", n+1, pair[0], other.name, pair[1])
	}
	return s.reportPairs(other.name, pairs)
}

// String returns the processor time of a sample.
func (c costs) String() string {
	return fmt.Sprintf("%.1f + %.1f µs to submit, %.1f + %.1f to work",
		c.Submit.GoCPU, c.Submit.PostgresCPU, c.Work.GoCPU, c.Work.PostgresCPU)
}

// sample runs a program on an empty database.
func (s *suite) sample(ctx context.Context, of sampled) (taken costs, err error) {
	url, drop, err := s.srv.fresh(ctx)
	if err != nil {
		return taken, err
	}
	defer drop()
	cmd := exec.CommandContext(ctx, of.program)
	cmd.Env = append(os.Environ(), workerEnv+"="+of.kind, urlEnv+"="+url, sampleEnv+"="+strconv.Itoa(s.n))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &taken)
	}
	if err != nil {
		return taken, fmt.Errorf("sample of %s: %w", of.name, err)
	}
	return taken, nil
}

// withoutAutovacuum switches autovacuum off on a private server: it runs by the
// clock, in any sample.
func (s *suite) withoutAutovacuum(ctx context.Context) (restore func(), err error) {
	if s.srv.private == nil {
		return func() {}, nil
	}
	set := func(ctx context.Context, statement string) error {
		return s.srv.exec(ctx, func(conn *pgx.Conn) error {
			_, err := conn.Exec(ctx, statement)
			if err == nil {
				_, err = conn.Exec(ctx, "SELECT pg_reload_conf()")
			}
			return err
		})
	}
	return func() { _ = set(context.WithoutCancel(ctx), "ALTER SYSTEM RESET autovacuum") }, // the server ends with the run
		set(ctx, "ALTER SYSTEM SET autovacuum = off")
}

// buildOther builds the benchmarks of another build, which is a folder with a
// checkout or a revision of git.
func buildOther(ctx context.Context, other, dir, program string) (err error) {
	run := func(in, name string, args ...string) error {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Dir = in
		out, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(out))
		}
		return nil
	}
	source := other
	if info, err := os.Stat(other); err != nil || !info.IsDir() {
		source = filepath.Join(dir, "source")
		if err := run(".", "git", "worktree", "add", "--detach", source, other); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, run(".", "git", "worktree", "remove", "--force", source)) }()
	}
	if _, err := os.Stat(filepath.Join(source, "bench", "sample.go")); err != nil {
		return fmt.Errorf("%s cannot be sampled: %w", other, err)
	}
	return run(filepath.Join(source, "bench"), "go", "build", "-o", program, ".")
}

// measurement is a figure of a sample.
type measurement struct {
	name, unit string
	of         func(cost) float64
	// budget reports whether -most bounds it.
	budget bool
}

// measurements are the figures of a sample, in order.
func measurements() []measurement {
	return []measurement{
		{"processor time of Go", "µs", func(u cost) float64 { return u.GoCPU }, false},
		{"processor time of PostgreSQL", "µs", func(u cost) float64 { return u.PostgresCPU }, false},
		{"processor time of both", "µs", func(u cost) float64 { return u.GoCPU + u.PostgresCPU }, true},
		{"WAL", "bytes", func(u cost) float64 { return u.WAL }, false},
		{"row versions", "", func(u cost) float64 { return u.Rows }, false},
		{"allocations", "", func(u cost) float64 { return u.Allocations }, false},
		{"allocated", "bytes", func(u cost) float64 { return u.Allocated }, false},
	}
}

// reportPairs reports the medians, and the ratio of a pair with its interval. It fails if
// the processor time of an action has a ratio above -most.
func (s *suite) reportPairs(other string, pairs [][2]costs) error {
	var over []error
	fmt.Printf("\n%-40s %10s %10s   ratio, 95 %% interval\n", "an action", "ours", other)
	for _, part := range []struct {
		name string
		of   func(costs) cost
	}{{"submit", func(c costs) cost { return c.Submit }}, {"work", func(c costs) cost { return c.Work }}} {
		for _, m := range measurements() {
			var ours, others, ratios []float64
			for _, pair := range pairs {
				a, b := m.of(part.of(pair[0])), m.of(part.of(pair[1]))
				if b > 0 {
					ours, others, ratios = append(ours, a), append(others, b), append(ratios, a/b)
				}
			}
			if len(ratios) < minPairs {
				continue // River writes no rows twice, and processes elsewhere cannot be seen
			}
			mid, low, high := interval(ratios)
			res := result{
				Name: part.name + ", " + m.name, Ours: median(ours), Peer: median(others), Ratio: mid, Unit: m.unit, Rounds: len(pairs),
				Low: low, High: high, Against: other,
			}
			name := strings.TrimSuffix(res.Name+", "+m.unit, ", ")
			fmt.Printf("%-40s %10.1f %10.1f   %.3f  %.3f–%.3f  %s\n", name, res.Ours, res.Peer, mid, low, high, change(low, high))
			s.rep.write(res)
			if m.budget && s.most > 0 && mid > s.most {
				over = append(over, fmt.Errorf("%s of %s: %.3f times that of %s, more than %.2f", m.name, part.name, mid, other, s.most))
			}
		}
	}
	return errors.Join(over...)
}

// change returns the meaning of a ratio's interval.
func change(low, high float64) string {
	switch {
	case high < 1:
		return "less"
	case low > 1:
		return "more"
	}
	return "no difference shown"
}
