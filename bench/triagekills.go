package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/bench/mailbox"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/mail/dovecottest"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/triage/account"
)

const (
	// killedMessages bounds the messages of a backfill that is interrupted, kills
	// is the number of times that its process is killed, and cuts the number of
	// times that it loses its connections.
	killedMessages = 5000
	kills          = 10
	cuts           = 2
	// pauses is the number of times that another backfill is paused, and pauseEffect
	// the longest time until a pause may take effect.
	pauses      = 10
	pauseEffect = 5 * time.Second
)

// measureTriageKills has triage read the same mail twice, from a Maildir and from
// Dovecot. In each backfill its process is killed ten times at random moments and
// loses its connections to the database twice. A third backfill is paused ten times.
func measureTriageKills(ctx context.Context, s *suite) error {
	n := min(s.n, killedMessages)
	err := s.triage(ctx, func(y *triage) error {
		dir, sent, err := y.maildir(n)
		if err != nil {
			return err
		}
		s.rep.note("Maildir, %d messages", n)
		return y.interrupted(ctx, account.Account{Kind: account.Maildir, Connection: account.Connection{Path: dir}}, n, sent)
	})
	if err != nil {
		return err
	}
	if err := s.triage(ctx, func(y *triage) error { return y.paused(ctx, n) }); err != nil {
		return err
	}
	server, err := dovecottest.Start()
	if errors.Is(err, dovecottest.ErrNotInstalled) {
		s.rep.note("left out: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() {
		server.Stop()
		_ = os.RemoveAll(server.Dir)
	}()
	return s.triage(ctx, func(y *triage) error {
		sent, err := deliver(server, n)
		if err != nil {
			return err
		}
		s.rep.note("Dovecot, %d messages", n)
		a := account.Account{Kind: account.IMAP, SecretFrom: "env:" + secretVariable}
		if a.Connection, err = connectionTo(server); err != nil {
			return err
		}
		return y.interrupted(ctx, a, n, sent)
	})
}

// interrupted reads an account to its end in spite of kills and cuts, and checks
// the result.
func (y *triage) interrupted(ctx context.Context, a account.Account, n, sent int) error {
	if err := y.put(ctx, a); err != nil {
		return err
	}
	began := time.Now()
	child, err := y.start()
	if err != nil {
		return err
	}
	defer func() { child.Kill() }()
	for i, at := range moments(n, kills+cuts) {
		if err := y.untilRead(ctx, child, at); err != nil {
			return err
		}
		// A chunk of fifty takes some tens of milliseconds: anywhere in it.
		if err := process.Wait(ctx, rand.N(80*time.Millisecond)); err != nil {
			return err
		}
		if i%6 == 5 {
			if _, err := y.h.pool.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'countersign-triage'"); err != nil {
				return err
			}
			continue
		}
		child.Kill()
		if child, err = y.start(); err != nil {
			return err
		}
	}
	if err := y.untilDone(ctx, child); err != nil {
		return err
	}
	if !child.Stop(process.StopGrace) {
		return errors.New("triage did not stop")
	}
	y.s.rep.note("%d kills and %d cuts, %s", kills, cuts, time.Since(began).Round(time.Second))
	return y.verify(ctx, n, sent)
}

// paused reads a Maildir to its end, and pauses and resumes triage at random moments.
// It measures the time from the commit of a pause to the end of the run, and counts
// the messages that are decided after the commit.
func (y *triage) paused(ctx context.Context, n int) error {
	dir, sent, err := y.maildir(n)
	if err != nil {
		return err
	}
	if err := y.put(ctx, account.Account{Kind: account.Maildir, Connection: account.Connection{Path: dir}}); err != nil {
		return err
	}
	child, err := y.start()
	if err != nil {
		return err
	}
	defer child.Kill()
	var took []float64
	most := 0
	for _, at := range moments(n, pauses) {
		if err := y.untilRead(ctx, child, at); err != nil {
			return err
		}
		if err := process.Wait(ctx, rand.N(80*time.Millisecond)); err != nil {
			return err
		}
		after, effect, err := y.pause(ctx, child)
		if err != nil {
			return err
		}
		if effect > pauseEffect {
			return fmt.Errorf("a pause took effect after %s, want at most %s", effect, pauseEffect)
		}
		took, most = append(took, effect.Seconds()*1000), max(most, after)
	}
	if err := y.untilDone(ctx, child); err != nil {
		return err
	}
	if !child.Stop(process.StopGrace) {
		return errors.New("triage did not stop")
	}
	y.s.rep.quantiles("effect of a pause", took)
	y.s.rep.note("%d pauses in a run of %d messages; the slowest ended it after %.0f ms, and at most %d messages were decided after a pause", pauses, n, slices.Max(took), most)
	return y.verify(ctx, n, sent)
}

// pause pauses triage until its run has ended, and resumes it. It returns the number
// of messages that were decided after the commit, and the time to the end of the run.
func (y *triage) pause(ctx context.Context, child *process.Child) (after int, effect time.Duration, err error) {
	const decided = "SELECT count(1) FROM triage_decisions"
	target := pause.Target{Scope: pause.Automation, Subject: pause.Triage}
	err = postgres.InTx(ctx, y.h.pool, postgres.API(y.h.tenant), func(tx pgx.Tx) error {
		_, err := pause.Set(ctx, tx, y.h.tenant, pause.Order{Target: target, Reason: "the benchmark", By: "bench"})
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	began := time.Now()
	var before, end int
	if err := y.h.pool.QueryRow(ctx, decided).Scan(&before); err != nil {
		return 0, 0, err
	}
	if err := y.until(ctx, child, "SELECT NOT EXISTS (SELECT FROM triage_schedules WHERE holder IS NOT NULL)"); err != nil {
		return 0, 0, err
	}
	effect = time.Since(began)
	if err := y.h.pool.QueryRow(ctx, decided).Scan(&end); err != nil {
		return 0, 0, err
	}
	return end - before, effect, postgres.InTx(ctx, y.h.pool, postgres.API(y.h.tenant), func(tx pgx.Tx) error {
		return pause.Lift(ctx, tx, y.h.tenant, target, "the benchmark", "bench")
	})
}

// moments returns numbers of read messages at which the backfill is interrupted.
func moments(n, times int) []int {
	at := make([]int, times)
	for i := range at {
		at[i] = rand.IntN(n * 9 / 10)
	}
	slices.Sort(at)
	return at
}

// untilRead waits until n messages were committed.
func (y *triage) untilRead(ctx context.Context, child *process.Child, n int) error {
	return y.until(ctx, child, "SELECT coalesce(sum(read), 0) >= $1 FROM triage_runs", n)
}

// untilDone waits until a run has found nothing more.
func (y *triage) untilDone(ctx context.Context, child *process.Child) error {
	return y.until(ctx, child, `SELECT EXISTS (SELECT 1 FROM triage_schedules s WHERE s.last_ended_at > s.last_started_at AND s.last_error IS NULL)
		AND NOT EXISTS (SELECT 1 FROM triage_folders f WHERE f.older_done_at IS NULL)`)
}

func (y *triage) until(ctx context.Context, child *process.Child, query string, args ...any) error {
	return process.Poll(ctx, 10*time.Millisecond, func() (is bool, err error) {
		select {
		case <-child.Ended():
			return false, fmt.Errorf("triage ended by itself: %v", child.State())
		default:
		}
		err = y.h.pool.QueryRow(ctx, query, args...).Scan(&is)
		return is, err
	})
}

const mailUser = "mara"

// connectionTo returns how triage reaches the server.
func connectionTo(server *dovecottest.Server) (account.Connection, error) {
	host, text, err := net.SplitHostPort(server.Address)
	if err != nil {
		return account.Connection{}, err
	}
	port, err := strconv.Atoi(text)
	return account.Connection{Host: host, Port: port, User: mailUser, Security: account.Plain}, err
}

// deliver delivers n generated messages to Dovecot and returns the number of
// those that the owner sent.
func deliver(server *dovecottest.Server, n int) (sent int, err error) {
	for i := range n {
		m := mailbox.Generate(seed, i)
		folder := "INBOX"
		if m.Sent {
			folder = "Sent"
			sent++
		}
		if err := server.Deliver(mailUser, folder, m.Raw); err != nil {
			return sent, err
		}
	}
	return sent, nil
}
