package cli_test

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// role makes a role of the database, with attributes such as LOGIN.
func (d *fixture) role(attributes string) (name string) {
	d.t.Helper()
	name = "app_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	db := d.connect("")
	if _, err := db.Exec(d.t.Context(), "CREATE ROLE "+name+" "+attributes); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		ctx := context.WithoutCancel(d.t.Context())
		db, err := pgx.Connect(ctx, d.database)
		if err != nil {
			d.t.Error(err)
			return
		}
		defer func() { _ = db.Close(ctx) }()
		if _, err := db.Exec(ctx, "DROP ROLE "+name); err != nil {
			d.t.Error(err)
		}
	})
	return name
}

// connect connects to the database, as a login unless that is empty.
func (d *fixture) connect(login string) *pgx.Conn {
	d.t.Helper()
	db, err := pgx.Connect(d.t.Context(), d.database)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { _ = db.Close(context.WithoutCancel(d.t.Context())) })
	if login != "" {
		if _, err := db.Exec(d.t.Context(), "SET SESSION AUTHORIZATION "+login); err != nil {
			d.t.Fatal(err)
		}
	}
	return db
}

// proposeInSQL proposes an envelope, and commits.
func (d *fixture) proposeInSQL(db *pgx.Conn, envelope string) (id string, err error) {
	d.t.Helper()
	return id, db.QueryRow(d.t.Context(), "SELECT countersign.propose($1)::text", envelope).Scan(&id)
}

// stateInSQL waits until a proposal waits no more, and returns its state.
func (d *fixture) stateInSQL(db *pgx.Conn, id string) (state string) {
	d.t.Helper()
	for state = "waiting"; state == "waiting"; {
		if err := db.QueryRow(d.t.Context(), "SELECT state FROM countersign.proposal_status($1)", id).Scan(&state); err != nil {
			d.t.Fatal(err)
		}
	}
	return state
}

func proposesInSQL(d *fixture) {
	login := d.role("LOGIN")
	as := func(args ...string) result {
		return d.run(d.t.Context(), "", "", append([]string{"db-login"}, args...)...)
	}
	bound := decode[struct {
		ID string `json:"login_id"`
	}](d.t, d.want(as("bind", login, "--tenant", "demo", "--tool", "notes:*", "--json"), command.ExitOK).out)
	d.recorded("database login " + login + " bound")
	d.want(as("list", "--tenant", "demo"), command.ExitOK, login, bound.ID, "notes:*")
	db := d.connect(login)

	const list = `{"type":"mcp.exec","external_id":"in-sql","tool":{"source":"notes","name":"notes.list"},"args":{}}`
	accepted, err := d.proposeInSQL(db, list)
	if err != nil {
		d.t.Fatal(err)
	}
	if state := d.stateInSQL(db, accepted); state != "accepted" {
		d.t.Errorf("what policy allows is %s", state)
	}
	d.want(d.operator("get", accepted), command.ExitOK, "notes.list")
	d.want(d.operator("proposals", "show", accepted), command.ExitFailed, "is the action of the same id")
	refused, err := d.proposeInSQL(db, `{"type":"mcp.exec","tool":{"source":"notes","name":"notes.list"},"args":{},"colour\u001b[2J":1}`)
	if err != nil {
		d.t.Fatal(err)
	}
	duplicate, err := d.proposeInSQL(db, list)
	if err != nil {
		d.t.Fatal(err)
	}
	for id, want := range map[string]string{refused: "refused", duplicate: "duplicate"} {
		if state := d.stateInSQL(db, id); state != want {
			d.t.Errorf("%s is %s, want %s", id, state, want)
		}
	}
	s := d.want(d.operator("proposals", "list", "--login", login), command.ExitOK, refused, "unknown_field", duplicate, "the same as "+accepted)
	s.out += d.want(d.operator("proposals", "show", refused), command.ExitOK, "invalid", "unknown_field", "envelope", `\u{001B}[2J`).out
	if strings.Contains(s.out, "\x1b") || strings.Contains(s.out, accepted+"  ") {
		d.t.Errorf("shown: %q", s.out)
	}
	got := decode[wire.SQLProposalDetail](d.t, d.want(d.operator("proposals", "show", refused, "--json"), command.ExitOK).out)
	if got.Login != login || got.Problem == nil || len(got.Problem.Errors) != 1 || !strings.Contains(string(got.Envelope), "colour") {
		d.t.Errorf("proposal = %+v", got)
	}
	if s := d.want(d.operator("proposals", "list", "--login", login, "--state", "duplicate"), command.ExitOK, duplicate); strings.Contains(s.out, refused) {
		d.t.Errorf("the duplicates contain what was refused: %s", s.out)
	}
	d.want(d.operator("proposals", "list", "--login", login, "--state", "waiting"), command.ExitOK, "No matching proposals.")
	d.want(d.operator("proposals", "list", "--state", "accepted"), command.ExitUsage, "--state must be")
	d.want(d.operator("proposals", "show", "x"), command.ExitUsage, "not the id of an action")
	d.want(d.agent("proposals", "list"), command.ExitFailed, "role agent")

	d.want(as("unbind", login, "--tenant", "demo"), command.ExitOK, "unbound "+login)
	d.recorded("database login " + login + " unbound")
	d.want(as("unbind", login, "--tenant", "demo"), command.ExitUsage, "no login")
	if s := d.want(as("list", "--tenant", "demo", "--json"), command.ExitOK); strings.Contains(s.out, login) {
		d.t.Errorf("db-login list has a login that was unbound: %s", s.out)
	}
	if _, err := d.proposeInSQL(db, list); err == nil || !strings.Contains(err.Error(), "42501") {
		d.t.Errorf("a login that was unbound proposes: %v", err)
	}
}

func bindsDBLogins(d *fixture) {
	as := func(args ...string) result {
		return d.run(d.t.Context(), "", "", append([]string{"db-login"}, args...)...)
	}
	login, super, group := d.role("LOGIN"), d.role("LOGIN SUPERUSER"), d.role("NOLOGIN")
	d.want(d.run(d.t.Context(), "", "", "tenant", "create", "elsewhere"), command.ExitOK)
	d.want(as("bind", login, "--tenant", "elsewhere"), command.ExitOK, "bound "+login)

	for text, args := range map[string][]string{
		"the database has no login of that name": {"nobody_of_this_name", "--tenant", "demo"},
		"create it first":                        {group, "--tenant", "demo"},
		"is a superuser":                         {super, "--tenant", "demo"},
		"another tenant":                         {login, "--tenant", "demo"},
		"tool":                                   {login, "--tenant", "elsewhere", "--tool", "a*b:c"},
		"operator does not exist":                {login, "--tenant", "elsewhere", "--operator", uuid.NewString()},
		"must be limited to 1 to":                {login, "--tenant", "elsewhere", "--max-waiting", "0"},
		"no tenant":                              {login, "--tenant", "nowhere"},
	} {
		if s := as(append([]string{"bind"}, args...)...); s.code == command.ExitOK || !strings.Contains(s.err, text) {
			d.t.Errorf("bind %q = %d %s, want an error with %q", args, s.code, s.err, text)
		}
	}
	for text, args := range map[string][]string{
		"--tenant is required":   {"bind", login},
		"must be the id":         {"bind", login, "--tenant", "elsewhere", "--operator", "ana"},
		"--employee-id":          {"bind", login, "--tenant", "elsewhere", "--employee-id", "ana"},
		"no login":               {"unbind", login, "--tenant", "demo"},
		"needs a database login": {"unbind"},
	} {
		d.want(as(args...), command.ExitUsage, text)
	}
	d.want(as("list", "--tenant", "elsewhere"), command.ExitOK, login)
	if s := d.want(as("list", "--tenant", "demo"), command.ExitOK); strings.Contains(s.out, login) {
		d.t.Errorf("a tenant sees another's login: %s", s.out)
	}
}
