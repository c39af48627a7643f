package dev

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source/davtest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// environmentEnv makes the test binary an environment on the database that it names,
// and dirEnv names the folder of the environment.
const (
	environmentEnv = "COUNTERSIGN_TEST_ENVIRONMENT"
	dirEnv         = "COUNTERSIGN_TEST_DIR"
)

func TestMain(m *testing.M) {
	if database := os.Getenv(environmentEnv); database != "" {
		if _, err := Open(context.Background(), Config{DatabaseURL: database, Dir: os.Getenv(dirEnv), Listen: "127.0.0.1:0", Accounts: true}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// silent forwards requests to a server, and gives no answer to the first PUT of each
// item: it reports the effect, and waits until the caller has ended.
type silent struct {
	to     *httputil.ReverseProxy
	called chan struct{}
	mu     sync.Mutex
	puts   map[string]int
}

func (f *silent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	hold := r.Method == http.MethodPut && f.puts[r.URL.Path] == 0
	if r.Method == http.MethodPut {
		f.puts[r.URL.Path]++
	}
	f.mu.Unlock()
	if !hold {
		f.to.ServeHTTP(w, r)
		return
	}
	f.to.ServeHTTP(httptest.NewRecorder(), r)
	f.called <- struct{}{}
	<-r.Context().Done()
	panic(http.ErrAbortHandler)
}

// killer kills environments, one after the other, on one database.
type killer struct {
	t             *testing.T
	database, dir string
	watch, lock   *pgx.Conn
}

func newKiller(t *testing.T, database, dir string) *killer {
	t.Helper()
	k := &killer{t: t, database: database, dir: dir}
	for _, c := range []**pgx.Conn{&k.watch, &k.lock} {
		conn, err := pgx.Connect(t.Context(), database)
		if err == nil {
			_, err = conn.Exec(t.Context(), "SET search_path = countersign_data, public")
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
		*c = conn
	}
	return k
}

func (k *killer) exec(c *pgx.Conn, sql string) {
	k.t.Helper()
	if _, err := c.Exec(k.t.Context(), sql); err != nil {
		k.t.Fatalf("%s: %v", sql, err)
	}
}

// lookEvery is the interval of queries about locks, of which the database notifies nobody.
const lookEvery = 20 * time.Millisecond

// until waits until a query returns true.
func (k *killer) until(ended <-chan struct{}, sql string, args ...any) {
	k.t.Helper()
	for {
		var is bool
		if err := k.watch.QueryRow(k.t.Context(), sql, args...).Scan(&is); err != nil {
			k.t.Fatalf("%s: %v", sql, err)
		}
		if is {
			return
		}
		select {
		case <-ended:
			k.t.Fatal("the process ended by itself")
		case <-time.After(lookEvery):
		}
	}
}

// kill runs an environment until it has reached a point, kills it, and makes its work
// due again, as the ends of its leases do.
func (k *killer) kill(reached func(ended <-chan struct{})) {
	k.t.Helper()
	cmd := exec.CommandContext(k.t.Context(), os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), environmentEnv+"="+k.database, dirEnv+"="+k.dir), os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	defer stdin.Close()
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // ends with the process, whose input ends with the test
		_ = cmd.Wait()
		close(ended)
	}()
	reached(ended)
	if err := cmd.Process.Kill(); err != nil {
		k.t.Fatal(err)
	}
	<-ended
	k.exec(k.lock, "ROLLBACK; SELECT pg_advisory_unlock_all()")
	k.until(nil, "SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND pid NOT IN ($1, $2))",
		k.watch.PgConn().PID(), k.lock.PgConn().PID())
	k.exec(k.watch, "UPDATE triage_schedules SET lease_until = now() - interval '1 second', next_run_at = now()")
	k.exec(k.watch, "UPDATE outbox SET lease_until = now() - interval '1 second' WHERE lease_until IS NOT NULL")
}

// killWriting kills an environment that is about to write to a table.
func (k *killer) killWriting(table string) {
	k.t.Helper()
	k.exec(k.lock, "BEGIN")
	k.exec(k.lock, "LOCK TABLE "+table+" IN SHARE MODE")
	k.kill(func(ended <-chan struct{}) {
		k.until(ended, "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = $1::regclass)", table)
	})
}

// killInserting kills an environment that is about to insert a row of a try, and has
// proposed a number of tries.
func (k *killer) killInserting(table string, proposed int) {
	k.t.Helper()
	k.exec(k.watch, "CREATE TRIGGER hold BEFORE INSERT ON "+table+" FOR EACH ROW WHEN (starts_with(NEW.external_id, 'triage:tag:')) EXECUTE FUNCTION public.hold()")
	k.exec(k.lock, "BEGIN; SELECT pg_advisory_lock(1)")
	k.kill(func(ended <-chan struct{}) {
		k.until(ended, "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype = 'advisory' AND objid = 1)")
		k.until(ended, "SELECT count(1) = $1 FROM triage_proposals WHERE action = 'tag'", proposed)
	})
	k.exec(k.watch, "DROP TRIGGER hold ON "+table)
}

// wants compares the state of the tags with the numbers of the rows that a try has.
func (k *killer) wants(after string, want string) {
	k.t.Helper()
	var got string
	if err := k.watch.QueryRow(k.t.Context(), `SELECT concat_ws(' ', (SELECT coalesce(string_agg(format('%s/%s/%s', state, try, failures), ' ' ORDER BY action), 'untagged') FROM triage_tags),
		'proposed', (SELECT count(1) FROM triage_proposals WHERE action = 'tag'), 'actions', (SELECT count(1) FROM actions WHERE starts_with(external_id, 'triage:tag:')),
		'ended', (SELECT count(1) FROM tool_executions JOIN actions USING (tenant_id, action_id) WHERE starts_with(external_id, 'triage:tag:')), 'logged', (SELECT count(1) FROM triage_tag_log))`).Scan(&got); err != nil {
		k.t.Fatal(err)
	}
	if got != want {
		k.t.Errorf("killed %s: %s, want %s", after, got, want)
	}
}

// TestTagsEndInCalendarAndAddressBook goes from keywords of a mailbox through triage,
// outbox and worker into the collections of a Radicale. Processes are killed at each
// step on the way: every tag has one try with one effect.
func TestTagsEndInCalendarAndAddressBook(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	radicale := davtest.New(t)
	target, err := url.Parse(radicale.Calendar)
	if err != nil {
		t.Fatal(err)
	}
	target.Path = ""
	between := &silent{to: httputil.NewSingleHostReverseProxy(target), called: make(chan struct{}, 9), puts: map[string]int{}}
	proxy := httptest.NewServer(between)
	t.Cleanup(proxy.Close)
	database, dir := dbtest.URL(t), t.TempDir()
	open := func() *Environment {
		e, err := Open(ctx, Config{DatabaseURL: database, Dir: dir, Listen: "127.0.0.1:0", Accounts: true})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	stop := func(e *Environment) {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	e := open()
	owner := clientOf(t, e, e.Tokens().Owner)
	through := func(address string) string { return strings.Replace(address, target.String(), proxy.URL, 1) }
	if err := owner.PutSource(ctx, "dav", wire.SourceInput{
		Kind: catalog.KindDAV,
		Config: jsonOf(t, object{
			"user": davtest.User, "calendars": object{"default": through(radicale.Calendar)}, "address_books": object{"default": through(radicale.AddressBook)},
		}),
		Credentials: jsonOf(t, object{"values": object{"password": davtest.Password}}),
	}); err != nil {
		t.Fatal(err)
	}
	if err := connection.NewRefresher(e.pool, e.cache, e.live, e.cfg.Log).Refresh(ctx, e.demo.id, "dav"); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"dav:add-contact", "dav:create-reminder"} {
		if err := owner.PutMode(ctx, wire.Mode{Tool: tool, Mode: envelope.ModeAllow}); err != nil {
			t.Fatal(err)
		}
	}
	untagged := taggedMailbox(t, e)
	stop(e)
	if err := os.Rename(untagged, untagged+"ab"); err != nil {
		t.Fatal(err)
	}

	k := newKiller(t, database, dir)
	k.exec(k.watch, "UPDATE triage_schedules SET next_run_at = now()")
	k.killWriting("triage_tags")
	k.wants("with the keywords read", "untagged proposed 0 actions 0 ended 0 logged 0")
	k.exec(k.watch, "CREATE FUNCTION public.hold() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NEW; END'")
	k.killInserting("triage_proposals", 0)
	k.wants("with the tags stored", "due/1/0 due/1/0 proposed 0 actions 0 ended 0 logged 0")
	k.killInserting("actions", 2)
	k.wants("with the tries proposed", "open/1/0 open/1/0 proposed 2 actions 0 ended 0 logged 0")
	k.kill(func(ended <-chan struct{}) {
		for range 2 {
			select {
			case <-between.called:
			case <-ended:
				t.Fatal("the process ended by itself")
			}
		}
	})
	k.wants("with the effects at the server", "open/1/0 open/1/0 proposed 2 actions 2 ended 0 logged 0")
	k.killWriting("tool_executions")
	k.wants("with the answers of the server", "open/1/0 open/1/0 proposed 2 actions 2 ended 0 logged 0")
	k.killWriting("triage_tag_log")

	e = open()
	t.Cleanup(func() { stop(e) })
	owner = clientOf(t, e, e.Tokens().Owner)
	tags := awaitTags(t, owner, 2)

	for _, got := range tags {
		if got.State != "gone" || got.Failures != 0 || got.Try != 2 {
			t.Errorf("tag = %+v, want it gone after its first try", got)
		}
	}
	for address, want := range map[string][]string{
		radicale.Calendar:    {"BEGIN:VEVENT", "SUMMARY:Invoice 1234", "DTSTART;VALUE=DATE:20270215"},
		radicale.AddressBook: {"BEGIN:VCARD", "FN:Jane Doe", "EMAIL", "jane@newcompany.example", "+49 30 1234567"},
	} {
		items := radicale.Items(address)
		for _, text := range want {
			if !strings.Contains(items, text) {
				t.Errorf("%s has no %q:\n%s", address, text, items)
			}
		}
		if n := strings.Count(items, want[0]); n != 1 {
			t.Errorf("%s has %d items, want 1", address, n)
		}
	}
	between.mu.Lock()
	defer between.mu.Unlock()
	if len(between.puts) != 2 {
		t.Errorf("calls for %v, want two items", between.puts)
	}
	for item, n := range between.puts {
		if n < 2 {
			t.Errorf("%d calls for %s, want a repeated one: else the test shows nothing", n, item)
		}
	}
	log, err := owner.TriageTries(ctx, client.TriageTagFilter{Account: mailAccount})
	if err != nil || len(log.Items) != 2 {
		t.Fatalf("log = %+v, %v, want two tries", log.Items, err)
	}
	for _, try := range log.Items {
		if try.Status != "success" || try.ActionID == nil || len(try.Extracted) == 0 {
			t.Errorf("try = %+v", try)
		}
	}
}

// taggedMailbox makes the mailbox of the environment, with a message that its owner tagged,
// and one whose sender wrote the keywords. It returns the path of the first one, which
// becomes tagged by the letters ab at its end.
func taggedMailbox(t *testing.T, e *Environment) (untagged string) {
	t.Helper()
	dir := filepath.Join(e.mailDir(), e.demo.id.String())
	for _, folder := range []string{"", ".Archive", ".Sent", ".Drafts", ".Junk"} {
		for _, part := range []string{"cur", "new", "tmp"} {
			if err := os.MkdirAll(filepath.Join(dir, folder, part), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	const mail = "%sReceived: from out.newcompany.example ([192.0.2.1]) by mx.sample.example; %s\nAuthentication-Results: mx.sample.example; spf=pass smtp.mailfrom=newcompany.example; dkim=pass header.d=newcompany.example; dmarc=pass header.from=newcompany.example\n" +
		"Message-ID: <%d@newcompany.example>\nDate: %s\nFrom: Jane Doe <jane@newcompany.example>\nTo: " + mailOwner + "\nSubject: Invoice 1234\n\nDear Ada,\n\nthe payment is due by February 15, 2027.\n\nBest regards,\nJane Doe, CTO at NewCompany\n+49 30 1234567\n"
	at := time.Now().Format(time.RFC1123Z)
	for name, text := range map[string]string{
		"dovecot-keywords":            "0 countersign_do_add-contact\n1 countersign_do_create-reminder\n",
		"cur/1700000001.test.host:2,": fmt.Sprintf(mail, "", at, 1, at),
		"cur/1700000002.test.host:2,": fmt.Sprintf(mail, "X-Keywords: countersign_do_create-reminder\nKeywords: countersign_do_add-contact\n", at, 2, at),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.registerMail(t.Context(), e.demo, dir); err != nil {
		t.Fatal(err)
	}
	if err := e.registerAccount(t.Context(), e.demo, dir); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "cur/1700000001.test.host:2,")
}

// awaitTags waits until a number of tags is gone, and returns all.
func awaitTags(t *testing.T, c *client.Client, want int) []wire.TriageTag {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		tags, err := c.TriageTags(t.Context(), client.TriageTagFilter{State: "any"})
		if err != nil {
			t.Fatal(err)
		}
		gone := 0
		for _, tag := range tags.Items {
			if tag.State == "gone" || tag.State == "skipped" {
				gone++
			}
		}
		if gone >= want && len(tags.Items) == gone {
			return tags.Items
		}
		select {
		case <-t.Context().Done():
			raw, _ := json.Marshal(tags.Items)
			t.Fatalf("tags = %s", raw)
		case <-ticker.C:
		}
	}
}
