package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/internal/source/connect"
)

// config is what the environment says.
type config struct {
	database, id, metricsListen, otlp string
	concurrency, batch                int
	conns                             int32
	lease, grace                      time.Duration
	pollOnly, pooled, stdio           bool
	level                             slog.Level
	vault                             connect.Vault
	hasKey                            bool
}

// configFrom reads the environment. The error names every variable that
// cannot be used, one a line, and what to do; it repeats no value.
func configFrom(getenv func(string) string) (config, error) {
	r := reader{getenv: getenv}
	c := config{
		id:          r.text(varID, workerID),
		concurrency: r.number(varConcurrency, 100, 1, 10_000), batch: r.number(varBatch, 500, 1, 5_000),
		lease: r.duration(varLease, 30*time.Second, 5*time.Second), grace: r.duration(varGrace, 20*time.Second, 0),
		pollOnly: r.boolean(varPollOnly), pooled: r.boolean(varPooled), stdio: r.boolean(varStdio),
		conns: int32(r.number(varConns, 20, 4, 1_000)), // at most 1000
	}
	r.check(varDatabase, func(text string) (err error) {
		if c.database = text; text == "" {
			return errors.New("is required: postgres://user:password@host:5432/database")
		}
		if _, err := pgxpool.ParseConfig(text); err != nil { // its text may hold the password
			return errors.New("is not a PostgreSQL connection string: postgres://user:password@host:5432/database")
		}
		return nil
	})
	r.check(varKey, func(text string) (err error) {
		c.hasKey = text != ""
		if c.vault, err = connect.NewVault(text); err != nil {
			return errors.New("must be 32 bytes in base64; make one with: openssl rand -base64 32")
		}
		return nil
	})
	r.check(varLevel, func(text string) error {
		if text != "" && c.level.UnmarshalText([]byte(text)) != nil {
			return errors.New("must be debug, info, warn or error")
		}
		return nil
	})
	r.check(varMetrics, func(text string) error {
		c.metricsListen = text
		if _, _, err := net.SplitHostPort(text); text != "" && err != nil {
			return errors.New("must be host:port or :port, such as :9090")
		}
		return nil
	})
	r.check(varOTLP, func(text string) error {
		c.otlp = text
		if u, err := url.Parse(text); text != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			return errors.New("must be an http or https URL, such as http://collector:4318")
		}
		return nil
	})
	return c, errors.Join(r.wrong...)
}

// LogValue is the configuration without its secrets.
func (c config) LogValue() slog.Value {
	where := slog.String("database", "unknown")
	if pc, err := pgxpool.ParseConfig(c.database); err == nil {
		where = slog.String("database", fmt.Sprintf("%s:%d/%s", pc.ConnConfig.Host, pc.ConnConfig.Port, pc.ConnConfig.Database))
	}
	collector := ""
	if u, err := url.Parse(c.otlp); err == nil {
		collector = u.Host
	}
	return slog.GroupValue(where, slog.String("worker_id", c.id), slog.Int("concurrency", c.concurrency), slog.Int("batch", c.batch),
		slog.String("lease", c.lease.String()), slog.String("grace", c.grace.String()), slog.Bool("poll_only", c.pollOnly),
		slog.Bool("db_pooled", c.pooled), slog.Int("db_max_conns", int(c.conns)), slog.Bool("opens_sealed_sources", c.hasKey), slog.Bool("stdio_sources", c.stdio),
		slog.String("log_level", c.level.String()), slog.String("metrics_listen", c.metricsListen), slog.String("otlp_host", collector))
}
