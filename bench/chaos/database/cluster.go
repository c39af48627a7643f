package database

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/bench/chaos/network"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

const (
	// clientName is the application_name of agents' sessions.
	clientName = "chaos-agent"
	// standbys is the number of standbys.
	standbys = 2
	// replicateTimeout bounds the time until both standbys replicate.
	replicateTimeout = 30 * time.Second
	// nodeTimeout bounds a statement to one of the servers.
	nodeTimeout = 40 * time.Second
)

// Cluster is a primary with two standbys. A proxy is before each server, for clients and
// for the other servers; the URL has all proxies, the first server's first.
type Cluster struct {
	*Server
	nodes []*node
	// primary is the index of the server that takes writes.
	primary atomic.Int32
}

// node is one of the servers.
type node struct {
	name   string
	server *embedded.Server
	proxy  *network.Proxy
	url    *url.URL // without the proxy
}

// ClusterUnavailable returns why there can be no cluster; empty if there can.
func ClusterUnavailable() string {
	if _, err := exec.LookPath("pgrep"); err != nil {
		return "it needs pgrep, to find the processes of a server: " + err.Error()
	}
	return ""
}

// OpenCluster starts a primary and its standbys, and migrates the database. If it is
// synchronous, a commit waits for one standby, on each server that is promoted. The
// cluster must be closed.
func OpenCluster(ctx context.Context, private embedded.Config, synchronous bool) (_ *Cluster, err error) {
	c := &Cluster{Server: &Server{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	private.Settings = map[string]string{"wal_retrieve_retry_interval": "200ms"}
	primary, err := embedded.Start(ctx, private)
	if err := c.add(ctx, primary, err); err != nil {
		return nil, err
	}
	for range standbys {
		standby, err := primary.Standby(ctx)
		if err := c.add(ctx, standby, err); err != nil {
			return nil, err
		}
	}
	if err := c.replicate(ctx); err != nil {
		return nil, err
	}
	c.URL = c.hosts()
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	if err := c.separate(ctx); err != nil {
		return nil, err
	}
	if !synchronous {
		return c, nil
	}
	for _, n := range c.nodes { // a standby does not take over what ALTER SYSTEM set on the primary
		if err := n.exec(ctx, "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 ("+c.names()+")'", "SELECT pg_reload_conf()"); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// add adds a server that was started without err, and puts a proxy before it.
func (c *Cluster) add(ctx context.Context, server *embedded.Server, err error) error {
	if err != nil {
		return err
	}
	c.closers = append(c.closers, func() error { return server.Stop(context.WithoutCancel(ctx)) })
	n := &node{name: fmt.Sprintf("pg%d", len(c.nodes)+1), server: server}
	if n.url, err = url.Parse(server.URL()); err != nil {
		return err
	}
	if n.proxy, err = network.New(n.name, n.url.Host); err != nil {
		return err
	}
	c.closers = append(c.closers, func() error { n.proxy.Close(); return nil })
	c.nodes = append(c.nodes, n)
	return nil
}

// hosts returns the URL with all servers, of which a client takes the first one that
// takes writes.
func (c *Cluster) hosts() string {
	all := *c.nodes[0].url
	addresses := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		addresses[i] = n.proxy.Address()
	}
	all.Host = strings.Join(addresses, ",")
	all.RawQuery += "&target_session_attrs=read-write"
	return all.String()
}

func (c *Cluster) names() string {
	names := make([]string, len(c.nodes))
	for i, n := range c.nodes {
		names[i] = n.name
	}
	return strings.Join(names, ",")
}

// replicate has the standbys follow the primary. Each server has a replication slot for
// each other one, since any may be promoted.
func (c *Cluster) replicate(ctx context.Context) error {
	for _, n := range c.nodes {
		for _, other := range c.nodes {
			if other == n {
				continue
			}
			if err := n.exec(ctx, "SELECT pg_create_physical_replication_slot('"+other.name+"')"); err != nil {
				return err
			}
		}
	}
	for _, n := range c.nodes[1:] {
		if err := n.follow(ctx, c.nodes[0]); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, replicateTimeout)
	defer cancel()
	return process.Poll(ctx, upPoll, func() (bool, error) {
		n, err := c.nodes[0].ask(ctx, "SELECT count(1)::text FROM pg_stat_replication r WHERE r.state = 'streaming'")
		return n == strconv.Itoa(standbys), err
	})
}

// separate has the pool go to the present primary, past the proxies, and gives agents a
// pool of their own.
func (c *Cluster) separate(ctx context.Context) (err error) {
	if c.Clients, err = postgres.Open(ctx, postgres.Config{URL: c.URL, Name: clientName}); err != nil {
		return err
	}
	c.closers = append(c.closers, func() error { c.Clients.Close(); return nil })
	config := c.Pool.Config()
	config.BeforeConnect = func(_ context.Context, to *pgx.ConnConfig) error {
		port, err := strconv.ParseUint(c.current().url.Port(), 10, 16)
		to.Port, to.Fallbacks = uint16(port), nil
		return err
	}
	c.Pool.Close()
	c.Pool, err = pgxpool.NewWithConfig(ctx, config)
	return err
}

func (c *Cluster) current() *node { return c.nodes[c.primary.Load()] }

// follow has a standby replicate from another server.
func (n *node) follow(ctx context.Context, upstream *node) error {
	password, _ := n.url.User.Password()
	host, port, _ := strings.Cut(upstream.proxy.Address(), ":")
	return n.exec(ctx,
		fmt.Sprintf("ALTER SYSTEM SET primary_conninfo = 'host=%s port=%s user=%s password=%s application_name=%s'",
			host, port, n.url.User.Username(), password, n.name), // letters and digits
		"ALTER SYSTEM SET primary_slot_name = '"+n.name+"'",
		"SELECT pg_reload_conf()")
}

// exec runs statements in one session of a server, past its proxy.
func (n *node) exec(ctx context.Context, statements ...string) error {
	return n.session(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		for _, statement := range statements {
			if _, err := conn.Exec(ctx, statement, pgx.QueryExecModeSimpleProtocol); err != nil {
				verb, _, _ := strings.Cut(statement, "'") // there may be a password
				return fmt.Errorf("%s on server %s: %w", verb, n.name, err)
			}
		}
		return nil
	})
}

// ask returns the text that a query returns on a server.
func (n *node) ask(ctx context.Context, query string, args ...any) (text string, err error) {
	err = n.session(ctx, func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, query, args...).Scan(&text) })
	return text, err
}

func (n *node) session(ctx context.Context, fn func(context.Context, *pgx.Conn) error) (err error) {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	config, err := pgx.ParseConfig(n.server.URL())
	if err != nil {
		return err
	}
	config.RuntimeParams["application_name"] = sessionName
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return fmt.Errorf("connect to server %s: %w", n.name, err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	return fn(ctx, conn)
}

// Kill ends all processes of the first primary with SIGKILL.
func (c *Cluster) Kill(ctx context.Context) error { return c.nodes[0].signal(ctx, syscall.SIGKILL) }

// Freeze stops all processes of the first primary with SIGSTOP. It keeps its connections,
// and takes new ones, without a word.
func (c *Cluster) Freeze(ctx context.Context) error { return c.nodes[0].signal(ctx, syscall.SIGSTOP) }

// CutOff ends all connections to the first primary, and refuses new ones; it goes on
// running.
func (c *Cluster) CutOff(context.Context) error {
	c.nodes[0].proxy.Close()
	return nil
}

// Return starts the first primary again, after Kill.
func (c *Cluster) Return(ctx context.Context) error {
	return c.nodes[0].server.Restart(ctx, embedded.Immediate)
}

// signal sends a signal to all processes of a server. The first of them is stopped
// before, so that it starts no more.
func (n *node) signal(ctx context.Context, sig syscall.Signal) error {
	first := n.server.Pid()
	if err := syscall.Kill(first, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop server %s: %w", n.name, err)
	}
	out, err := exec.CommandContext(ctx, "pgrep", "-P", strconv.Itoa(first)).Output()
	if err != nil {
		return fmt.Errorf("list the processes of server %s: %w", n.name, err)
	}
	for _, text := range append(strings.Fields(string(out)), strconv.Itoa(first)) {
		pid, err := strconv.Atoi(text)
		if err == nil {
			err = syscall.Kill(pid, sig)
		}
		if err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal process %s of server %s: %w", text, n.name, err)
		}
	}
	if sig == syscall.SIGKILL {
		<-n.server.Ended()
	}
	return nil
}

// StopSenders stops the processes with SIGSTOP that send the primary's log to the
// standbys: a standby receives nothing after this.
func (c *Cluster) StopSenders(ctx context.Context) error {
	pids, err := c.current().ask(ctx, "SELECT string_agg(r.pid::text, ' ') FROM pg_stat_replication r")
	if err != nil {
		return err
	}
	for text := range strings.FieldsSeq(pids) {
		pid, err := strconv.Atoi(text)
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGSTOP)
		}
		if err != nil {
			return fmt.Errorf("stop a sender: %w", err)
		}
	}
	return nil
}

// FailOver promotes the standby that has received the most, and has the other one follow
// it.
func (c *Cluster) FailOver(ctx context.Context) error {
	best, most := 0, int64(-1)
	for i, n := range c.nodes[1:] {
		text, err := n.ask(ctx, "SELECT (pg_last_wal_receive_lsn() - '0/0')::bigint::text")
		if err != nil {
			return err
		}
		received, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return err
		}
		if received > most {
			best, most = i+1, received
		}
	}
	if err := c.nodes[best].exec(ctx, "SELECT pg_promote()"); err != nil {
		return err
	}
	c.primary.Store(int32(best))
	c.Pool.Reset()
	return c.nodes[standbys+1-best].follow(ctx, c.nodes[best]) // the other of 1 and 2
}

// OldSessions counts the sessions of clients on the first primary, and those whose commit
// waits for a standby.
func (c *Cluster) OldSessions(ctx context.Context) (sessions, waiting int, err error) {
	const query = `
SELECT count(1) || ' ' || count(1) FILTER (WHERE a.wait_event = 'SyncRep')
FROM pg_stat_activity a
WHERE a.backend_type = 'client backend' AND a.application_name NOT IN ('', $1)`
	text, err := c.nodes[0].ask(ctx, query, sessionName)
	if err == nil {
		_, err = fmt.Sscan(text, &sessions, &waiting)
	}
	return sessions, waiting, err
}

// Cut ends every connection of clients and standbys to the present primary.
func (c *Cluster) Cut() error { return c.current().proxy.Cut() }

// EndHalf ends every other session of clients on the present primary.
func (c *Cluster) EndHalf(ctx context.Context) error {
	const query = `
SELECT count(pg_terminate_backend(s.pid))::text
FROM (
    SELECT a.pid, row_number() OVER (PARTITION BY a.application_name ORDER BY a.pid) AS n
    FROM pg_stat_activity a
    WHERE a.backend_type = 'client backend' AND a.application_name NOT IN ('', $1)
) s
WHERE s.n % 2 = 0`
	_, err := c.current().ask(ctx, query, sessionName)
	return err
}
