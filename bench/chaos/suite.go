package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/countersign-dev/countersign/bench/chaos/database"
	"github.com/countersign-dev/countersign/bench/chaos/program"
	"github.com/countersign-dev/countersign/bench/machine"
)

// suite runs one fault after the other.
type suite struct {
	options
	stdout io.Writer
	dir    string
	log    program.Log
	db     *database.Server // of all faults without a database of their own
	// programs are the worker programs, by whether their clocks are skewed.
	programs map[bool]string

	all     []outcome
	skipped []omission
}

// omission is a fault that was left out, and why.
type omission struct{ fault, why string }

// runSuite runs the faults and reports whether a property is violated.
func (o options) runSuite(ctx context.Context, stdout io.Writer) (broken bool, err error) {
	s := &suite{options: o, stdout: stdout, programs: make(map[bool]string)}
	if s.dir, err = os.MkdirTemp("", "chaos-"); err != nil {
		return false, err
	}
	defer func() {
		if broken || err != nil && ctx.Err() == nil {
			fmt.Fprintln(stdout, "the workers' log and the tool's journals are in", s.dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(s.dir))
	}()
	if s.log.File, err = os.OpenFile(filepath.Join(s.dir, "workers.log"), os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.log.File.Close()) }()
	if s.db, err = database.Open(ctx, o.url, o.private); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.db.Close()) }()
	fmt.Fprintf(stdout, "PostgreSQL %s, %s; leases of %s so that recovery shows (30s in production)\n", s.db.Version, machine.Describe(), o.plan.lease)
	defer s.report() // below all the lines of progress
	for _, f := range o.faults {
		if why := f.unavailable(o.url); why != "" {
			s.skipped = append(s.skipped, omission{f.name, why})
			continue
		}
		result, err := s.runFault(ctx, f)
		if err != nil {
			return false, fmt.Errorf("fault %s: %w", f.name, err)
		}
		s.all = append(s.all, result)
		broken = broken || len(result.broken()) > 0
	}
	return broken, nil
}

// runFault runs one fault.
func (s *suite) runFault(ctx context.Context, f fault) (_ outcome, err error) {
	t := &faultRun{plan: s.plan, fault: f, db: s.db, dir: s.dir, log: &s.log, stdout: s.stdout}
	t.n, t.over = cmp.Or(t.n, f.n), cmp.Or(t.over, f.over)
	if s.programs[f.skewed] == "" {
		if s.programs[f.skewed], err = program.Build(ctx, s.dir, f.skewed); err != nil {
			return outcome{}, err
		}
	}
	t.program = s.programs[f.skewed]
	if f.smallDisk {
		if t.db, err = database.OpenSmall(ctx, s.private); err != nil {
			return outcome{}, err
		}
		defer func() { err = errors.Join(err, t.db.Close()) }()
	}
	if f.standbys != noStandbys {
		if t.cluster, err = database.OpenCluster(ctx, s.private, f.standbys == synchronous); err != nil {
			return outcome{}, err
		}
		t.db = t.cluster.Server
		defer func() { err = errors.Join(err, t.cluster.Close()) }()
	}
	fmt.Fprintf(s.stdout, "\n%s: %s\n", f.name, f.about)
	result, err := t.run(ctx)
	if err != nil || s.out == "" {
		return result, err
	}
	return result, machine.AppendJSON(s.out, result.records(s.db.Version)...)
}
