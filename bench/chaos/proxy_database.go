package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	lineDelay, lineJitter = 200 * time.Millisecond, 50 * time.Millisecond
	// databaseRate is a slow connection to the database, in kilobytes a second, and
	// slowRead what is read over it to see that it is.
	databaseRate = 32
	slowRead     = 32 << 10
	// cuts is how often connections are cut, cutPause the time between.
	cuts     = 5
	cutPause = 1500 * time.Millisecond
	// databaseSilence is longer than a worker waits for the database.
	databaseSilence = 14 * time.Second
	// impaired is how long the network is disturbed that still works, and probePause the
	// time between two looks at it.
	impaired   = 10 * time.Second
	probePause = 500 * time.Millisecond
	// probeTimeout is when the network counts as silent.
	probeTimeout = 2 * time.Second
)

// The signs that the network to the database was bad.
const (
	feltCut     = "connections cut"
	feltSilence = "operations timed out"
	feltDelay   = "late answers"
	feltSlow    = "slow reads"
)

func databaseNetworkFaults() []fault {
	return []fault{
		{
			name: "db-cut", about: fmt.Sprintf("between workers and PostgreSQL, every connection is reset, %d times", cuts),
			n: 1500, over: 9 * time.Second, line: placeDatabase,
			inject: cutDatabase, wantSigns: []string{feltCut}, codes: []string{workerLost}, most: perOutage,
		},
		{
			name: "db-drop", about: fmt.Sprintf("between workers and PostgreSQL, nothing comes through for %s, and nobody is told", databaseSilence),
			n: 1500, over: 18 * time.Second, line: placeDatabase,
			inject: silenceDatabase, wantSigns: []string{feltSilence}, codes: []string{workerLost}, most: perOutage,
		},
		{
			name: "db-delay", about: fmt.Sprintf("between workers and PostgreSQL, every answer comes %s (± %s) late", lineDelay, lineJitter),
			n: 500, over: 9 * time.Second, line: placeDatabase,
			inject: func(ctx context.Context, t *faultRun) error {
				return t.impairDatabase(ctx, delayed(lineDelay, lineJitter), feltDelay, "SELECT 1", lineDelay-lineJitter)
			},
			wantSigns: []string{feltDelay}, most: noneUnknown,
		},
		{
			name: "db-slow", about: fmt.Sprintf("between workers and PostgreSQL, answers come at %d kB/s on each connection", databaseRate),
			n: 500, over: 9 * time.Second, line: placeDatabase,
			inject: func(ctx context.Context, t *faultRun) error {
				read := fmt.Sprintf("SELECT repeat('x', %d)", slowRead)
				return t.impairDatabase(ctx, slow(databaseRate), feltSlow, read, slowRead*time.Second/(databaseRate*1000)/2)
			},
			wantSigns: []string{feltSlow}, most: noneUnknown,
		},
	}
}

// cutDatabase resets the connections of all workers, and counts the sessions
// that this ended.
func cutDatabase(ctx context.Context, t *faultRun) error {
	for range cuts {
		if !pause(ctx, cutPause) {
			return ctx.Err()
		}
		before, err := t.store.sessions(ctx)
		if err != nil {
			return err
		}
		if err := t.during(byLine, t.proxy.cut); err != nil {
			return err
		}
		if !pause(ctx, pollInterval) {
			return ctx.Err()
		}
		if err := t.addEndedSessions(ctx, feltCut, before); err != nil {
			return err
		}
	}
	return nil
}

// silenceDatabase counts what workers gave up during the silence.
func silenceDatabase(ctx context.Context, t *faultRun) error {
	if !pause(ctx, cutPause) {
		return ctx.Err()
	}
	return t.during(byLine, func() error {
		return t.proxy.withToxics(ctx, silence(), func() error {
			if took, err := t.probe(ctx, "SELECT 1", probeTimeout); err == nil {
				return fmt.Errorf("the line is not silent: an answer came after %s", took)
			}
			if !pause(ctx, databaseSilence-probeTimeout) {
				return ctx.Err()
			}
			for _, msg := range []string{"worker waits for the database", "leases were not renewed"} {
				n, err := t.log.count(msg)
				if err != nil {
					return err
				}
				t.addSign(feltSilence, n)
			}
			return nil
		})
	})
}

// addEndedSessions counts which sessions are there no more.
func (t *faultRun) addEndedSessions(ctx context.Context, sign string, before map[int32]bool) error {
	now, err := t.store.sessions(ctx)
	if err != nil {
		return err
	}
	for pid := range before {
		if !now[pid] {
			t.addSign(sign, 1)
		}
	}
	return nil
}

// impairDatabase disturbs the network for a while, and times a query over it again
// and again.
func (t *faultRun) impairDatabase(ctx context.Context, toxics []toxic, sign, query string, least time.Duration) error {
	if !pause(ctx, cutPause) {
		return ctx.Err()
	}
	return t.during(byLine, func() error {
		return t.proxy.withToxics(ctx, toxics, func() error {
			for end := time.Now().Add(impaired); time.Now().Before(end); {
				took, err := t.probe(ctx, query, 10*probeTimeout)
				if err != nil {
					return err
				}
				if took >= least {
					t.addSign(sign, 1)
				}
				if !pause(ctx, probePause) {
					return ctx.Err()
				}
			}
			return nil
		})
	})
}

// probe says how long a query takes through the workers' proxy.
func (t *faultRun) probe(ctx context.Context, query string, limit time.Duration) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := pgx.Connect(ctx, t.workersURL())
	if err != nil {
		return 0, errors.New("the database cannot be reached through the proxy") // the cause may quote the URL
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	began := time.Now()
	rows, err := conn.Query(ctx, query, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return 0, fmt.Errorf("ask over the line: %w", err)
	}
	rows.Close()
	return time.Since(began), rows.Err()
}

// workersURL is where the workers find the database.
func (t *faultRun) workersURL() string {
	if t.fault.line != placeDatabase {
		return t.db.url
	}
	u, err := url.Parse(t.db.url)
	if err != nil {
		return t.db.url // not of the form that can be changed; the run began with a proxy to its host
	}
	u.Host = t.proxy.address()
	return u.String()
}
