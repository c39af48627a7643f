package cli_test

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/dev"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/tenant/identity/identitytest"
)

// owner makes an owner's token in the database.
func (d *fixture) owner() string {
	d.t.Helper()
	s := d.want(d.run(d.t.Context(), "", "", "token", "create", "--tenant", dev.TenantName, "--role", "owner", "--name", "root"), command.ExitOK, "shown only once")
	return strings.TrimSpace(s.out)
}

func setsTokensUp(d *fixture) {
	ctx, root := d.t.Context(), d.owner()
	as := func(args ...string) result { return d.run(ctx, root, "", args...) }
	made := decode[wire.IssuedToken](d.t, d.want(as("token", "create", "--role", "agent", "--name", "narrow", "--scope", "actions:read",
		"--tool", "notes:*", "--expires-in", "1h", "--json"), command.ExitOK).out)
	d.want(d.run(ctx, made.Token, "", "whoami"), command.ExitOK, "narrow", "agent", "demo", "actions:read", "notes:*", made.ID)
	d.want(d.run(ctx, made.Token, "", "submit", "--tool", "notes:notes.list"), command.ExitFailed, "actions:propose")
	if s := d.want(as("token", "list"), command.ExitOK, made.ID, "narrow", "actions:read notes:*", "never"); strings.Contains(s.out, made.Token) {
		d.t.Error("token list shows a secret")
	}

	next := strings.TrimSpace(d.want(as("token", "rotate", made.ID, "--overlap", "1h"), command.ExitOK, "shown only once").out)
	for _, token := range []string{made.Token, next} {
		d.want(d.run(ctx, token, "", "whoami"), command.ExitOK, made.ID)
	}
	d.want(as("token", "rotate", made.ID, "--overlap", "1h"), command.ExitFailed, "without overlap")
	d.want(as("token", "rotate", made.ID), command.ExitOK)
	d.want(as("token", "narrow", made.ID, "--tool", "notes:notes.list", "--expires-in", "10m"), command.ExitOK, "narrowed token "+made.ID, "notes:notes.list")
	d.want(as("token", "narrow", made.ID, "--tool", "notes:*"), command.ExitUsage, "/tools/0")
	d.want(d.run(ctx, next, "", "whoami"), command.ExitFailed, "not valid", "countersign login")
	d.want(as("operator", "session", "list"), command.ExitOK)
	d.want(as("operator", "session", "end", made.ID), command.ExitFailed, "no open session")
	d.want(as("token", "revoke", made.ID), command.ExitOK, "revoked")
	if s := as("token", "list", "--json"); strings.Contains(s.out, made.ID) {
		d.t.Error("token list shows a token that was revoked")
	}
	d.want(as("token", "list", "--all"), command.ExitOK, made.ID, "revoked ")

	admin := d.environment.Tokens().Admin
	d.want(d.run(ctx, admin, "", "token", "create", "--role", "admin", "--name", "x"), command.ExitFailed, "role admin may not make or change one of the role admin")
	for _, wrong := range [][]string{
		{"token", "create", "--role", "agent", "--name", "x", "--scope", "everything"}, {"token", "create", "--role", "agent", "--name", "x", "--operator", "ana"},
		{"token", "rotate", next}, {"token", "rotate", made.ID, "--overlap", "1000h"}, {"operator", "add"}, {"operator", "add", "--name", "x", "--role", "king"},
		{"operator", "set", made.ID, "--name", "x"}, {"provider", "set", "x"},
	} {
		if s := d.want(as(wrong...), command.ExitUsage); strings.Contains(s.err, next) {
			d.t.Errorf("%q repeats a secret", wrong)
		}
	}
	d.recorded("token " + made.ID + " revoked")
	d.recorded("issued for the role owner")
}

// recorded fails the test unless the record of configuration tells of a
// subject.
func (d *fixture) recorded(subject string) {
	d.t.Helper()
	conn := dbtest.Connect(d.t, d.database)
	var n int
	err := conn.QueryRow(d.t.Context(), "SELECT count(1) FROM events WHERE kind = 'configured' AND items::text LIKE '%' || $1 || '%'", subject).Scan(&n)
	if err != nil || n == 0 {
		d.t.Errorf("nothing tells of %q (%v)", subject, err)
	}
}

// readable waits until all events can be read: readers wait for the end of transactions
// that are open on the server, those of other tests among them.
func (d *fixture) readable() {
	d.t.Helper()
	conn := dbtest.Connect(d.t, d.database)
	for done := false; !done; {
		const ended = "SELECT max(txid::text::bigint) < pg_snapshot_xmin(pg_current_snapshot())::text::bigint FROM events"
		if err := conn.QueryRow(d.t.Context(), ended).Scan(&done); err != nil {
			d.t.Fatal(err)
		}
	}
}

// person is a command line of somebody who has no token.
type person struct {
	*fixture
	dir string
	// browser is the program that opens addresses.
	browser string
}

func (p person) run(args ...string) result {
	p.t.Helper()
	var out bytes.Buffer
	errs := &clicks{t: p}
	env := map[string]string{"COUNTERSIGN_URL": p.url, "COUNTERSIGN_CONFIG": p.dir, "BROWSER": cmp.Or(p.browser, filepath.Join(p.dir, "none"))}
	code := cli.Run(p.t.Context(), args, command.System{In: strings.NewReader(""), Out: &out, Err: errs, Getenv: func(name string) string { return env[name] }})
	errs.wg.Wait()
	return result{code, out.String(), errs.text.String()}
}

// clicks opens the address that a command shows, as a person would.
type clicks struct {
	t    person
	wg   sync.WaitGroup
	text bytes.Buffer
}

func (c *clicks) Write(b []byte) (int, error) {
	for _, line := range strings.Split(string(b), "\n") {
		if strings.HasPrefix(line, "http") {
			c.wg.Go(func() {
				answer, err := http.Get(line) // the address is the one to open
				if err != nil {
					c.t.t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				_ = answer.Body.Close()
			})
		}
	}
	return c.text.Write(b)
}

// opensBrowser has a person open the operator's page, by a program that keeps the
// address.
func (d *fixture) opensBrowser(p person) {
	d.t.Helper()
	shown := strings.TrimSpace(d.want(p.run("ui"), command.ExitOK, "once").out)
	if !strings.HasPrefix(shown, d.url+"/login#code=cs_code_") {
		d.t.Errorf("the address is %q", shown)
	}
	code := decode[wire.LoginCode](d.t, d.want(p.run("ui", "--json"), command.ExitOK).out)
	if code.URL == shown || !strings.HasSuffix(code.URL, "#code="+code.Code) {
		d.t.Errorf("another code is %+v", code)
	}
	d.want(p.run("ui", "--open"), command.ExitFailed, "BROWSER")
	kept, program := filepath.Join(d.t.TempDir(), "address"), filepath.Join(d.t.TempDir(), "browser")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf %s \"$1\" > "+kept+"\n"), 0o700); err != nil {
		d.t.Fatal(err)
	}
	p.browser = filepath.Join(p.dir, "none") + string(filepath.ListSeparator) + program + " %s"
	shown = strings.TrimSpace(d.want(p.run("ui", "--open"), command.ExitOK).out)
	if opened, err := os.ReadFile(kept); err != nil || string(opened) != shown {
		d.t.Errorf("opened %q, %v, want %q", opened, err, shown)
	}
}

// testsClaims previews logins at the provider acme.
func (d *fixture) testsClaims(as func(args ...string) result) {
	d.t.Helper()
	test := func(claims string, want int, contains ...string) {
		d.t.Helper()
		file := filepath.Join(d.t.TempDir(), "claims.json")
		if err := os.WriteFile(file, []byte(claims), 0o600); err != nil {
			d.t.Fatal(err)
		}
		d.want(as("provider", "test", "acme", "--claims", file), want, contains...)
	}
	test(`{"sub":"new","groups":["dev","ops"],"email":"n@acme.com"}`, command.ExitOK, "operator", "the claim groups has ops", "none that is verified")
	test(`{"sub":"new","groups":"dev"}`, command.ExitOK, "refused", "no role here")
	test(`{"sub":"new","groups":"ops","iss":"https://evil.example"}`, command.ExitOK, "refused", "the issuer in the claims")
	test(`{"sub":"new","groups":"ops","aud":["other"]}`, command.ExitOK, "refused", "the audience in the claims")
	test(`{"groups":"ops"}`, command.ExitFailed, "invalid claims")
	d.want(as("provider", "test", "none", "--claims", "-"), command.ExitUsage, "unknown provider", "provider list")
	d.want(as("provider", "test", "acme"), command.ExitUsage, "--claims")
}

// logsOwnerIn logs an owner in without the issuer, on the database.
func (d *fixture) logsOwnerIn(as func(args ...string) result, person string) {
	d.t.Helper()
	ui := []string{"ui", "--tenant", dev.TenantName, "--json"}
	d.want(as(ui...), command.ExitFailed, "no such owner")
	d.want(as("operator", "set", person, "--role", "owner"), command.ExitOK)
	code := decode[wire.LoginCode](d.t, d.want(as(append(ui, "--name", "Ana Lima")...), command.ExitOK).out)
	answer, err := http.Post(d.url+"/auth/session", "application/json", strings.NewReader(`{"code":"`+code.Code+`"}`))
	if err != nil {
		d.t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK || code.URL != d.url+"/login#code="+code.Code {
		d.t.Errorf("the code %s = %d", code.URL, answer.StatusCode)
	}
	d.recorded("login code made for the owner Ana Lima")
	d.want(as("ui", "--tenant", dev.TenantName, "--name", "Bo"), command.ExitFailed, "no such owner")
	d.want(as("ui", "--name", "Bo"), command.ExitUsage, "--tenant")
	d.want(as("operator", "set", person, "--role", "none"), command.ExitOK)
}

func logsIn(d *fixture) {
	ctx, root, issuer := d.t.Context(), d.owner(), identitytest.New(d.t)
	as := func(args ...string) result { return d.run(ctx, root, "", args...) }
	ana := person{fixture: d, dir: filepath.Join(d.dir, "ana")}
	login := []string{"login", "--issuer", issuer.URL(), "--client-id", "cli"}
	d.want(ana.run("whoami"), command.ExitFailed, "countersign login")
	d.want(ana.run("login"), command.ExitUsage, "--issuer")
	d.want(ana.run(login...), command.ExitFailed, "not valid")
	if _, err := os.Stat(filepath.Join(ana.dir, "logins.json")); err == nil {
		d.t.Error("a login that the API does not take was kept")
	}
	d.want(d.run(ctx, d.environment.Tokens().Admin, "", "provider", "set", "acme", "--issuer", issuer.URL(), "--audience", "cli"), command.ExitFailed, "role admin")
	d.want(as("provider", "set", "acme", "--issuer", issuer.URL(), "--audience", "cli"), command.ExitFailed, "allow-audience")
	d.want(as("provider", "allow-audience", "--tenant", "demo", "--issuer", issuer.URL(), "--audience", "cli"), command.ExitOK, "allowed cli")
	d.want(as("provider", "set", "acme", "--issuer", issuer.URL(), "--audience", "cli", "--role-claim", "groups", "--role", "ops=operator"), command.ExitOK, "set acme")
	d.want(as("provider", "list"), command.ExitOK, "acme", issuer.URL(), "groups", "ops=operator")
	d.want(ana.run(login...), command.ExitFailed, "has no role here")

	issuer.LogIn(identitytest.Claims{"sub": "ana", "name": "Ana Lima", "groups": []string{"ops"}})
	d.want(ana.run(login...), command.ExitOK, "Ana Lima", "operator", "demo")
	d.want(ana.run("whoami"), command.ExitOK, "Ana Lima")
	s := d.want(ana.run("list"), command.ExitOK)
	if strings.Contains(s.out+s.err, "eyJ") {
		d.t.Error("a command shows the token")
	}
	me := decode[wire.Me](d.t, d.want(ana.run("whoami", "--json"), command.ExitOK).out)
	if me.TokenID != "" || me.OperatorID == "" {
		d.t.Errorf("a person is %+v", me)
	}
	d.opensBrowser(ana)
	d.testsClaims(as)
	d.logsOwnerIn(as, me.OperatorID)
	other := person{fixture: d, dir: ana.dir}
	other.fixture = &fixture{t: d.t, environment: d.environment, url: "http://127.0.0.1:1", database: d.database}
	d.want(other.run("whoami"), command.ExitFailed, "no answer") // and no token went there

	d.want(as("operator", "list"), command.ExitOK, "Ana Lima", me.OperatorID, issuer.URL())
	d.want(as("operator", "set", me.OperatorID, "--role", "viewer", "--slack-team", "T1", "--slack-user", "U1"), command.ExitOK, "set")
	d.want(ana.run("whoami"), command.ExitOK, "viewer")
	d.want(as("operator", "disable", me.OperatorID), command.ExitOK, "disabled")
	d.want(ana.run("whoami"), command.ExitFailed, "disabled here")
	d.want(as("operator", "enable", me.OperatorID), command.ExitOK, "enabled")
	bo := decode[wire.Operator](d.t, d.want(as("operator", "add", "--name", "Bo", "--role", "operator", "--json"), command.ExitOK).out)
	d.want(as("token", "create", "--role", "operator", "--name", "bo's", "--operator", bo.ID), command.ExitOK)

	d.want(ana.run("logout"), command.ExitOK, "logged out")
	d.want(ana.run("logout"), command.ExitOK, "not logged in to")
	d.want(ana.run("whoami"), command.ExitFailed, "countersign login")
	if len(issuer.Revoked()) != 1 {
		d.t.Errorf("the issuer was asked to forget %d logins, want one", len(issuer.Revoked()))
	}
	d.want(ana.run(login...), command.ExitOK)
	issuer.SetDown(true)
	late := identitytest.Claims{"sub": "late", "exp": time.Now().Add(time.Hour).Unix(), "groups": "ops"}
	d.want(d.run(ctx, issuer.Token("cli", time.Now(), late), "", "whoami"), command.ExitOK) // by the keys that are known
	issuer.SetDown(false)
	d.want(as("provider", "delete", "acme"), command.ExitOK, "deleted")
}
