package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/bench/mailbox"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// earlyMessages is the number of messages at which the memory is read first.
const earlyMessages = 10_000

// measureTriage runs the command triage on a generated Maildir of -n messages,
// after measuring the time of the rules and the embedded models alone.
func measureTriage(ctx context.Context, s *suite) error {
	if err := triageLatency(s); err != nil {
		return err
	}
	return s.triage(ctx, func(y *triage) error {
		dir, sent, err := y.maildir(s.n)
		if err != nil {
			return err
		}
		if err := y.put(ctx, account.Account{Kind: account.Maildir, Connection: account.Connection{Path: dir}}); err != nil {
			return err
		}
		server, err := y.serverTime(ctx)
		if err != nil {
			return err
		}
		began := time.Now()
		child, err := y.start("--once")
		if err != nil {
			return err
		}
		defer child.Kill()
		memory, err := y.watch(ctx, child)
		if err != nil {
			return err
		}
		took := time.Since(began)
		state := child.State()
		if !state.Success() {
			return fmt.Errorf("triage ended: %v", state)
		}
		after, err := y.serverTime(ctx)
		if err != nil {
			return err
		}
		y.report("messages read by triage", "/s", float64(s.n)/took.Seconds())
		y.report("processor time of triage", "ms/message", perMessage(state.UserTime()+state.SystemTime(), s.n))
		y.report("processor time of PostgreSQL", "ms/message", perMessage(after-server, s.n))
		memory.report(y, s.n)
		return y.verify(ctx, s.n, sent)
	})
}

func perMessage(used time.Duration, n int) float64 { return used.Seconds() * 1000 / float64(n) }

// memory holds the memory of a process while it read: megabytes by the number
// of messages read.
type memory struct {
	read    []int
	rss     []float64
	highest []float64
}

// watch samples the memory of a child until it ends.
func (y *triage) watch(ctx context.Context, child *process.Child) (m memory, err error) {
	err = process.Poll(ctx, 250*time.Millisecond, func() (bool, error) {
		select {
		case <-child.Ended():
			return true, nil
		default:
		}
		var read int
		if err := y.h.pool.QueryRow(ctx, "SELECT coalesce(sum(read), 0) FROM triage_runs").Scan(&read); err != nil {
			return false, err
		}
		if rss, highest, ok := process.Memory(child.PID()); ok {
			m.read, m.rss, m.highest = append(m.read, read), append(m.rss, rss), append(m.highest, highest)
		}
		return false, nil
	})
	return m, err
}

// report prints the memory after 10,000 messages and at the end, each over a
// tenth of the messages around it, since the collector frees memory in steps.
func (m memory) report(y *triage, n int) {
	around := func(from, to int) (rss []float64, highest float64) {
		for i, read := range m.read {
			if from <= read && read <= to {
				rss, highest = append(rss, m.rss[i]), m.highest[i]
			}
		}
		return rss, highest
	}
	late, highest := around(n-max(n/10, 2000), n)
	if len(late) == 0 {
		return // not Linux
	}
	y.report("resident memory at the end", "MB", median(late))
	y.report("highest resident memory", "MB", highest)
	early, highestEarly := around(earlyMessages-2000, earlyMessages+2000)
	if n <= 2*earlyMessages || len(early) == 0 {
		return
	}
	y.report("resident memory at 10,000", "MB", median(early))
	y.report("highest until 12,000", "MB", highestEarly)
	y.report("at the end ÷ at 10,000", "×", median(late)/median(early))
}

// triageLatency measures the time of the rules and the embedded models for a
// message that was read.
func triageLatency(s *suite) error {
	model, err := classify.Embedded()
	if err != nil {
		return err
	}
	mails, err := readMails()
	if err != nil {
		return err
	}
	var took []float64
	for _, raw := range mails {
		m := message.Parse(raw)
		began := time.Now()
		about := signal.Context{Addresses: []string{mailbox.Owner}, Domains: []string{mailbox.Domain}, Now: began}
		found := signal.Find(m, about)
		model.Predict(model.Features(m, about, found))
		took = append(took, time.Since(began).Seconds()*1000)
	}
	s.rep.quantiles("rules and models", took)
	s.rep.note("the slowest of %d took %.1f ms", len(took), slices.Max(took))
	return nil
}

// maildir generates a Maildir of n messages in the folder of the run and returns
// the number of those that the owner sent.
func (y *triage) maildir(n int) (dir string, sent int, err error) {
	if dir, err = os.MkdirTemp(y.dir, "maildir"); err != nil {
		return "", 0, err
	}
	sent, err = mailbox.Write(dir, seed, n)
	return filepath.Clean(dir), sent, err
}
