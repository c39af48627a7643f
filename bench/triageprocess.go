package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/bench/application"
	"github.com/countersign-dev/countersign/bench/mailbox"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/mail/dovecottest"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// seed is that of the generated mail.
const seed = 20260101

// triage is the command triage, its database login and its files.
type triage struct {
	h       *environment
	s       *suite
	dir     string
	program string
	url     string
	// env is more environment of the process.
	env []string
}

// triage calls fn with a database of its own and the command triage, built.
func (s *suite) triage(ctx context.Context, fn func(y *triage) error) error {
	return s.environment(ctx, "", func(h *environment) error {
		dir, err := os.MkdirTemp("", "countersign-bench-")
		if err != nil {
			return err
		}
		defer func() { _ = os.RemoveAll(dir) }()
		y := &triage{h: h, s: s, dir: dir}
		if y.program, err = process.Build(ctx, dir, "triage"); err != nil {
			return err
		}
		user, drop, err := application.Login(ctx, h.pool, h.tenant, "IN ROLE countersign_triage", identity.DBLogin{Tools: []string{"mail:*"}, MaxWaiting: 10_000_000})
		if err != nil {
			return err
		}
		defer drop()
		u, err := url.Parse(h.url)
		if err != nil {
			return err
		}
		u.User = user
		y.url = u.String()
		return fn(y)
	})
}

// put sets up an account that proposes, and reads all of its mail.
func (y *triage) put(ctx context.Context, a account.Account) error {
	a.ID, a.Name, a.Enabled, a.Every, a.BackfillDays = uuid.Must(uuid.NewV7()), "bench", true, 5*time.Second, 36500
	a.Connection.TrustedHost = mailbox.TrustedHost
	a.Settings = decide.Settings{Addresses: []string{mailbox.Owner}, Domains: []string{mailbox.Domain}}
	a.Proposals = plan.Config{Source: "mail", Account: "bench"}
	return postgres.InTx(ctx, y.h.pool, postgres.API(y.h.tenant), func(tx pgx.Tx) error {
		return account.Put(ctx, tx, y.h.tenant, a)
	})
}

// secretVariable has the password of an account.
const secretVariable = "COUNTERSIGN_TRIAGE_SECRET_BENCH"

// start starts a process that may hold the account of a dead one after 5 s.
func (y *triage) start(args ...string) (*process.Child, error) {
	log, err := os.OpenFile(filepath.Join(y.dir, "triage.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the child has its own handle
	return process.Start(y.program, append([]string{
		"DATABASE_URL=" + y.url, "COUNTERSIGN_TRIAGE_DNS=false", "COUNTERSIGN_TRIAGE_LEASE=5s", "COUNTERSIGN_TRIAGE_NETWORKS=127.0.0.0/8",
		"COUNTERSIGN_METRICS_LISTEN=127.0.0.1:0", "COUNTERSIGN_MAILDIRS=" + y.dir, secretVariable + "=" + dovecottest.Password,
	}, y.env...), log, os.Stderr, args...)
}

func (y *triage) report(name, unit string, value float64) { y.s.rep.single(name, unit, value, nil) }

// serverTime returns the processor time that the database server has used; 0 if it
// is on another machine.
func (y *triage) serverTime(ctx context.Context) (time.Duration, error) {
	var backend int
	if err := y.h.pool.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return 0, err
	}
	return process.TreeTime(process.Parent(backend)), nil
}

// verify checks that every message was decided once and proposed once, and that
// all folders were read to their ends.
func (y *triage) verify(ctx context.Context, n, sent int) error {
	var proposals int
	for _, is := range []struct {
		what, query string
		want        int
	}{
		{"messages", "SELECT count(1) FROM triage_messages", n},
		{"locations", "SELECT count(1) FROM triage_locations", n},
		{"messages of the owner", "SELECT count(1) FROM triage_messages WHERE outgoing", sent},
		{"decisions", "SELECT count(1) FROM triage_decisions", n - sent},
		{"messages that came in without a decision", `SELECT count(1) FROM triage_messages m WHERE NOT m.outgoing
			AND NOT EXISTS (SELECT 1 FROM triage_decisions d WHERE d.tenant_id = m.tenant_id AND d.message_id = m.message_id)`, 0},
		{"rows that were not proposed", `SELECT count(1) FROM triage_proposals t
			WHERE NOT EXISTS (SELECT 1 FROM proposals p WHERE p.tenant_id = t.tenant_id AND p.proposal_id = t.proposal_id)`, 0},
		{"proposals without a row", `SELECT count(1) FROM proposals p
			WHERE NOT EXISTS (SELECT 1 FROM triage_proposals t WHERE p.tenant_id = t.tenant_id AND p.proposal_id = t.proposal_id)`, 0},
		{"external ids proposed twice", "SELECT count(1) - count(DISTINCT p.body::jsonb ->> 'external_id') FROM proposals p", 0},
		{"messages with an action proposed twice", `SELECT count(1) FROM
			(SELECT 1 FROM triage_proposals t GROUP BY t.message_id, t.action, t.envelope -> 'args' HAVING count(1) > 1) twice`, 0},
		{"folders that were not read to their ends", "SELECT count(1) FROM triage_folders WHERE older_done_at IS NULL", 0},
	} {
		var got int
		if err := y.h.pool.QueryRow(ctx, is.query).Scan(&got); err != nil {
			return err
		}
		if got != is.want {
			return fmt.Errorf("%s: %d, want %d", is.what, got, is.want)
		}
	}
	if err := y.h.pool.QueryRow(ctx, "SELECT count(1) FROM triage_proposals").Scan(&proposals); err != nil {
		return err
	}
	y.s.rep.note("verified: %d messages, %d decided once each, %d of the owner, %d proposals, each once", n, n-sent, sent, proposals)
	return nil
}
