package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/internal/cli"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/cli/mailsetup"
	"github.com/countersign-dev/countersign/internal/connection/login"
	"github.com/countersign-dev/countersign/internal/mail/dovecottest"
	"github.com/countersign-dev/countersign/internal/mail/imap"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/safehttp"
)

// newcomer is a person with a home folder and a database.
type newcomer struct {
	t    *testing.T
	home string
	env  map[string]string
}

// newNewcomer returns a newcomer with a database that is migrated already, which
// saves seconds.
func newNewcomer(t *testing.T) *newcomer {
	t.Helper()
	return newNewcomerWith(t, dbtest.URL(t))
}

func newNewcomerWith(t *testing.T, database string) *newcomer {
	t.Helper()
	home := t.TempDir()
	return &newcomer{t: t, home: home, env: map[string]string{
		"HOME": home, "DATABASE_URL": database, "XDG_DATA_HOME": filepath.Join(home, ".local/share"),
	}}
}

// run runs a command, with lines that the person types.
func (n *newcomer) run(ctx context.Context, in string, args ...string) result {
	n.t.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(ctx, args, command.System{In: strings.NewReader(in), Out: &out, Err: &errs, Getenv: func(name string) string { return n.env[name] }})
	return result{code, out.String(), errs.String()}
}

// want runs a command that must succeed and print texts.
func (n *newcomer) want(in string, args []string, texts ...string) result {
	n.t.Helper()
	got := n.run(n.t.Context(), in, args...)
	if got.code != command.ExitOK {
		n.t.Fatalf("%q: exit code %d\n%s%s", args, got.code, got.out, got.err)
	}
	for _, text := range texts {
		if !strings.Contains(got.out+got.err, text) {
			n.t.Errorf("%q does not print %q:\n%s%s", args, text, got.out, got.err)
		}
	}
	return got
}

// maildir fills a Maildir with some weeks of mail of a person.
func maildir(t *testing.T, dir, own string) {
	t.Helper()
	for _, folder := range []string{"", ".Sent", ".Archive", ".Drafts", ".Junk"} {
		for _, part := range []string{"cur", "new", "tmp"} {
			if err := os.MkdirAll(filepath.Join(dir, folder, part), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	put := func(folder, name, raw string, age time.Duration) {
		path := filepath.Join(dir, folder, "cur", name+".test:2,S")
		at := time.Now().Add(-age)
		if err := errors.Join(os.WriteFile(path, []byte(raw), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	const day = 24 * time.Hour
	for i := range 20 {
		age := time.Duration(i) * day
		date := time.Now().Add(-age).Format(time.RFC1123Z)
		id := fmt.Sprintf("r%d@work.example", i)
		put("", fmt.Sprintf("1%02d", i), fmt.Sprintf("Message-ID: <%s>\nFrom: Mila Okoro <mila@work.example>\nTo: %s\nSubject: Could you sign the offer today? (%d)\nDate: %s\n\nHi,\n\ncould you please look at the offer and sign it by noon today? The customer waits for it.\n\nThanks\nMila\n", id, own, i, date), age)
		put("", fmt.Sprintf("2%02d", i), fmt.Sprintf("Message-ID: <n%d@garden.example>\nFrom: Garden Weekly <news@garden.example>\nTo: %s\nSubject: Plants of the week (%d)\nDate: %s\nList-Id: <weekly.garden.example>\nList-Unsubscribe: <https://garden.example/u>\nPrecedence: bulk\n\nIn this issue: ten plants that need little water.\n", i, own, i, date), age)
		if i < 2 {
			continue // not answered yet
		}
		put(".Sent", fmt.Sprintf("3%02d", i), fmt.Sprintf("Message-ID: <s%d@example.org>\nFrom: Ann <%s>\nTo: mila@work.example\nSubject: Re: the offer\nDate: %s\nIn-Reply-To: <%s>\n\nHello Mila, thank you for the offer. I have signed it this morning, and sent it to the customer. Please let me know if anything else is missing.\n\n-- \nAnn Example\nExample Ltd\n", i, own, date, id), age)
	}
}

// TestSetupFromAMaildir goes from an empty database to the first brief with one
// command, again, and back to the beginning.
func TestSetupFromAMaildir(t *testing.T) {
	t.Parallel()
	n := newNewcomerWith(t, dbtest.EmptyURL(t))
	dir := filepath.Join(n.home, "Mail")
	maildir(t, dir, "ann@example.org")
	if err := os.WriteFile(filepath.Join(n.home, ".muttrc"), []byte("set folder=~/Mail\nset spoolfile=~/Mail\nset from=ann@example.org\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n.want("", []string{"triage", "setup", "--discover"}, "ann@example.org", dir, "mutt ~/.muttrc spoolfile")

	began := time.Now()
	got := n.want("", []string{"triage", "setup", "--yes"}, "found in mutt ~/.muttrc", "VIPs", "Needs you now", "Could you sign the offer", "observe-only", "expire after 7 days", "triage setup --undo ann-example.org")
	t.Logf("from an empty database to the first brief in %.1f s:\n%s%s", time.Since(began).Seconds(), got.err, got.out)

	again := decode[mailsetup.Result](t, n.want("", []string{"triage", "setup", dir, "--yes", "--json"}).out)
	if again.Stored != "updated" || again.Account != "ann-example.org" || again.Source != "mail-ann-example.org" || again.Brief.Total == 0 || len(again.Brief.Attention.Items) == 0 {
		t.Errorf("the second run answers %+v", again)
	}
	if d := again.Defaults; d == nil || len(d.VIP) != 1 || d.VIP[0] != "mila@work.example" || d.Newsletters[0] != "garden.example" || d.Signature != "Ann Example\nExample Ltd" || d.Language != "en" {
		t.Errorf("defaults = %+v", again.Defaults)
	}
	n.want("", []string{"triage", "setup", "--undo", dir}, "removed account ann-example.org")
	n.want("", []string{"triage", "setup", "--undo", "ann@example.org"}, "is removed already")
}

// TestSetupFromDovecot finds an account in a profile of Thunderbird, and asks for its
// password.
func TestSetupFromDovecot(t *testing.T) {
	t.Parallel()
	server := dovecottest.New(t)
	host, port, err := net.SplitHostPort(server.Address)
	if err != nil {
		t.Fatal(err)
	}
	n := newNewcomer(t)
	n.profile("ann@example.org", host, port)
	deliver(t, server, "ann", "ann@example.org")

	wrong := n.run(t.Context(), "not the password\n", "triage", "setup")
	if wrong.code != command.ExitFailed || !strings.Contains(wrong.err, "log in to the mailbox") {
		t.Errorf("a wrong password: exit code %d\n%s", wrong.code, wrong.err)
	}
	began := time.Now()
	got := n.want(dovecottest.Password+"\n", []string{"triage", "setup"}, "found in thunderbird", "Password of ann", "Login:   works", "Needs you now", "Could you sign the offer")
	t.Logf("from the command to the first brief in %.1f s:\n%s%s", time.Since(began).Seconds(), got.err, got.out)
	again := decode[mailsetup.Result](t, n.want("", []string{"triage", "setup", "ann@example.org", "--yes", "--json"}).out)
	if again.Stored != "updated" || again.Source != "mail-ann-example.org" || len(again.Brief.Attention.Items) == 0 {
		t.Errorf("the second run answers %+v", again)
	}

	for _, out := range []string{got.out + got.err, wrong.out + wrong.err} {
		if strings.Contains(out, dovecottest.Password) || strings.Contains(out, "not the password") {
			t.Errorf("a password shows:\n%s", out)
		}
	}
	conn := dbtest.Connect(t, n.env["DATABASE_URL"])
	var reader, source []byte
	if err := conn.QueryRow(t.Context(), "SELECT a.secret, s.secret FROM countersign_data.triage_accounts a, countersign_data.sources s WHERE s.source_id = 'mail-' || a.name").Scan(&reader, &source); err != nil {
		t.Fatal(err)
	}
	if len(reader) == 0 || len(source) == 0 || bytes.Equal(reader, source) || bytes.Contains(append(reader, source...), []byte(dovecottest.Password)) {
		t.Error("the password is not stored twice, encrypted")
	}
	n.want("", []string{"triage", "setup", "--undo", "ann@example.org"}, "removed account ann-example.org")

	file := filepath.Join(n.home, "password")
	if err := os.WriteFile(file, []byte(dovecottest.Password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	reads := decode[mailsetup.Result](t, n.want("", []string{"triage", "setup", "ann@example.org", "--read-password", file, "--yes", "--json"}).out)
	if reads.Source != "" || len(reads.Brief.Attention.Items) == 0 {
		t.Errorf("with a password for reading alone: %+v", reads)
	}
}

// mailIssuer is an authorization server whose refresh tokens are valid once. Its access
// tokens end soon, so that each connection needs another one.
type mailIssuer struct {
	*httptest.Server
	mu               sync.Mutex
	n, renewals      int
	access, refresh  map[string]bool
	misused, refused []string
}

func newMailIssuer(t *testing.T) *mailIssuer {
	t.Helper()
	is := &mailIssuer{access: map[string]bool{}, refresh: map[string]bool{}}
	is.Server = httptest.NewServer(is)
	t.Cleanup(is.Close)
	return is
}

func (is *mailIssuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	is.mu.Lock()
	defer is.mu.Unlock()
	var answer any
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		answer = map[string]any{
			"issuer": is.URL, "authorization_endpoint": is.URL + "/authorize", "token_endpoint": is.URL + "/token",
			"device_authorization_endpoint": is.URL + "/device", "code_challenge_methods_supported": []string{"S256"},
		}
	case "/authorize":
		q := r.URL.Query()
		if q.Get("client_id") != "the-client" || q.Get("code_challenge") == "" || q.Get("scope") != "mail" {
			is.misused = append(is.misused, r.URL.RawQuery)
		}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"state": {q.Get("state")}, "code": {"c"}}.Encode(), http.StatusFound)
		return
	case "/device":
		answer = map[string]any{"device_code": "d", "user_code": "ABCD", "verification_uri": is.URL + "/enter", "expires_in": 60, "interval": 0.01}
	case "/token":
		if is.token(r) {
			answer = is.grant()
			break
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		answer = map[string]string{"error": "invalid_grant"}
	case "/introspect":
		answer = map[string]any{"active": is.access[r.PostFormValue("token")], "username": "ann"}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// token reports whether a request for tokens is granted.
func (is *mailIssuer) token(r *http.Request) bool {
	if r.PostFormValue("grant_type") != "refresh_token" {
		return r.PostFormValue("code_verifier") != "" || r.PostFormValue("device_code") == "d"
	}
	old := r.PostFormValue("refresh_token")
	if !is.refresh[old] {
		is.refused = append(is.refused, old)
		return false
	}
	delete(is.refresh, old)
	is.renewals++
	return true
}

func (is *mailIssuer) grant() any {
	is.n++
	access, refresh := fmt.Sprintf("access-secret-%d", is.n), fmt.Sprintf("refresh-secret-%d", is.n)
	is.access[access], is.refresh[refresh] = true, true
	return map[string]any{"access_token": access, "refresh_token": refresh, "token_type": "Bearer", "expires_in": 60}
}

// terminal is the terminal of a person with a browser: the output of a command, and the
// lines that the person pastes.
type terminal struct {
	watched
	lines  *io.PipeWriter
	opened map[string]bool
}

var authorizeURL = regexp.MustCompile(`http\S+/authorize\?\S+`)

func (p *terminal) Write(raw []byte) (int, error) {
	p.text.Write(raw)
	if strings.Contains(string(raw), "(y/n)") {
		go func() { _, _ = io.WriteString(p.lines, "n\n") }() // ends when the command reads
	}
	for _, at := range authorizeURL.FindAllString(p.text.String(), -1) {
		if !p.opened[at] {
			p.opened[at] = true
			go p.open(at) // ends with the answer of the servers of the test
		}
	}
	return len(raw), nil
}

// open opens an address in the browser. To the API the person brings back a line.
func (p *terminal) open(at string) {
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(at)
	if err != nil {
		return
	}
	_ = resp.Body.Close()
	back, err := resp.Location()
	if err != nil {
		return
	}
	if back.Path == "/callback" {
		if resp, err = browser.Get(back.String()); err == nil {
			_ = resp.Body.Close()
		}
		return
	}
	_, _ = io.WriteString(p.lines, login.Answer(back.Query())+"\n")
}

// TestSetupLogsInWithOAuth logs in to Dovecot with XOAUTH2. Triage and the source each
// have a login, and renew it.
func TestSetupLogsInWithOAuth(t *testing.T) {
	t.Parallel()
	for name, device := range map[string]bool{"in a browser": false, "on another device": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, issuer := dovecottest.New(t), newMailIssuer(t)
			if err := server.AcceptTokens(issuer.URL + "/introspect"); err != nil {
				t.Fatal(err)
			}
			host, port, err := net.SplitHostPort(server.Address)
			if err != nil {
				t.Fatal(err)
			}
			deliver(t, server, "ann", "ann@example.org")
			n := newNewcomer(t)
			args := []string{"triage", "setup", "ann@example.org", "--host", host, "--port", port, "--user", "ann", "--security", "plain", "--issuer", issuer.URL, "--scope", "mail", "--client-id", "the-client"}
			if device {
				args = append(args, "--device")
			}
			in, lines := io.Pipe()
			out := &terminal{lines: lines, opened: map[string]bool{}}

			code := cli.Run(t.Context(), args, command.System{In: in, Out: out, Err: out, Getenv: func(name string) string { return n.env[name] }})

			text := out.text.String()
			if code != command.ExitOK || !strings.Contains(text, "Could you sign the offer") {
				t.Fatalf("exit code %d\n%s", code, text)
			}
			if strings.Contains(text, "access-secret") || strings.Contains(text, "refresh-secret") {
				t.Errorf("a token shows:\n%s", text)
			}
			n.want("", append(args, "--yes"), "stored one is kept", "Set up ann-example.org")
			issuer.mu.Lock()
			defer issuer.mu.Unlock()
			if issuer.renewals < 2 || len(issuer.refused) > 0 || len(issuer.misused) > 0 {
				t.Errorf("%d renewals, refused %q, misused %q, want some renewals with valid tokens", issuer.renewals, issuer.refused, issuer.misused)
			}
		})
	}
}

// profile makes a profile of Thunderbird with an account without TLS.
func (n *newcomer) profile(address, host, port string) {
	n.t.Helper()
	dir := filepath.Join(n.home, ".thunderbird", "p")
	user, _, _ := strings.Cut(address, "@")
	prefs := fmt.Sprintf(`user_pref("mail.accountmanager.accounts", "account1");
user_pref("mail.account.account1.server", "server1");
user_pref("mail.account.account1.identities", "id1");
user_pref("mail.identity.id1.useremail", %q);
user_pref("mail.server.server1.type", "imap");
user_pref("mail.server.server1.hostname", %q);
user_pref("mail.server.server1.port", %s);
user_pref("mail.server.server1.socketType", 0);
user_pref("mail.server.server1.userName", %q);
`, address, host, port, user)
	if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "prefs.js"), []byte(prefs), 0o600),
		os.WriteFile(filepath.Join(filepath.Dir(dir), "profiles.ini"), []byte("[Profile0]\nIsRelative=1\nPath=p\n"), 0o600)); err != nil {
		n.t.Fatal(err)
	}
}

// deliver appends the mail of a Maildir to the mailbox of a user.
func deliver(t *testing.T, server *dovecottest.Server, user, own string) {
	t.Helper()
	from := t.TempDir()
	maildir(t, from, own)
	w, err := imap.NewWriter(imap.Config{
		Address: server.Address, Username: user, Security: imap.Plain, Networks: safehttp.Loopback(),
		Secret: func(context.Context) (string, error) { return dovecottest.Password, nil },
	}, func(raw []byte) []byte { digest := message.Identify(raw); return digest[:] })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	for part, folder := range map[string]string{"cur": "INBOX", ".Sent/cur": "Sent"} {
		files, err := os.ReadDir(filepath.Join(from, part))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			raw, err := os.ReadFile(filepath.Join(from, part, f.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Append(t.Context(), folder, []string{"\\Seen"}, bytes.ReplaceAll(raw, []byte("\n"), []byte("\r\n"))); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// rows counts the rows of every table of the database.
func (n *newcomer) rows() map[string]int {
	n.t.Helper()
	conn := dbtest.Connect(n.t, n.env["DATABASE_URL"])
	tables, err := conn.Query(n.t.Context(), `SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND n.nspname !~ '^pg_|^information_schema$' ORDER BY 1`)
	if err != nil {
		n.t.Fatal(err)
	}
	names, err := pgx.CollectRows(tables, pgx.RowTo[string])
	if err != nil {
		n.t.Fatal(err)
	}
	counts := make(map[string]int)
	for _, name := range names {
		var count int
		if err := conn.QueryRow(n.t.Context(), "SELECT count(*) FROM "+name).Scan(&count); err != nil {
			n.t.Fatal(err)
		}
		counts[name] = count
	}
	return counts
}

// TestSetupIsUndoneWhole compares the rows of all tables. The record of the work
// stays.
func TestSetupIsUndoneWhole(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	dir := filepath.Join(n.home, "Mail")
	maildir(t, dir, "ann@example.org")
	n.want("", []string{"triage", "setup", "--undo", "mail"}, "was not set up")
	before := n.rows()

	n.want("", []string{"triage", "setup", dir, "--yes"})
	during := n.rows()
	n.want("", []string{"triage", "setup", "--undo", dir}, "removed account mail")

	after := n.rows()
	if during["countersign_data.triage_messages"] == 0 || during["countersign_data.sources"] == before["countersign_data.sources"] {
		t.Error("setup stored nothing that could be removed")
	}
	stay := map[string]string{
		"countersign_data.events":           "is the record",
		"countersign_data.db_logins":        "has a row for every start of the environment",
		"countersign_data.workers":          "has a row for every start of the environment",
		"countersign_data.fleet_samples":    "has a row for every minute of the environment",
		"countersign_data.backlog_samples":  "has a row for every minute of the environment",
		"river.river_job":                   "has the jobs of the environment",
		"countersign_data.checkpoints":      "is the record, as its background job closes it",
		"countersign_data.retention_checks": "is the memory of a background job",
	}
	for name, count := range after {
		if count != before[name] && stay[name] == "" {
			t.Errorf("%s has %d rows, and had %d before", name, count, before[name])
		}
	}
}

// TestSetupThatWasInterruptedIsRunAgain ends the command at several points.
func TestSetupThatWasInterruptedIsRunAgain(t *testing.T) {
	t.Parallel()
	n := newNewcomer(t)
	dir := filepath.Join(n.home, "Mail")
	maildir(t, dir, "ann@example.org")
	for _, line := range []string{"Login:", "Source:", "Reading:"} {
		ctx, cancel := context.WithCancel(t.Context())
		out := &watched{until: line, then: cancel}
		code := cli.Run(ctx, []string{"triage", "setup", dir, "--yes"}, command.System{In: strings.NewReader(""), Out: out, Err: out, Getenv: func(name string) string { return n.env[name] }})
		cancel()
		if code == command.ExitOK || !out.seen {
			t.Errorf("interrupted at %q: exit code %d, seen %v\n%s", line, code, out.seen, out.text.String())
		}
	}

	n.want("", []string{"triage", "setup", dir, "--yes"}, "Set up mail in")
	n.want("", []string{"triage", "setup", "--undo", dir}, "removed account mail")
}

// watched is an output that calls a function when a text is written to it.
type watched struct {
	until string
	then  func()
	seen  bool
	text  bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.text.Write(p)
	if !w.seen && strings.Contains(w.text.String(), w.until) {
		w.seen = true
		w.then()
	}
	return len(p), nil
}

// TestNewAccountsAreNoticedWeekly has an account appear, and a week pass.
func TestNewAccountsAreNoticedWeekly(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	home := t.TempDir()
	a := &command.App{System: command.System{Out: &out, Err: &out, Getenv: func(name string) string { return map[string]string{"HOME": home}[name] }}}
	notice := func(after time.Duration) string {
		t.Helper()
		out.Reset()
		if err := mailsetup.Notice(a)(time.Now().Add(after)); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	config := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	choose := func(choice string) {
		t.Helper()
		system := a.System
		system.In = strings.NewReader("")
		if code := cli.Run(t.Context(), []string{"triage", "setup", "--rediscover", choice}, system); code != command.ExitOK {
			t.Fatalf("--rediscover %s: exit code %d\n%s", choice, code, out.String())
		}
	}
	const day = 24 * time.Hour
	config("[user]\nemail = ann@example.org\n")
	if got := notice(8 * day); got != "" {
		t.Errorf("without the choice: %s", got)
	}
	choose("weekly")
	config("[user]\nemail = ann@new.example\n")

	if got := notice(6 * day); got != "" {
		t.Errorf("before a week: %s", got)
	}
	if got := notice(8 * day); !strings.Contains(got, "New mail account on this machine: ann@new.example (found in git ~/.gitconfig user.email)") || strings.Contains(got, "example.org") {
		t.Errorf("after a week: %s", got)
	}
	if got := notice(16 * day); got != "" {
		t.Errorf("a second time: %s", got)
	}
	choose("never")
	config("[user]\nemail = ann@third.example\n")
	if got := notice(30 * day); got != "" {
		t.Errorf("after --rediscover never: %s", got)
	}
}

// TestSetupInAnInstallation sets an account up at a running API without a triage
// process. It makes the database login of triage, and removes it.
func TestSetupInAnInstallation(t *testing.T) {
	t.Parallel()
	d := open(t)
	dir := filepath.Join(d.dir, "Mail")
	maildir(t, dir, "ann@example.org")
	n := &newcomer{t: t, home: d.dir, env: map[string]string{
		"HOME": d.dir, "DATABASE_URL": d.database, "COUNTERSIGN_URL": d.url, "COUNTERSIGN_TOKEN": d.environment.Tokens().Owner,
	}}
	conn := dbtest.Connect(t, d.database)
	t.Cleanup(func() {
		if _, err := conn.Exec(context.WithoutCancel(t.Context()), "DROP ROLE IF EXISTS countersign_triage_demo"); err != nil {
			t.Error(err)
		}
	})
	logins := func() (count int) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_roles WHERE rolname = 'countersign_triage_demo'").Scan(&count); err != nil {
			t.Fatal(err)
		}
		return count
	}
	file := filepath.Join(d.dir, ".config", "countersign", "triage.env")

	n.want("", []string{"source", "set", "home", "--kind", "dav", "--credentials", `{"values": {"password": "x"}}`, "--config", `{"user": "ann", "calendars": {"default": "https://dav.example.org/ann/"}}`})
	tags := func() (source string) {
		t.Helper()
		const query = `SELECT coalesce(string_agg(a.proposals #>> '{actions,create-reminder,source}' || ' ' || l.tools::text, ''), '') FROM countersign_data.triage_accounts a, countersign_data.db_logins l
			WHERE a.name = 'mail' AND l.login = 'countersign_triage_demo' AND l.unbound_at IS NULL`
		if err := conn.QueryRow(t.Context(), query).Scan(&source); err != nil {
			t.Fatal(err)
		}
		return source
	}

	n.want("", []string{"triage", "setup", dir, "--yes"}, "Needs you now", "run triage with the variables in "+file, "add-contact and create-reminder call home")
	if got := tags(); !strings.HasPrefix(got, "home {") || !strings.Contains(got, "*:add-contact,*:create-reminder,*:message.") {
		t.Errorf("the actions of tags call %s", got)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 || logins() != 1 {
		t.Errorf("the file of the login: %v, %v; %d logins, want one", info, err, logins())
	}
	n.want("", []string{"triage", "setup", dir, "--yes"}, "is brought up to date")

	// A setup before action tags bound the tools of mail alone.
	if _, err := conn.Exec(t.Context(), "UPDATE countersign_data.db_logins SET tools = ARRAY(SELECT x FROM unnest(tools) x WHERE x LIKE '*:message.%') WHERE login = 'countersign_triage_demo'"); err != nil {
		t.Fatal(err)
	}
	again := []string{"db-login", "bind", "countersign_triage_demo", "--tenant", "demo", "--triage"}
	n.want("", []string{"triage", "setup", dir, "--yes"}, "may not propose *:", "*:add-contact, *:create-reminder. Bind it again", "countersign "+strings.Join(again, " "))
	n.want("", again, "bound countersign_triage_demo")
	if said := n.want("", []string{"triage", "setup", dir, "--yes"}, "is brought up to date"); strings.Contains(said.out+said.err, "may not propose") || !strings.Contains(tags(), "*:add-contact,*:create-reminder,") {
		t.Errorf("bound again, setup prints %s; the tools are %s", said.out+said.err, tags())
	}

	n.want("", []string{"triage", "setup", "--undo", dir}, "removed account mail")
	if _, err := os.Stat(file); err == nil || logins() != 0 {
		t.Errorf("the login is left: %v, %d logins", err, logins())
	}
	if got := tags(); got != "" {
		t.Errorf("the actions of tags are left: %s", got)
	}
}
