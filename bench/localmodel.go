package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/countersign-dev/countersign/bench/mailbox"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

// The measurements with local models: a backlog that is read once, mail that
// arrives while the process runs, and an urgent message behind a backlog.
const (
	backlogMessages = 500
	warmMessages    = 100
	modelSlots      = 4
)

// tierOf returns the tier of a question, by its prompt.
func tierOf(r modeltest.Request) string {
	switch {
	case strings.Contains(r.System, "k: How was it sent?"):
		return "t1"
	case strings.Contains(r.System, "c: What does it contain?"):
		return "t2a"
	}
	return "t2b"
}

// models is a model server of the bench, and the questions that it received.
type models struct {
	*triage

	fake  *modeltest.Server
	words atomic.Int64
}

// measureModels has the command triage read mail with a fake model server that
// takes as long as real ones: fixed times a tier, and times by tokens.
func measureModels(ctx context.Context, s *suite) error {
	var alone time.Duration
	err := s.triage(ctx, func(y *triage) (err error) {
		alone, _, err = y.backlog(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		name    string
		latency modeltest.Latency
		fixed   map[string]time.Duration
	}{
		{name: "fixed times", fixed: map[string]time.Duration{"t1": 125 * time.Millisecond, "t2a": 500 * time.Millisecond, "t2b": 400 * time.Millisecond}},
		{name: "times by tokens", latency: modeltest.Latency{Prefill: 1000, Decode: 24}},
	} {
		err := s.triage(ctx, func(y *triage) error {
			m := &models{triage: y}
			m.fake = modeltest.Start(modeltest.Config{Slots: modelSlots, Latency: kind.latency, Answer: func(r modeltest.Request) modeltest.Reply {
				reply := answerOf(r)
				m.words.Add(int64(modeltest.CountTokens(reply.Text)))
				took := kind.fixed[tierOf(r)]
				if tierOf(r) == "t1" {
					took *= time.Duration(strings.Count(r.User, "[mail m")) // the time is for one message
				}
				time.Sleep(took)
				return reply
			}})
			defer m.fake.Close()
			return m.measure(ctx, kind.name, alone)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// answerOf answers every fourth message as needed by its owner, by its text, and
// the others as not needed.
func answerOf(r modeltest.Request) modeltest.Reply {
	at := 0
	return modeltest.Reply{Confidence: 0.95, Text: modeltest.Fill(r.Schema, func(_ string, allowed []string) string {
		at++
		if (len(r.User)+at)%4 == 0 {
			return allowed[0]
		}
		return allowed[len(allowed)-1]
	})}
}

func (m *models) measure(ctx context.Context, kind string, alone time.Duration) error {
	file := filepath.Join(m.dir, "models.json")
	tier := map[string]any{"server": "bench", "model": "test-model"}
	raw, err := json.Marshal(map[string]any{
		"servers": map[string]any{"bench": map[string]any{"url": m.fake.URL(), "slots": modelSlots}},
		"tiers":   map[string]any{"t1": tier, "t2a": tier, "t2b": tier},
	})
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, raw, 0o600); err != nil {
		return err
	}
	m.env = []string{"COUNTERSIGN_TRIAGE_MODELS=" + file}
	used, took, err := m.backlog(ctx)
	if err != nil {
		return err
	}
	m.report(fmt.Sprintf("%d messages read and asked about, %s", backlogMessages, kind), "s", took.Seconds())
	m.report("processor time of triage for models, "+kind, "ms/message", perMessage(max(0, used-alone), backlogMessages))
	m.questions(kind)
	return m.running(ctx, kind)
}

// questions reports the questions received.
func (m *models) questions(kind string) {
	calls := map[string]int{}
	in := 0
	for _, r := range m.fake.Requests() {
		calls[tierOf(r)]++
		in += modeltest.CountTokens(r.System + r.User)
	}
	m.s.rep.note("%s: %d questions of t1, %d of t2a, %d of t2b for %d messages; about %d tokens read and %d written for each 100", kind,
		calls["t1"], calls["t2a"], calls["t2b"], backlogMessages, in*100/backlogMessages, int(m.words.Load())*100/backlogMessages)
}

// backlog runs a process on a Maildir once, and returns its processor time and
// its duration.
func (y *triage) backlog(ctx context.Context) (used, took time.Duration, err error) {
	dir, sent, err := y.maildir(backlogMessages)
	if err != nil {
		return 0, 0, err
	}
	if err := y.put(ctx, account.Account{Kind: account.Maildir, Connection: account.Connection{Path: dir}}); err != nil {
		return 0, 0, err
	}
	began := time.Now()
	child, err := y.start("--once")
	if err != nil {
		return 0, 0, err
	}
	defer child.Kill()
	select {
	case <-child.Ended():
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
	took = time.Since(began)
	state := child.State()
	if !state.Success() {
		return 0, 0, fmt.Errorf("triage ended: %v", state)
	}
	if err := y.settled(ctx, backlogMessages); err != nil {
		return 0, 0, err
	}
	return state.UserTime() + state.SystemTime(), took, y.verify(ctx, backlogMessages, sent)
}

// settled checks that n messages were read and no question is left.
func (y *triage) settled(ctx context.Context, n int) error {
	read, open, err := y.asked(ctx)
	if err == nil && (read != n || open > 0) {
		err = fmt.Errorf("%d messages were read and %d wait for an answer, want %d and none", read, open, n)
	}
	return err
}

// asked returns the number of messages read, and the number with open questions.
func (y *triage) asked(ctx context.Context) (read, open int, err error) {
	err = y.h.pool.QueryRow(ctx, "SELECT (SELECT count(1) FROM triage_messages), (SELECT count(1) FROM triage_decisions WHERE wanted_at IS NOT NULL)").Scan(&read, &open)
	return read, open, err
}

// running delivers mail while a process runs: 100 messages, and then an urgent one
// behind 500.
func (m *models) running(ctx context.Context, kind string) error {
	child, err := m.start()
	if err != nil {
		return err
	}
	defer child.Kill()
	there, err := os.ReadDir(m.dir)
	if err != nil {
		return err
	}
	var dir string
	for _, e := range there {
		if strings.HasPrefix(e.Name(), "maildir") {
			dir = filepath.Join(m.dir, e.Name())
		}
	}
	if err := m.until(ctx, func(read, open int) bool { return open == 0 && read == backlogMessages }); err != nil {
		return err
	}
	began := time.Now()
	if err := deliverMail(dir, backlogMessages, warmMessages); err != nil {
		return err
	}
	if err := m.until(ctx, func(read, open int) bool { return open == 0 && read == backlogMessages+warmMessages }); err != nil {
		return err
	}
	m.report(fmt.Sprintf("%d messages that come while triage runs, %s", warmMessages, kind), "s", time.Since(began).Seconds())
	if err := deliverMail(dir, backlogMessages+warmMessages, backlogMessages); err != nil {
		return err
	}
	if err := m.until(ctx, func(_, open int) bool { return open > 0 }); err != nil {
		return err
	}
	began = time.Now()
	if err := urgent(dir); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err = process.Poll(ctx, 20*time.Millisecond, func() (urgent bool, err error) {
		err = m.h.pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM triage_messages x JOIN triage_decisions d USING (tenant_id, message_id)
			WHERE x.header_id = 'urgent@tallis.example' AND d.bucket IN ('urgent', 'actionable'))`).Scan(&urgent)
		return urgent, err
	})
	if err != nil {
		return errors.Join(errors.New("the urgent message was never shown as one"), err)
	}
	m.report("an urgent message behind "+fmt.Sprint(backlogMessages)+" others, "+kind, "s", time.Since(began).Seconds())
	return nil
}

func (m *models) until(ctx context.Context, holds func(read, open int) bool) error {
	return process.Poll(ctx, 50*time.Millisecond, func() (bool, error) {
		read, open, err := m.asked(ctx)
		return err == nil && holds(read, open), err
	})
}

// deliverMail brings n messages, from a number on, into the inbox of a Maildir.
func deliverMail(dir string, from, n int) error {
	for i := range n {
		m := mailbox.Generate(seed, from+i)
		if m.Sent {
			m = mailbox.Generate(seed+1, from+i)
			m.Sent = false
		}
		if err := drop(dir, fmt.Sprintf("18%08d.bench.host", from+i), m.Raw); err != nil {
			return err
		}
	}
	return nil
}

// drop writes a message into the inbox atomically.
func drop(dir, name string, raw []byte) error {
	tmp := filepath.Join(dir, "tmp", name)
	if err := os.WriteFile(tmp, raw, 0o600); err != nil {
		return err
	}
	return os.Rename(tmp, filepath.Join(dir, "new", name))
}

// urgent brings an urgent message of a colleague.
func urgent(dir string) error {
	text := strings.Join([]string{
		"Message-ID: <urgent@tallis.example>", "Date: " + time.Now().Format(time.RFC1123Z), "From: Ida Holm <ida@" + mailbox.Domain + ">", "To: " + mailbox.Owner,
		"Authentication-Results: " + mailbox.TrustedHost + "; spf=pass smtp.mailfrom=" + mailbox.Domain + "; dkim=pass header.d=" + mailbox.Domain + "; dmarc=pass header.from=" + mailbox.Domain,
		"Subject: URGENT: the contract has to be signed today", "", "Mara, please sign the contract before 17:00 today, it is urgent: without it the delivery stops. Can you call me as soon as possible?", "",
	}, "\r\n")
	return drop(dir, "1900000001.bench.host", []byte(text))
}
