package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// suite is a run of runs, one fault after the other.
type suite struct {
	options
	stdout io.Writer
	dir    string
	log    *workersLog
	db     *database // of all faults that need none of their own
	// programs are the workers by whether their clocks can be skewed.
	programs map[bool]string

	all     []outcome
	skipped []omission
}

// omission is a fault that was left out, and why.
type omission struct{ fault, why string }

// try makes the faults and reports whether a property is broken.
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
	if s.log, err = openWorkersLog(filepath.Join(s.dir, "workers.log")); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.log.file.Close()) }()
	if s.db, err = openDatabase(ctx, o.url, o.private); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, s.db.close()) }()
	fmt.Fprintf(stdout, "PostgreSQL %s, %s; leases of %s so that recovery shows (30s in production)\n", s.db.version, machine(), o.plan.lease)
	defer s.report()
	for _, f := range o.faults {
		if why := f.lacks(o); why != "" {
			s.skipped = append(s.skipped, omission{f.name, why})
			continue
		}
		result, err := s.runFault(ctx, f)
		if err != nil {
			return false, fmt.Errorf("fault %s: %w", f.name, err)
		}
		s.all = append(s.all, result)
		broken = broken || result.broken()
	}
	return broken, nil
}

// one makes one fault.
func (s *suite) runFault(ctx context.Context, f fault) (_ outcome, err error) {
	t := &faultRun{plan: s.plan, fault: f, db: s.db, dir: s.dir, log: s.log, stdout: s.stdout}
	if t.n == 0 {
		t.n = f.n
	}
	if t.over == 0 {
		t.over = f.over
	}
	if t.program, err = s.program(ctx, f.skewed); err != nil {
		return outcome{}, err
	}
	if f.disk {
		if t.db, err = openSmallDatabase(ctx, s.private); err != nil {
			return outcome{}, err
		}
		defer func() { err = errors.Join(err, t.db.close()) }()
	}
	fmt.Fprintf(s.stdout, "\n%s: %s\n", f.name, f.about)
	result, err := t.run(ctx)
	if err != nil || s.out == "" {
		return result, err
	}
	return result, appendRecords(s.out, result.records(versions(s.db.version)))
}

// program is the worker to run, built when it is first asked for; empty for
// the one in this program.
func (s *suite) program(ctx context.Context, skewed bool) (string, error) {
	if s.worker == workerSelf {
		return "", nil
	}
	if s.worker != "" {
		return s.worker, nil
	}
	if s.programs[skewed] != "" {
		return s.programs[skewed], nil
	}
	var err error
	if skewed {
		s.programs[skewed], err = buildSkewed(ctx, s.dir)
	} else {
		s.programs[skewed], err = buildWorker(ctx, s.dir, "worker")
	}
	return s.programs[skewed], err
}

// report prints what came of it, below all the lines of progress.
func (s *suite) report() {
	for _, o := range s.all {
		o.print(s.stdout)
	}
	printTable(s.stdout, s.all, s.skipped)
}
