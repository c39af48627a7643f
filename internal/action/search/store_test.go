package search_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/search"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
	"github.com/countersign-dev/countersign/internal/tenant/tenanttest"
)

// fixture is a tenant whose calls of src:act wait for a person.
type fixture struct {
	tenanttest.Fixture
	in *intake.Intake
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{Fixture: tenanttest.New(t)}
	f.in = intake.New(f.DB, settings.NewCache(), intake.Config{ApprovalWait: time.Hour})
	f.Must(func(ctx context.Context, tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, f.Tenant, "", "*", envelope.ModeRequireApproval, "test")
	})
	return f
}

// propose proposes a call by a token of an agent, Zoë.
func (f *fixture) propose(args, external string) envelope.ActionID {
	f.T.Helper()
	by := intake.Submitter{Tenant: f.Tenant, Token: uuid.UUID(f.Tenant), Name: "Zoë", Names: identity.EveryName(), Reserved: true}
	answers, err := f.in.Accept(f.T.Context(), by, []*envelope.Proposal{{
		Type: envelope.TypeExec, ExternalID: external, SessionID: "night-shift", Tool: envelope.Tool{Source: "src", Name: "act"}, Args: json.RawMessage(args),
	}})
	if err != nil {
		f.T.Fatal(err)
	}
	if answers[0].Err != nil {
		f.T.Fatal(answers[0].Err)
	}
	return answers[0].Action
}

// index indexes all. In the transaction of a test no event is committed: it gets the
// position of an earlier one.
func (f *fixture) index() {
	f.T.Helper()
	f.Exec("UPDATE events SET txid = '1' WHERE tenant_id = $1", f.Tenant.String())
	f.Exec("UPDATE action_word_cursors SET next_at = now() WHERE tenant_id = $1", f.Tenant.String())
	for more := true; more; {
		var err error
		if more, err = search.Step(f.T.Context(), f.DB); err != nil {
			f.T.Fatal(err)
		}
	}
}

func (f *fixture) find(text string, after envelope.ActionID, oldest bool, most int) (found []envelope.ActionID) {
	f.T.Helper()
	f.Must(func(ctx context.Context, tx pgx.Tx) error {
		ids, err := search.Find(ctx, tx, search.Parse(text), after, oldest, most)
		for _, id := range ids {
			found = append(found, envelope.ActionID(id))
		}
		return err
	})
	return found
}

func (f *fixture) finds(text string, want ...envelope.ActionID) {
	f.T.Helper()
	if got := f.find(text, envelope.ActionID{}, true, 10); !slices.Equal(got, want) {
		f.T.Errorf("%q finds %v, want %v", text, got, want)
	}
}

// The index leaves a bulk load alone, and catches up when it is late. The test's
// transaction stands for that of the step: a pause counts from its beginning.
func TestStepPauses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	step := func(age string) (due, took float64) {
		f.propose(`{}`, uuid.NewString())
		f.Exec("UPDATE events SET at = now() - $2::interval WHERE tenant_id = $1", f.Tenant.String(), age)
		f.index()
		f.Must(func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, `
				SELECT extract(epoch FROM c.next_at - now()), extract(epoch FROM clock_timestamp() - now())
				FROM action_word_cursors c WHERE c.tenant_id = $1`, f.Tenant).Scan(&due, &took)
		})
		return due, took
	}
	if due, took := step("2 minutes"); due > 5*took {
		t.Errorf("late, the next step is due %.3f s after the beginning of one that took at most %.3f s, want at most 5 times as long", due, took)
	}
	if due, took := step("0"); due < min(5*took, 10) {
		t.Errorf("the next step is due %.3f s after the beginning of one that took at most %.3f s, want 16 times as long, and 10 s at most", due, took)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	long, err := json.Marshal("beginning " + strings.Repeat("x", 200_000) + " ending")
	if err != nil {
		t.Fatal(err)
	}
	mail := f.propose(`{"to":["ana@mail.example.org"],"subject":"Rechnung für Zoë","amount":129.5,"draft":true}`, "invoice-117")
	han := f.propose(`{"text":"請求書を送る","ann@example.net":"admin","subject":"100% _off_"}`, "")
	f.propose(`{"password":"hunter2","note":"Bearer sk-live-0123456789abcdef0123456789"}`, "")
	big := f.propose(`{"body":`+string(long)+`}`, "")
	tag := f.propose(`{"emails":["planted@example.com"]}`, "triage:tag:"+strings.Repeat("0", 64))
	other := newFixture(t)
	other.propose(`{"to":"ana@mail.example.org"}`, "")

	f.finds("rechnung")
	f.index()
	other.index()

	f.finds("rechnung", mail)
	f.finds("FUER")
	f.finds("fur zoe", mail)
	f.finds("Rech", mail)
	f.finds("rech zoe")
	f.finds("example.org", mail)
	f.finds("ana@mail.example.org", mail)
	f.finds("invoice-117", mail)
	f.finds("129.5", mail)
	f.finds("請求書", han)
	f.finds("書", han)
	f.finds("送る請", nil...)
	f.finds("ann@example.net", han)
	f.finds("100% _off_", han)
	f.finds("subject")
	f.finds("hunter2")
	f.finds("sk live")
	f.finds("redacted")
	f.finds("planted")
	f.finds("ending", big)
	if got := f.find("night shift zoe src act", envelope.ActionID{}, true, 10); len(got) != 5 || got[4] != tag {
		t.Errorf("the session, the proposer and the tool find %v, want all five", got)
	}
}

func TestFindChanges(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.propose(`{"to":"ana@example.org"}`, "")
	f.index()
	by := approval.Decider{Tenant: f.Tenant, Token: uuid.New(), Name: "Bo Jansen"}
	tenanttest.Person(t, f.DB, f.Tenant, by.Token, by.Name)
	by.Person, by.Operator = by.Token, by.Token
	service := approval.New(f.DB, settings.NewCache(), approval.Config{})

	if err := service.Edit(t.Context(), by, id, approval.Edit{Args: json.RawMessage(`{"to":"cleo@example.org"}`)}); err != nil {
		t.Fatal(err)
	}
	f.finds("ana", id)
	f.index()
	f.finds("ana")
	f.finds("cleo", id)
	f.finds("zoe jansen", id)

	f.Exec("DELETE FROM actions WHERE tenant_id = $1", f.Tenant.String())
	f.finds("cleo")
	f.Exec("UPDATE action_word_cursors SET cursor_txid = '0' WHERE tenant_id = $1", f.Tenant.String())
	f.index()
	f.finds("cleo")
}

// TestFindPages goes through parts of the index, some of them empty, with pages of two.
func TestFindPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var all []envelope.ActionID
	for i := range 7 {
		all = append(all, f.propose(fmt.Sprintf(`{"n":"number %d"}`, i), ""))
		f.index()
		f.Exec("UPDATE action_word_cursors SET filled = filled + 30000 WHERE tenant_id = $1", f.Tenant.String())
	}
	pages := func(oldest bool) (found []envelope.ActionID) {
		var after envelope.ActionID
		for {
			page := f.find("number", after, oldest, 2)
			if len(page) == 0 {
				return found
			}
			found, after = append(found, page...), page[len(page)-1]
		}
	}

	oldest, newest := pages(true), pages(false)

	slices.Reverse(newest)
	if !slices.Equal(oldest, all) || !slices.Equal(newest, all) {
		t.Errorf("pages have %v, and from the newest on %v, want %v", oldest, newest, all)
	}
	f.Exec("DELETE FROM actions WHERE tenant_id = $1 AND action_id = $2", f.Tenant.String(), all[3].String())
	if got := f.find("number", all[3], true, 1); !slices.Equal(got, all[4:5]) {
		t.Errorf("after a deleted action is %v, want %v", got, all[4:5])
	}
}
