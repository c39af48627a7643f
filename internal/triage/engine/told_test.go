package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/triage/inspect"
)

// TestStoredDataIsShownToPeople reads the data that the engine wrote through
// the functions for people.
func TestStoredDataIsShownToPeople(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.exec(`INSERT INTO triage_senders (tenant_id, account_id, address, first_seen, last_seen, received)
		SELECT tenant_id, account_id, 'news@garden-weekly.example', now(), now(), 7 FROM triage_accounts`)
	f.deliver("", newsletter("n1@x").raw())
	f.deliver("", testMail{id: "plain@x", from: "Eve <eve@elsewhere.example>", to: owner, subject: "Hello", body: "Nothing in particular."}.raw())
	f.once()
	inTx := func(read func(tx pgx.Tx) error) {
		t.Helper()
		if err := postgres.InTx(t.Context(), f.db, postgres.API(f.tenant), read); err != nil {
			t.Fatal(err)
		}
	}

	var all []wire.TriageMessage
	var states []wire.TriageStatus
	inTx(func(tx pgx.Tx) (err error) {
		if all, err = inspect.Messages(t.Context(), tx, f.tenant, inspect.Filter{Most: 10}); err == nil {
			states, err = inspect.Status(t.Context(), tx, f.tenant, "", time.Now())
		}
		return err
	})

	if len(all) != 2 {
		t.Fatalf("%d messages, want 2", len(all))
	}
	if len(states) != 1 || states[0].State != "waiting" || states[0].LastEndedAt == nil {
		t.Errorf("status = %+v, want an account that was read and waits", states)
	}
	proposed := 0
	for _, listed := range all {
		inTx(func(tx pgx.Tx) error {
			m, err := inspect.Message(t.Context(), tx, f.tenant, listed.ID)
			if err != nil {
				return err
			}
			why, err := inspect.Explain(m, nil)
			if err != nil {
				return err
			}
			if m.Body == "" || len(m.Signals) == 0 || m.RunID == nil || why.Summary == "" {
				t.Errorf("message %s lacks its text, signals, run or summary: %+v", listed.Subject, why)
			}
			stages := map[string]bool{}
			for _, s := range why.Steps {
				stages[s.Stage] = true
			}
			if !stages["rule"] || !stages["signal"] {
				t.Errorf("why of %s has no rules or signals: %+v", listed.Subject, why.Steps)
			}
			if len(m.Proposals) > 0 {
				proposed++
				if !stages["value"] || !strings.Contains(why.Summary, "waits for a worker") {
					t.Errorf("why of %s lacks the origin of a value, or that it waits for a worker: %s", listed.Subject, why.Summary)
				}
			}
			_, err = inspect.Correct(t.Context(), tx, f.tenant, listed.ID, wire.TriageCorrectionInput{Head: "category", Label: "receipts"}, "ann")
			return err
		})
	}
	if proposed == 0 {
		t.Error("nothing was proposed, so that no origin was told")
	}
	f.deliver("", newsletter("n2@x").raw())
	f.once()
	if n := one[int](f, "SELECT max((d.prediction ->> 'Corrections')::integer) FROM triage_decisions d"); n != 2 {
		t.Errorf("the next decision rests on %d corrections, want 2", n)
	}
}
