package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	imapwire "github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapserver"
	"github.com/emersion/go-imap/v2/imapserver/imapmemserver"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/dev"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// briefWord is in the subject of the mail of this test, and briefBody in its body.
const briefWord, briefBody = "thistledown", "harebellstone"

// outside are the servers that briefs go to: one for outgoing mail, which delivers to a
// Maildir, and one of Slack. Each can hold a call before or after its effect.
type outside struct {
	t        *testing.T
	inbox    string
	smtp     net.Listener
	slack    *httptest.Server
	imap     net.Listener
	mu       sync.Mutex
	mails    []string
	messages []string
	// before and after hold calls until they are closed; nil holds none. held
	// receives a value for each held call.
	before, after chan struct{}
	held          chan struct{}
}

func newOutside(t *testing.T, inbox string) *outside {
	t.Helper()
	o := &outside{t: t, inbox: inbox, held: make(chan struct{}, 100)}
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	o.smtp, o.imap = listen(), listen()
	memory, user := imapmemserver.New(), imapmemserver.NewUser("ann@example.com", "hush")
	for _, folder := range []string{"INBOX", "Sent"} {
		if err := user.Create(folder, nil); err != nil {
			t.Fatal(err)
		}
	}
	memory.AddUser(user)
	server := imapserver.New(&imapserver.Options{
		NewSession: func(*imapserver.Conn) (imapserver.Session, *imapserver.GreetingData, error) {
			return memory.NewSession(), nil, nil
		},
		Caps: imapwire.CapSet{imapwire.CapIMAP4rev1: {}, imapwire.CapUIDPlus: {}, imapwire.CapMove: {}}, InsecureAuth: true,
	})
	o.slack = httptest.NewServer(http.HandlerFunc(o.post))
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(o.imap) }) // ends when it is closed
	running.Go(func() {
		for {
			conn, err := o.smtp.Accept()
			if err != nil {
				return
			}
			running.Go(func() { o.serve(conn) })
		}
	})
	t.Cleanup(func() {
		o.hold(nil, nil)
		_, _ = server.Close(), o.smtp.Close()
		o.slack.CloseClientConnections()
		o.slack.Close()
		running.Wait()
	})
	return o
}

// hold sets the gates of calls, and releases the held calls.
func (o *outside) hold(before, after chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, c := range []chan struct{}{o.before, o.after} {
		if c != nil {
			close(c)
		}
	}
	o.before, o.after = before, after
}

// wait holds a call if it has to be held at a point.
func (o *outside) wait(point func() chan struct{}) {
	o.mu.Lock()
	c := point()
	o.mu.Unlock()
	if c != nil {
		o.held <- struct{}{}
		<-c
	}
}

func (o *outside) beforeEffect() chan struct{} { return o.before }
func (o *outside) afterEffect() chan struct{}  { return o.after }

// post is the method chat.postMessage of Slack, within the bounds of Block Kit.
func (o *outside) post(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	o.wait(o.beforeEffect)
	if r.Context().Err() != nil || err != nil {
		return // the client is gone before the effect
	}
	var m struct {
		Channel, Text string
		Blocks        []struct {
			Type string
			Text struct{ Type, Text string }
		}
	}
	answer := `{"ok":true,"channel":"C1","ts":"1712.0001"}`
	if json.Unmarshal(raw, &m) != nil || r.URL.Path != "/api/chat.postMessage" || r.Header.Get("Authorization") != "Bearer xoxb-1" || m.Channel != "C1" || m.Text == "" ||
		len(m.Blocks) == 0 || len(m.Blocks) > 50 || m.Blocks[0].Type != "header" || m.Blocks[0].Text.Type != "plain_text" {
		answer = `{"ok":false,"error":"invalid_blocks"}`
	} else {
		o.mu.Lock()
		o.messages = append(o.messages, string(raw))
		o.mu.Unlock()
	}
	o.wait(o.afterEffect)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer) // the client may be gone
}

// serve speaks with a client of outgoing mail.
func (o *outside) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	lines := bufio.NewReader(conn)
	say := func(text string) { _, _ = fmt.Fprintf(conn, "%s\r\n", text) }
	o.wait(o.beforeEffect)
	say("220 ready")
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		switch word, _, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " "); word {
		case "EHLO":
			say("250-here\r\n250 AUTH PLAIN")
		case "AUTH":
			say("235 welcome")
		case "DATA":
			say("354 go on")
			var raw strings.Builder
			for {
				if line, err = lines.ReadString('\n'); err != nil {
					return
				}
				if line == ".\r\n" {
					break
				}
				raw.WriteString(strings.TrimPrefix(line, "."))
			}
			o.deliver(raw.String())
			o.wait(o.afterEffect)
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 fine")
		}
	}
}

// deliver stores a mail in the inbox, with the header that a server adds.
func (o *outside) deliver(raw string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mails = append(o.mails, raw)
	o.put(fmt.Sprintf("brief-%d", len(o.mails)), "Received: from here by mx.example.com; Sat, 28 Nov 2026 08:00:00 +0000\r\n"+raw)
}

func (o *outside) put(name, raw string) {
	tmp := filepath.Join(o.inbox, "tmp", name)
	if err := os.WriteFile(tmp, []byte(raw), 0o600); err != nil {
		o.t.Error(err)
	} else if err := os.Rename(tmp, filepath.Join(o.inbox, "new", name)); err != nil {
		o.t.Error(err)
	}
}

func (o *outside) counts() (mails, messages int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.mails), len(o.messages)
}

// delivery is an account whose briefs go out by mail and to Slack, through processes of
// triage and of the worker.
type delivery struct {
	t              *testing.T
	out            *outside
	db             *pgxpool.Pool
	triageEnv      []string
	workerEnv      []string
	triage, worker string
	log            *lockedBuffer
	began          time.Time
	rounds         int
}

// lockedBuffer is a buffer that processes write to.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// process is a running program.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts a program, which ends with the test.
func (d *delivery) start(program string, environ []string, args ...string) *process {
	d.t.Helper()
	p := &process{cmd: exec.Command(program, args...), ended: make(chan struct{})}
	p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = append(os.Environ(), environ...), d.log, d.log
	if err := p.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	go func() { // ends with the process, which the test kills
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	d.t.Cleanup(p.kill)
	return p
}

// kill kills the process with SIGKILL, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// await waits until a query returns true.
func (d *delivery) await(what, sql string, args ...any) {
	d.t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for ok := false; ; {
		if err := d.db.QueryRow(d.t.Context(), sql, args...).Scan(&ok); err != nil {
			d.t.Fatalf("%s: %v\n%s", what, err, d.log)
		}
		if ok {
			return
		}
		select {
		case <-d.t.Context().Done():
			d.t.Fatalf("%s: %v\n%s", what, d.t.Context().Err(), d.log)
		case <-ticker.C:
		}
	}
}

// blocked locks a table against writers, runs fn until a process waits for the lock, and
// kills that process before it gets it.
func (d *delivery) blocked(table string, p *process, fn func()) {
	d.t.Helper()
	tx, err := d.db.Begin(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(d.t.Context())) }()
	if _, err := tx.Exec(d.t.Context(), "LOCK TABLE countersign_data."+table+" IN SHARE ROW EXCLUSIVE MODE"); err != nil {
		d.t.Fatal(err)
	}
	if fn != nil {
		fn()
	}
	d.await("nothing waits for "+table, "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = $1::regclass)", "countersign_data."+table)
	p.kill()
}

func newDelivery(t *testing.T) *delivery {
	t.Helper()
	inbox := filepath.Join(t.TempDir(), "mail")
	for _, part := range []string{"cur", "new", "tmp"} {
		if err := os.MkdirAll(filepath.Join(inbox, part), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // it never fails
	secret := base64.StdEncoding.EncodeToString(key)
	d := &delivery{t: t, out: newOutside(t, inbox), db: dbtest.DB(t), log: &lockedBuffer{}}
	d.out.put("request", "Message-ID: <1@work.example>\nDate: "+time.Now().Format(time.RFC1123Z)+"\nFrom: Mila <mila@work.example>\nTo: ann@example.com\nSubject: Could you sign the "+briefWord+
		" today?\n\nHi Ann,\n\ncould you please sign the "+briefBody+" by noon today?\n\nMila\n")
	database := d.db.Config().ConnString()
	e, err := dev.Open(t.Context(), dev.Config{DatabaseURL: database, SecretKey: secret, Listen: "127.0.0.1:0", Accounts: true})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, environment: e, url: e.URL(), database: database, dir: t.TempDir()}
	account := filepath.Join(f.dir, "work.yaml")
	if err := os.WriteFile(account, []byte("kind: maildir\nconnection:\n  path: "+inbox+"\nsettings:\n  addresses: [ann@example.com]\nproposals: {source: letters, account: ann}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	port := func(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }
	f.want(f.admin("source", "set", "letters", "--kind", "mail", "--credentials", `{"accounts":{"ann":"hush"}}`, "--config", fmt.Sprintf(
		`{"accounts":{"ann":{"kind":"imap","host":"127.0.0.1","port":%d,"tls":"none","user":"ann@example.com","from":"ann@example.com","folders":{"sent":"Sent"},"smtp":{"host":"127.0.0.1","port":%d,"tls":"none"}}}}`,
		port(d.out.imap), port(d.out.smtp))), command.ExitOK)
	f.want(f.admin("source", "set", "team", "--kind", "slack", "--config", `{"url":"`+d.out.slack.URL+`/api"}`, "--credentials", `{"values":{"token":"xoxb-1"}}`), command.ExitOK)
	f.want(f.admin("triage", "accounts", "set", "work", "-f", account), command.ExitOK)
	f.want(f.admin("triage", "brief", "schedule", "work", "--morning", "00:00", "--to", "ann@example.com", "--slack", "team:C1", "--show-mail"), command.ExitOK)
	owner, err := e.Client(e.Tokens().Owner)
	if err != nil {
		t.Fatal(err)
	}
	me, err := owner.Me(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	var tenant envelope.TenantID
	if err := tenant.UnmarshalText([]byte(me.TenantID)); err != nil {
		t.Fatal(err)
	}
	login := "brief_" + strings.ReplaceAll(tenant.String(), "-", "")
	d.exec("CREATE ROLE " + login + " LOGIN PASSWORD '" + login + "' IN ROLE countersign_triage")
	t.Cleanup(func() {
		if _, err := d.db.Exec(context.WithoutCancel(t.Context()), "DROP ROLE "+login); err != nil {
			t.Error(err)
		}
	})
	if err := postgres.InTx(t.Context(), d.db, postgres.Admin(), func(tx pgx.Tx) error {
		_, err := identity.BindDBLogin(t.Context(), tx, tenant, identity.DBLogin{Login: login, Tools: plan.Patterns(), MaxWaiting: identity.DefaultMaxWaiting})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	d.workerEnv = []string{"DATABASE_URL=" + database, "COUNTERSIGN_SECRET_KEY=" + secret, "COUNTERSIGN_SOURCE_NETWORKS=127.0.0.0/8", "COUNTERSIGN_LEASE=5s", "COUNTERSIGN_LOG_LEVEL=debug"}
	u.User = url.UserPassword(login, login)
	d.triageEnv = []string{"DATABASE_URL=" + u.String(), "COUNTERSIGN_TRIAGE_DNS=false", "COUNTERSIGN_TRIAGE_LEASE=5s", "COUNTERSIGN_MAILDIRS=" + inbox, "COUNTERSIGN_LOG_LEVEL=debug"}
	d.triage, d.worker = sourcetest.Program(t, "cmd/triage"), sourcetest.Program(t, "cmd/worker")
	d.exec("UPDATE triage_accounts SET updated_at = now() - interval '3 hours'")
	if err := d.db.QueryRow(t.Context(), "SELECT now()").Scan(&d.began); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *delivery) exec(sql string, args ...any) {
	d.t.Helper()
	if _, err := d.db.Exec(d.t.Context(), sql, args...); err != nil {
		d.t.Fatal(err)
	}
}

// due makes the next brief due.
func (d *delivery) due() {
	d.t.Helper()
	d.rounds++
	at := d.began.UTC().Add(time.Duration(d.rounds-60) * time.Minute).Format("15:04")
	d.exec(`UPDATE triage_accounts SET proposals = jsonb_set(proposals, '{brief,morning}', to_jsonb($1::text))`, at)
}

// latest are the actions of the latest brief.
const latest = "FROM envelopes v WHERE v.action_id IN (SELECT b.proposal_id FROM triage_briefs b WHERE b.due_at = (SELECT max(due_at) FROM triage_briefs))"

// made waits until the brief is made and proposed, with one message a channel.
func (d *delivery) made() {
	d.t.Helper()
	d.await("the brief is not proposed", "SELECT count(*) FILTER (WHERE proposal_id IS NOT NULL) = 2 * $1 FROM triage_briefs", d.rounds)
}

// ended waits until the actions of the latest brief have ended, and returns their
// statuses: of the mail, and of the message in Slack.
func (d *delivery) ended() (status string) {
	d.t.Helper()
	d.await("the brief is not sent", "SELECT count(*) FILTER (WHERE v.status IN ('sent', 'conflict', 'failed', 'skipped', 'unknown')) = 2 "+latest)
	if err := d.db.QueryRow(d.t.Context(), "SELECT string_agg(v.status, ' ' ORDER BY v.source_id) "+latest).Scan(&status); err != nil {
		d.t.Fatal(err)
	}
	return status
}

// TestABriefIsDeliveredOnce goes from due times through processes of triage and of the
// worker to a mail and a message in Slack, and kills the processes with SIGKILL between
// the steps. Nothing is sent twice or lost; an outcome that nobody can know is unknown. Mailed
// briefs that arrive in the mailbox are not triaged.
func TestABriefIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	d := newDelivery(t)
	// The lease of a killed process is as if it had ended.
	ended := func() { d.exec("UPDATE triage_schedules SET lease_until = now() WHERE holder IS NOT NULL") }
	triage := func() *process { ended(); return d.start(d.triage, d.triageEnv) }
	worker := func() *process { return d.start(d.worker, d.workerEnv) }
	const sent, unknown = "sent sent", "unknown unknown"
	make := func() {
		t.Helper()
		p := triage()
		d.made()
		p.kill()
	}
	send := func() string {
		t.Helper()
		p := worker()
		status := d.ended()
		p.kill()
		return status
	}
	killed := func(before, after chan struct{}) {
		t.Helper()
		d.out.hold(before, after)
		p := worker()
		for range 2 {
			select {
			case <-d.out.held:
			case <-t.Context().Done():
				t.Fatalf("nothing is sent:\n%s", d.log)
			}
		}
		p.kill()
		d.out.hold(nil, nil)
	}
	for _, step := range []struct {
		name string
		run  func() string
		want string
		// most and least bound the messages that reach each channel.
		least, most int
	}{
		{"nothing is killed", func() string { make(); return send() }, sent, 1, 1},
		{"triage before it stores the brief", func() string {
			d.blocked("triage_briefs", triage(), nil)
			make()
			return send()
		}, sent, 1, 1},
		{"triage before it proposes the brief", func() string {
			d.blocked("proposals", triage(), nil)
			make()
			return send()
		}, sent, 1, 1},
		{"the worker before it takes the proposal", func() string {
			make()
			p := worker()
			d.blocked("actions", p, nil)
			return send()
		}, sent, 1, 1},
		{"the worker before the effect", func() string { make(); killed(newHold(), nil); return send() }, unknown, 0, 1},
		{"the worker between the effect and its answer", func() string { make(); killed(nil, newHold()); return send() }, unknown, 1, 1},
		{"the worker before it records the effect", func() string {
			make()
			mails, messages := d.out.counts()
			p := worker()
			d.blocked("tool_executions", p, func() {
				ticker := time.NewTicker(20 * time.Millisecond)
				defer ticker.Stop()
				for {
					if a, b := d.out.counts(); a > mails && b > messages {
						return
					}
					<-ticker.C
				}
			})
			return send()
		}, unknown, 1, 1},
		{"nothing, with --once", func() string {
			ended()
			p := d.start(d.triage, d.triageEnv, "--once")
			<-p.ended
			d.made()
			return send()
		}, sent, 1, 1},
	} {
		mails, messages := d.out.counts()
		d.due()
		got := step.run()
		nowMails, nowMessages := d.out.counts()
		for channel, n := range map[string]int{"the mailbox": nowMails - mails, "Slack": nowMessages - messages} {
			if n < step.least || n > step.most {
				t.Errorf("killed is %s: %d messages to %s, want %d to %d", step.name, n, channel, step.least, step.most)
			}
		}
		if got != step.want {
			t.Errorf("killed is %s: the actions are %q, want %q", step.name, got, step.want)
		}
	}

	d.checkMailed()
	d.checkText()
}

func newHold() chan struct{} { return make(chan struct{}) }

// checkMailed reads the mailbox with the briefs that arrived, and with forged ones.
func (d *delivery) checkMailed() {
	d.t.Helper()
	first := d.out.mails[0]
	id, _, _ := strings.Cut(first[strings.Index(first, "Message-Id: <")+len("Message-Id: <"):], ">")
	for name, raw := range map[string]string{
		"forged-id":     strings.Replace(first, id, "0123456789abcdef0123456789abcdef@example.com", 1),
		"forged-text":   first + "\r\nPay here: http://evil.example/\r\n",
		"forged-answer": "In-Reply-To: <1@work.example>\r\n" + first,
	} {
		d.out.put(name, raw)
	}
	mails, _ := d.out.counts()
	// The next run is due at once, and not a minute after the one with --once.
	d.exec("UPDATE triage_schedules SET holder = NULL, lease_until = NULL, next_run_at = now()")
	p := d.start(d.triage, d.triageEnv)
	d.await("the mailbox is not read", "SELECT count(*) = $1 FROM triage_messages WHERE sender = 'ann@example.com'", mails+3)
	p.kill()
	for what, sql := range map[string]string{
		"briefs without a decision": "SELECT count(*) FROM triage_messages m WHERE m.outgoing AND m.sender = 'ann@example.com' AND NOT m.awaits AND NOT EXISTS (SELECT FROM triage_decisions d WHERE d.message_id = m.message_id)",
		"findings in briefs":        "SELECT count(*) FROM triage_findings f JOIN triage_messages m USING (tenant_id, message_id) WHERE m.outgoing",
		"forged briefs, decided":    "SELECT count(*) FROM triage_messages m JOIN triage_decisions d USING (tenant_id, message_id) WHERE NOT m.outgoing AND m.sender = 'ann@example.com'",
	} {
		want := map[string]int{"briefs without a decision": mails, "forged briefs, decided": 3}[what]
		var n int
		if err := d.db.QueryRow(d.t.Context(), sql).Scan(&n); err != nil || n != want {
			d.t.Errorf("%d %s, %v, want %d", n, what, err, want)
		}
	}
}

// checkText looks for the text of the mail. Its owner chose to show subjects in briefs,
// which are arguments of actions, and words for the search of them; bodies are in tables of triage alone.
func (d *delivery) checkText() {
	d.t.Helper()
	rows, err := d.db.Query(d.t.Context(), `SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_|^information_schema$'`)
	if err != nil {
		d.t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		d.t.Fatal(err)
	}
	found := map[string]bool{}
	for _, table := range tables {
		var word, body bool
		if err := d.db.QueryRow(d.t.Context(), "SELECT coalesce(bool_or(t::text ILIKE '%"+briefWord+"%'), false), coalesce(bool_or(t::text ILIKE '%"+briefBody+"%'), false) FROM "+table+" t").Scan(&word, &body); err != nil {
			d.t.Fatal(err)
		}
		found[table] = word
		name := strings.TrimPrefix(table, "countersign_data.")
		ofTriage := strings.HasPrefix(name, "triage_")
		if body && !ofTriage || word && !ofTriage && !slices.Contains([]string{"actions", "action_words", "proposals"}, name) {
			d.t.Errorf("%s has text of mail: subject %t, body %t", table, word, body)
		}
	}
	if !found["countersign_data.actions"] || !found["countersign_data.triage_messages"] {
		d.t.Error("the subject is not in the brief: nothing was looked for")
	}
	if log := strings.ToLower(d.log.String()); strings.Contains(log, briefWord) || strings.Contains(log, briefBody) || !strings.Contains(log, `"mail read"`) {
		d.t.Error("the log of the processes has text of mail, or is not theirs")
	}
}
