package engine_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/inspect"
	"github.com/countersign-dev/countersign/internal/triage/label"
)

func (f *fixture) accountID() uuid.UUID {
	return one[uuid.UUID](f, "SELECT account_id FROM triage_accounts WHERE name = 'work'")
}

func (f *fixture) messageID(headerID string) uuid.UUID {
	return one[uuid.UUID](f, "SELECT message_id FROM triage_messages WHERE header_id = $1", headerID)
}

func (f *fixture) tryLabel(name string, d label.Definition) (trial wire.TriageLabelTrial) {
	f.t.Helper()
	account := f.accountID()
	f.set(func(ctx context.Context, tx pgx.Tx) (err error) {
		trial, err = label.Try(ctx, tx, f.tenant, account, name, d, "ada")
		return err
	})
	return trial
}

func (f *fixture) putLabel(name string, d label.Definition, untried bool) (err error) {
	f.t.Helper()
	account := f.accountID()
	f.set(func(ctx context.Context, tx pgx.Tx) error {
		_, err = label.Put(ctx, tx, f.tenant, account, name, d, untried, "ada")
		return nil
	})
	return err
}

// labels returns the labels of messages, as "label state subject".
func (f *fixture) labels(name string) (all []string) {
	f.t.Helper()
	f.set(func(ctx context.Context, tx pgx.Tx) error {
		messages, err := inspect.Messages(ctx, tx, f.tenant, inspect.Filter{Label: name, Most: 100})
		for _, m := range messages {
			for _, l := range m.Labels {
				all = append(all, l.Label+" "+l.State+" "+m.Subject)
			}
		}
		return err
	})
	slices.Sort(all)
	return all
}

func fromBen(id, subject, body string) testMail {
	return testMail{id: id, from: "Ben <ben@norland.example>", to: owner, subject: subject, body: body}
}

func TestLabels(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	known := newsletter("0")
	known.subject, known.body = "Welcome", "You subscribed."
	f.deliver("", known.raw())
	f.once()
	for _, m := range []testMail{newsletter("1"), fromBen("2", "Term sheet", "The investors sent the term sheet."), fromBen("3", "Lunch", "Lunch tomorrow?")} {
		f.deliver("", m.raw())
	}
	f.once()
	plants := label.Definition{Words: []string{"ten plants", "term sheet"}}

	trial := f.tryLabel("plants", plants)

	bulk := trial.Cohorts[slices.IndexFunc(trial.Cohorts, func(n wire.TriageLabelCohort) bool { return n.Cohort == "newsletters" })]
	if want := (wire.TriageLabelCohort{Cohort: "newsletters", State: "applied", Messages: 1, Matched: 1}); bulk != want || trial.Messages != 4 || trial.Matched != 2 || len(trial.Items) != 2 {
		t.Errorf("Try = %+v, want %+v", trial, want)
	}
	if err := f.putLabel("plants", label.Definition{Words: []string{"plants"}}, false); !errors.Is(err, fault.Conflict) {
		t.Errorf("Put(another definition) = %v, want a conflict", err)
	}
	if err := f.putLabel("other", plants, false); !errors.Is(err, fault.Conflict) {
		t.Errorf("Put(never tried) = %v, want a conflict", err)
	}
	if f.once(); len(f.labels("")) > 0 {
		t.Errorf("labels after a trial: %q", f.labels(""))
	}

	if err := f.putLabel("plants", plants, false); err != nil {
		t.Fatal(err)
	}
	f.deliver("", newsletter("4").raw())
	f.once()

	applied, proposed := "plants applied Ten plants for a dry summer 1", "plants proposed Term sheet"
	if got, want := f.labels("plants"), []string{applied, "plants applied Ten plants for a dry summer 4", proposed}; !slices.Equal(got, want) {
		t.Errorf("labels = %q, want %q", got, want)
	}

	// What the owner decides stays, also under another definition.
	sheet, first := f.messageID("2"), f.messageID("1")
	f.set(func(ctx context.Context, tx pgx.Tx) error {
		_, err := label.Judge(ctx, tx, f.tenant, sheet, "plants", true, "ada")
		_, rejected := label.Judge(ctx, tx, f.tenant, first, "plants", false, "ada")
		if _, unknown := label.Judge(ctx, tx, f.tenant, first, "none", true, "ada"); !errors.Is(unknown, fault.NotFound) {
			t.Errorf("Judge(unknown label) = %v", unknown)
		}
		return errors.Join(err, rejected)
	})
	if err := f.putLabel("plants", label.Definition{Words: []string{"lunch"}}, true); err != nil {
		t.Fatal(err)
	}
	f.once()
	if got, want := f.labels("plants"), []string{"plants confirmed Term sheet", "plants proposed Lunch"}; !slices.Equal(got, want) {
		t.Errorf("labels under another definition = %q, want %q", got, want)
	}
	if err := f.putLabel("plants", label.Definition{For: []uuid.UUID{uuid.New()}}, true); err == nil {
		t.Error("Put accepts a message that the account did not receive")
	}

	account := f.accountID()
	f.set(func(ctx context.Context, tx pgx.Tx) error {
		return errors.Join(label.Delete(ctx, tx, f.tenant, account, "plants"))
	})
	if n := one[int](f, "SELECT count(1)::int FROM triage_labeled"); n != 0 {
		t.Errorf("%d matches of a deleted label are left", n)
	}
	f.deliver("", newsletter("5").raw())
	f.once()
	if n := one[int](f, "SELECT count(1)::int FROM triage_label_due"); n != 0 {
		t.Errorf("%d messages are due without a label", n)
	}
}

// TestLabelStates compares the states of labels with the cohorts: those of machines
// are named, so that a new cohort is one of people.
func TestLabelStates(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, cohort := range append(decide.Cohorts(), "new") {
		want := "proposed"
		if slices.Contains([]decide.Cohort{decide.Newsletters, decide.Social, decide.Transactional}, cohort) {
			want = "applied"
		}
		if got := one[string](f, "SELECT triage_label_state(NULL, $1)", string(cohort)); got != want || label.Confirmed(string(cohort)) != (got == "proposed") {
			t.Errorf("state of a match on mail of the cohort %s = %s, want %s", cohort, got, want)
		}
	}
}

// TestDecisionsDoNotReadLabels reads the fixture of the project with and without
// labels, of which one is on every message and confirmed, and a model that chooses it
// for all mail. It compares everything that was decided and proposed.
func TestDecisionsDoNotReadLabels(t *testing.T) {
	t.Parallel()
	source, err := corpus.OwnSet(os.DirFS("../evaluate/testdata/fixture"), "fixture")
	if err != nil {
		t.Fatal(err)
	}
	var some []corpus.Example // a third of them, of every kind
	for i := 0; i < len(source.Examples); i += 3 {
		some = append(some, source.Examples[i])
	}
	half := len(some) / 2
	decided := func(labeled bool) []string {
		f := newFixture(t)
		begin := time.Now().Add(-100 * 24 * time.Hour)
		deliver := func(examples []corpus.Example) {
			for _, e := range examples { // each has a time of its own, so that their order is fixed
				path, at := f.deliver("", string(e.Raw)), begin.Add(time.Duration(f.number.Load())*time.Minute)
				if err := os.Chtimes(path, at, at); err != nil {
					t.Fatal(err)
				}
			}
		}
		deliver(some[:half])
		f.once()
		if labeled {
			words := strings.Fields("the and you for is to a1 re me we in on of it der die vip urgent important newsletter")
			if err := f.putLabel("urgent", label.Definition{Words: words, Description: "vital secrets"}, true); err != nil {
				t.Fatal(err)
			}
			f.exec(`INSERT INTO triage_labeled (tenant_id, message_id, label, account_id, score, holds, decided_by)
				SELECT tenant_id, message_id, 'urgent', account_id, 1, true, 'ada' FROM triage_decisions ON CONFLICT DO NOTHING`)
		}
		deliver(some[half:])
		f.withWriter(&writer{text: "urgent"})
		if n := one[int](f, "SELECT count(1)::int FROM triage_labeled"); labeled != (n > half) {
			t.Errorf("%d messages have the label", n)
		}
		rows, _ := f.db.Query(t.Context(), `SELECT concat_ws(' ', encode(m.identity, 'hex'), d.act, d.category, d.priority, d.bucket, d.cohort, d.level, d.confidence, d.question, d.decision, d.skipped,
				(SELECT jsonb_agg(jsonb_build_object('action', p.action, 'args', p.envelope -> 'args', 'approval', p.envelope -> 'approval') ORDER BY p.action) FROM triage_proposals p WHERE p.message_id = m.message_id))
			FROM triage_messages m JOIN triage_decisions d USING (tenant_id, message_id) ORDER BY 1`)
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(all) < half {
			t.Fatalf("%d decisions, %v", len(all), err)
		}
		return all
	}

	if diff := cmp.Diff(decided(false), decided(true)); diff != "" {
		t.Errorf("decisions without and with labels:\n%s", diff)
	}
}
