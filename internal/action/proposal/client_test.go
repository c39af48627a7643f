package proposal_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// newNote is a proposal of crm:note.
func newNote(text string) envelope.Proposal {
	args, _ := json.Marshal(map[string]string{"text": text}) // strings always marshal
	return envelope.Proposal{Type: envelope.TypeExec, Tool: envelope.Tool{Source: "crm", Name: "note"}, Args: args}
}

// TestTheClientProposesInATransaction of pgx and of database/sql, which commits or
// rolls back.
func TestTheClientProposesInATransaction(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ctx := t.Context()
	db := stdlib.OpenDBFromPool(f.app.Pool)
	t.Cleanup(func() { _ = db.Close() })
	five := []envelope.Proposal{newNote("1"), newNote("2"), newNote("3"), newNote("4"), newNote("5")}
	inPgx := func(end func(pgx.Tx, context.Context) error) (ids []envelope.ActionID) {
		tx, err := f.app.Begin(ctx)
		if err != nil {
			t.Fatal(err)
		}
		one, err := client.ProposeTx(ctx, tx, newNote("0"))
		if err != nil {
			t.Fatal(err)
		}
		more, err := client.ProposeManyTx(ctx, tx, five)
		if err = errors.Join(err, end(tx, ctx)); err != nil {
			t.Fatal(err)
		}
		return append([]envelope.ActionID{one}, more...)
	}
	inSQL := func(end func(*sql.Tx) error) (ids []envelope.ActionID) {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		one, err := client.ProposeSQLTx(ctx, tx, newNote("0"))
		if err != nil {
			t.Fatal(err)
		}
		more, err := client.ProposeManySQLTx(ctx, tx, five)
		if err = errors.Join(err, end(tx)); err != nil {
			t.Fatal(err)
		}
		return append([]envelope.ActionID{one}, more...)
	}

	ways := map[string]struct {
		ids   []envelope.ActionID
		state string
	}{
		"pgx, committed":            {inPgx(pgx.Tx.Commit), "accepted"},
		"pgx, rolled back":          {inPgx(pgx.Tx.Rollback), "none"},
		"database/sql, committed":   {inSQL((*sql.Tx).Commit), "accepted"},
		"database/sql, rolled back": {inSQL((*sql.Tx).Rollback), "none"},
	}
	f.takeAll()

	for name, way := range ways {
		if len(way.ids) != 6 {
			t.Errorf("%s: %d ids, want 6", name, len(way.ids))
		}
		for i, id := range way.ids {
			if s := f.app.status(uuid.UUID(id)); s.State != way.state {
				t.Errorf("%s: proposal %d is %+v, want %s", name, i, s, way.state)
			}
			if way.state != "accepted" {
				continue
			}
			if got, want := one[string](f, "SELECT args ->> 'text' FROM envelopes WHERE action_id = $1", uuid.UUID(id)), string('0'+rune(i)); got != want {
				t.Errorf("%s: the action of id %d has the text %q, want %q", name, i, got, want)
			}
		}
	}
	id, err := client.ProposeTx(ctx, f.app.Pool, newNote("a pool commits at once"))
	if s := f.app.status(uuid.UUID(id)); err != nil || s.State != "waiting" {
		t.Errorf("in a pool it is %+v (%v)", s, err)
	}
}

func TestTheClientRefusesBeforeItProposes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	wrong := newNote("")
	wrong.Type = "other"

	_, err := client.ProposeManyTx(t.Context(), f.app.Pool, []envelope.Proposal{newNote("fine"), wrong})

	if e, ok := errors.AsType[*envelope.InvalidError](err); !ok || e.Fields[0].Pointer != "/type" || !strings.Contains(err.Error(), "proposal 1") {
		t.Errorf("an invalid one is %v, want one that names /type of proposal 1", err)
	}
	if n := one[int](f, "SELECT count(1) FROM proposals"); n != 0 {
		t.Errorf("%d were proposed", n)
	}
	if ids, err := client.ProposeManyTx(t.Context(), f.app.Pool, nil); ids != nil || err != nil {
		t.Errorf("none = %v, %v", ids, err)
	}
	_, err = client.ProposeTx(t.Context(), f.newLogin(envelope.TenantID{}, nil).Pool, newNote("x"))
	if code(err) != "42501" {
		t.Errorf("a login that is not bound gets %v, want 42501", err)
	}
}

// TestRevokedProposersAreRefused covers waiting proposals whose login was
// unbound or bound again, and proposers who were disabled.
func TestRevokedProposersAreRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kept := f.app.propose(note)
	for name, closes := range map[string]func(a *application, operator uuid.UUID){
		"unbound": func(a *application, _ uuid.UUID) {
			f.admin(func(tx pgx.Tx) error {
				_, err := identity.UnbindDBLogin(t.Context(), tx, f.tenant, a.name)
				return err
			})
		},
		"bound anew": func(a *application, _ uuid.UUID) {
			f.admin(func(tx pgx.Tx) error {
				_, err := identity.BindDBLogin(t.Context(), tx, f.tenant, identity.DBLogin{Login: a.name, MaxWaiting: 1})
				return err
			})
		},
		"operator disabled": func(_ *application, operator uuid.UUID) {
			f.exec("UPDATE operators SET disabled_at = now() WHERE operator_id = $1", operator)
		},
	} {
		a, operator := f.newLogin(f.tenant, nil), uuid.Must(uuid.NewV7())
		f.exec("INSERT INTO operators (tenant_id, operator_id, name, role, role_set) VALUES ($1, $2, $3, 'operator', 'operator')", f.tenant.String(), operator, name)
		f.exec("UPDATE db_logins SET operator_id = $2 WHERE login_id = $1", a.id, operator)
		before := a.propose(note)
		f.takeAll()
		waits := a.propose(note)
		closes(a, operator)
		f.takeAll()

		if name == "unbound" { // an unbound login gets no answer
			f.exec("INSERT INTO db_logins (tenant_id, login_id, login) VALUES ($1, $2, $3)", f.tenant.String(), uuid.Must(uuid.NewV7()), a.name)
		}
		if s := a.status(before); s.State != "accepted" {
			t.Errorf("%s: what was taken before is %+v", name, s)
		}
		if s := a.status(waits); s.State != "refused" || s.Problem == nil || s.Problem.Kind != "denied" {
			t.Errorf("%s: what waited is %+v, want it denied", name, s)
		}
	}
	if s := f.app.status(kept); s.State != "accepted" {
		t.Errorf("another login's is %+v", s)
	}
}

// admin does something in the scope of administrators.
func (f *fixture) admin(do func(tx pgx.Tx) error) {
	f.t.Helper()
	if err := postgres.InTx(f.t.Context(), f.db, postgres.Admin(), do); err != nil {
		f.t.Fatal(err)
	}
}

func TestLoginNamesOnlyItsBoundNames(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.newLogin(envelope.TenantID{}, nil)
	names := identity.Names{Automations: []string{"news*"}, Employees: []string{"*"}, Sessions: []string{"shop-*"}}
	var bound []identity.DBLogin
	f.admin(func(tx pgx.Tx) error {
		_, err := identity.BindDBLogin(t.Context(), tx, f.tenant, identity.DBLogin{Login: a.name, Names: names, MaxWaiting: 100})
		if err == nil {
			bound, err = identity.DBLogins(t.Context(), tx, f.tenant)
		}
		return err
	})
	in := func(field, name string) string {
		return fmt.Sprintf(`{"type":"mcp.exec","tool":{"name":"note","source":"crm"},"args":{"text":"a"},%q:%q}`, field, name)
	}
	all := []struct{ field, name, state string }{
		{"session_id", "shop-1", "accepted"}, {"session_id", "mail", "refused"},
		{"automation_id", "newsletter", "accepted"}, {"automation_id", "shop-1", "refused"},
	}
	var ids []uuid.UUID
	for _, tt := range all {
		ids = append(ids, a.propose(in(tt.field, tt.name)))
	}
	unnamed := f.app.propose(in("session_id", "shop-1"))

	f.takeAll()

	if !slices.ContainsFunc(bound, func(l identity.DBLogin) bool { return l.Login == a.name && cmp.Equal(l.Names, names) }) {
		t.Errorf("bound logins are %+v, want %s with %+v", bound, a.name, names)
	}
	for i, tt := range all {
		s := a.status(ids[i])
		if s.State != tt.state || tt.state == "refused" && (s.Problem.Kind != "denied" || s.Problem.Errors[0].Pointer != "/"+tt.field) {
			t.Errorf("%s %s: %+v, want it %s", tt.field, tt.name, s, tt.state)
		}
	}
	if s := f.app.status(unnamed); s.State != "refused" || s.Problem.Errors[0].Pointer != "/session_id" {
		t.Errorf("a login without names: %+v, want it refused", s)
	}
}
