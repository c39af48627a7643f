package rest_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/action/intake"
	sqlproposal "github.com/countersign-dev/countersign/internal/action/proposal"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// dbLogin makes a login of the database, and binds it to the tenant.
func (f *tenantFixture) dbLogin() (name string) {
	f.t.Helper()
	name = "app_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	for _, sql := range []string{
		"CREATE ROLE " + name + " LOGIN",
		"INSERT INTO db_logins (tenant_id, login_id, login) VALUES ('" + f.id.String() + "', '" + uuid.NewString() + "', '" + name + "')",
	} {
		if _, err := f.db.Exec(f.t.Context(), sql); err != nil {
			f.t.Fatal(err)
		}
	}
	f.t.Cleanup(func() {
		if _, err := f.db.Exec(context.WithoutCancel(f.t.Context()), "DROP ROLE "+name); err != nil {
			f.t.Error(err)
		}
	})
	return name
}

// storedProposal stores a proposal of a login that was unbound since.
func (f *tenantFixture) storedProposal() (id string) {
	f.t.Helper()
	err := f.db.QueryRow(f.t.Context(), `
		WITH logins AS (
			INSERT INTO db_logins (tenant_id, login_id, login, unbound_at) VALUES ($1, $2, 'app', now()) RETURNING login_id
		)
		INSERT INTO proposals (tenant_id, proposal_id, login_id, body, bytes) SELECT $1, $2, login_id, '{}', 2 FROM logins RETURNING proposal_id::text`,
		f.id.String(), uuid.Must(uuid.NewV7()).String()).Scan(&id)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

// proposeInSQL proposes as a login of the database.
func (f *tenantFixture) proposeInSQL(login string, body object) (id string) {
	f.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		f.t.Fatal(err)
	}
	tx, err := f.db.Begin(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	if _, err := tx.Exec(f.t.Context(), "SET LOCAL SESSION AUTHORIZATION "+login); err != nil {
		f.t.Fatal(err)
	}
	if err := tx.QueryRow(f.t.Context(), "SELECT countersign.propose($1)::text", string(text)).Scan(&id); err != nil {
		f.t.Fatal(err)
	}
	if err := tx.Commit(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	return id
}

// takeProposals turns waiting proposals into actions.
func (f *tenantFixture) takeProposals() {
	f.t.Helper()
	taker := sqlproposal.NewTaker(f.db, intake.New(f.db, settings.NewCache(), intake.Config{}), slog.New(slog.NewTextHandler(io.Discard, nil)))
	for {
		if more, _, err := taker.Step(f.t.Context()); err != nil {
			f.t.Fatal(err)
		} else if !more {
			return
		}
	}
}

func (c *client) proposals(query string) (ids []string) {
	c.t.Helper()
	for cursor := ""; ; {
		var page wire.Page[wire.SQLProposal]
		c.send("GET", "/api/v1/proposals?limit=1"+query+cursor, nil).wants(c.t, http.StatusOK).into(c.t, &page)
		for _, p := range page.Items {
			ids = append(ids, p.ID.String()+" "+p.State)
		}
		if page.NextCursor == nil {
			return ids
		}
		cursor = "&cursor=" + *page.NextCursor
	}
}

func TestRefusedSQLProposalsAreListed(t *testing.T) {
	t.Parallel()
	f := newFixture(t).tenant("proposals")
	viewer := f.holder(identity.Grant{Name: "viewer", Role: identity.RoleViewer})
	stranger := f.fixture.tenant("proposals-elsewhere")
	crm, billing := f.dbLogin(), f.dbLogin()
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	first := object{"type": "mcp.exec", "external_id": "same", "tool": object{"source": "mail", "name": "read"}, "args": object{}}
	accepted := f.proposeInSQL(crm, first)
	refused := f.proposeInSQL(crm, object{"type": "mcp.exec", "tool": object{"source": "mail", "name": "write"}, "args": object{"to": secret, "m": 1}})
	other := f.proposeInSQL(billing, object{"colour": 1})
	f.takeProposals()
	duplicate := f.proposeInSQL(crm, first)
	f.takeProposals()
	waiting := f.proposeInSQL(crm, first)

	for query, want := range map[string][]string{
		"":                                {duplicate + " duplicate", other + " refused", refused + " refused"},
		"&state=refused":                  {other + " refused", refused + " refused"},
		"&state=refused&login=" + crm:     {refused + " refused"},
		"&state=duplicate":                {duplicate + " duplicate"},
		"&state=waiting":                  {waiting + " waiting"},
		"&state=waiting&login=" + billing: nil,
		"&login=" + billing:               {other + " refused"},
	} {
		if diff := cmp.Diff(want, viewer.proposals(query)); diff != "" {
			t.Errorf("proposals of %q (-want +got):\n%s", query, diff)
		}
	}
	show := func(c *client, id string, status int) (d wire.SQLProposalDetail) {
		a := c.send("GET", "/api/v1/proposals/"+id, nil).wants(t, status)
		if status == http.StatusOK {
			a.into(t, &d)
		}
		return d
	}
	d := show(f.operator, refused, 200)
	if d.Login != crm || d.AnsweredAt == nil || d.ActionID != nil || d.Problem == nil || d.Problem.Kind != "invalid" || len(d.Problem.Errors) != 1 ||
		d.Problem.Errors[0].Pointer != "/args/m" || !contains(d.Envelope, secret) {
		t.Errorf("an operator reads %+v with %s", d, d.Envelope)
	}
	if d := show(viewer, refused, 200); contains(d.Envelope, secret) || !contains(d.Envelope, `"to"`) {
		t.Errorf("a viewer reads %s", d.Envelope)
	}
	if d := show(viewer, duplicate, 200); d.ActionID == nil || d.ActionID.String() != accepted || d.Problem != nil {
		t.Errorf("the duplicate is %+v, want one of %s", d, accepted)
	}
	if d := show(viewer, waiting, 200); d.State != "waiting" || d.AnsweredAt != nil {
		t.Errorf("the one that waits is %+v", d)
	}
	show(f.operator, accepted, 404)
	f.operator.send("GET", path(accepted), nil).wants(t, 200)

	show(stranger.operator, refused, 404)
	if got := stranger.operator.proposals(""); got != nil {
		t.Errorf("another tenant reads %v", got)
	}
	show(f.agent, refused, 403)
	f.agent.send("GET", "/api/v1/proposals", nil).wants(t, 403)
	show(f.holder(identity.Grant{Name: "narrow", Role: identity.RoleOperator, Scopes: []identity.Scope{identity.LimitsRead}}), refused, 403)
	f.operator.send("GET", "/api/v1/proposals?state=accepted", nil).wants(t, 400)
	f.operator.send("GET", "/api/v1/proposals?login=", nil).wants(t, 400)
}
