package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"github.com/countersign-dev/countersign/internal/insight/execution"
	"github.com/countersign-dev/countersign/internal/server/mcpserver"
)

// config is what the environment says.
type config struct {
	listen       string
	database     string
	maxConns     int32
	pooled       bool
	level        slog.Level
	approvalWait time.Duration
	mcpWait      time.Duration
	secretKey    string
	otlp         string
	proxies      []netip.Prefix
}

const help = `countersign api serves the HTTP interface. It takes no arguments; the
environment tells it all:

  DATABASE_URL                  postgres://user:password@host:port/database, required.
                                The user must be granted the role countersign_api.
  COUNTERSIGN_LISTEN            where to listen; 127.0.0.1:8080 unless told otherwise
  COUNTERSIGN_LOG_LEVEL         debug, info, warn or error; info unless told otherwise
  COUNTERSIGN_APPROVAL_WAIT     how long an action waits for a decision, such as 5m,
                                which it is unless told otherwise
  COUNTERSIGN_MCP_WAIT          how long a call over MCP is kept open for its action to
                                end before it is answered as pending; 45s unless told
                                otherwise, 5m at most
  COUNTERSIGN_SECRET_KEY        32 bytes in base64 that seal the credentials of sources;
                                without it none are taken. Make one: openssl rand -base64 32
  COUNTERSIGN_TRUSTED_PROXIES   addresses and networks of the proxies in front of this, such as
                                10.0.0.0/8; what they say in X-Forwarded-For is believed
  COUNTERSIGN_DB_MAX_CONNS      connections to the database; 10 unless told otherwise
  COUNTERSIGN_DB_POOLED         true behind PgBouncer in transaction mode
  OTEL_EXPORTER_OTLP_ENDPOINT   an OTLP/HTTP collector for traces and metrics;
                                without it metrics wait at /metrics
`

// readConfig reads the environment. The error names every variable that is
// wrong, and no value.
func readConfig(env func(string) string) (config, error) {
	c := config{
		listen: "127.0.0.1:8080", maxConns: 10, approvalWait: 5 * time.Minute, mcpWait: 45 * time.Second,
		database: env("DATABASE_URL"), secretKey: env("COUNTERSIGN_SECRET_KEY"), otlp: env("OTEL_EXPORTER_OTLP_ENDPOINT"),
	}
	var wrong []error
	take := func(name, must string, read func(text string) error) {
		if text := env(name); text != "" && read(text) != nil {
			wrong = append(wrong, errors.New(name+" must be "+must))
		}
	}
	if c.database == "" {
		wrong = append(wrong, errors.New("DATABASE_URL must be set: postgres://user:password@host:port/database"))
	}
	take("COUNTERSIGN_LISTEN", "an address", func(text string) error { c.listen = text; return nil })
	take("COUNTERSIGN_LOG_LEVEL", "debug, info, warn or error", func(text string) error { return c.level.UnmarshalText([]byte(text)) })
	take("COUNTERSIGN_APPROVAL_WAIT", "a duration of at least 1s, such as 5m", func(text string) (err error) {
		if c.approvalWait, err = time.ParseDuration(text); err == nil && c.approvalWait < time.Second {
			err = strconv.ErrRange
		}
		return err
	})
	take("COUNTERSIGN_MCP_WAIT", "a duration from 1s to 5m, such as 45s", func(text string) (err error) {
		if c.mcpWait, err = time.ParseDuration(text); err == nil && (c.mcpWait < time.Second || c.mcpWait > mcpserver.MaxWait) {
			err = strconv.ErrRange
		}
		return err
	})
	take("COUNTERSIGN_TRUSTED_PROXIES", "addresses or networks, parted by commas, such as 10.0.0.0/8", func(text string) (err error) {
		c.proxies, err = execution.ParseProxies(text)
		return err
	})
	take("COUNTERSIGN_DB_MAX_CONNS", "a number from 1 to 1000", func(text string) error {
		n, err := strconv.ParseInt(text, 10, 32)
		if err == nil && (n < 1 || n > 1000) {
			err = strconv.ErrRange
		}
		c.maxConns = int32(n)
		return err
	})
	take("COUNTERSIGN_DB_POOLED", "true or false", func(text string) (err error) {
		c.pooled, err = strconv.ParseBool(text)
		return err
	})
	return c, errors.Join(wrong...)
}

// LogValue shows the configuration without its secrets.
func (c config) LogValue() slog.Value {
	database := "unreadable"
	if u, err := url.Parse(c.database); err == nil {
		database = u.Host + u.Path
	}
	return slog.GroupValue(
		slog.String("listen", c.listen), slog.String("database", database), slog.Int("db_max_conns", int(c.maxConns)),
		slog.Bool("db_pooled", c.pooled), slog.String("log_level", c.level.String()),
		slog.Duration("approval_wait", c.approvalWait), slog.Duration("mcp_wait", c.mcpWait),
		slog.Bool("seals_sources", c.secretKey != ""), slog.Bool("otlp", c.otlp != ""),
		slog.Any("trusted_proxies", c.proxies),
	)
}

// usage answers arguments: help for those who ask for it.
func usage(args []string, out io.Writer) (asked bool, err error) {
	if len(args) == 0 {
		return false, nil
	}
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h" || args[0] == "help") {
		_, err = io.WriteString(out, help)
		return true, err
	}
	return true, fmt.Errorf("takes no arguments; --help tells what the environment may say")
}
