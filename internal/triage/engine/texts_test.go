package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/asker"
	"github.com/countersign-dev/countersign/internal/triage/draft"
	"github.com/countersign-dev/countersign/internal/triage/engine"
	"github.com/countersign-dev/countersign/internal/triage/inspect"
	models "github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

// writer returns given texts and records its questions.
type writer struct {
	mu    sync.Mutex
	asked []models.Question
	errs  []error
	text  string
}

// Ask implements asker.Writer.
func (w *writer) Ask(_ context.Context, q models.Question) (models.Answer, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, q)
	if len(w.errs) > 0 {
		err := w.errs[0]
		if w.errs = w.errs[1:]; err != nil {
			return models.Answer{}, err
		}
	}
	var schema struct{ Required []string }
	_ = json.Unmarshal(q.Schema, &schema)
	members := map[string]string{}
	for i, name := range schema.Required {
		members[name] = ""
		if i == 0 {
			members[name] = w.text
		}
	}
	raw, err := json.Marshal(members)
	return models.Answer{Text: raw, Model: "big"}, err
}

// withWriter reads all accounts to their end, with a model for texts.
func (f *fixture) withWriter(w asker.Writer) {
	f.t.Helper()
	if err := f.engine(func(c *engine.Config) { c.Writer = w }).Once(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
}

// askText requests a text about a message, as a person does.
func (f *fixture) askText(headerID string, in wire.TriageTextInput) wire.TriageText {
	f.t.Helper()
	id := one[uuid.UUID](f, "SELECT message_id FROM triage_messages WHERE header_id = $1", headerID)
	var asked wire.TriageText
	err := postgres.InTx(f.t.Context(), f.db, postgres.API(f.tenant), func(tx pgx.Tx) (err error) {
		asked, err = inspect.AskText(f.t.Context(), tx, f.tenant, id, in, "ann")
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return asked
}

func (f *fixture) texts(headerID string) (all []wire.TriageText) {
	f.t.Helper()
	id := one[uuid.UUID](f, "SELECT message_id FROM triage_messages WHERE header_id = $1", headerID)
	err := postgres.InTx(f.t.Context(), f.db, postgres.API(f.tenant), func(tx pgx.Tx) (err error) {
		all, err = inspect.Texts(f.t.Context(), tx, f.tenant, id)
		return err
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return all
}

// request returns mail of a person with a request.
func request(id string) testMail {
	return testMail{
		id: id, from: "Ann Lee <ann@tallis.example>", to: owner, subject: "Could you send me the report?",
		body: "Hello Mara,\n\ncould you please send me the report by Friday?\n\nAnn",
	}
}

func TestDraftIsWrittenAndProposed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("work", func(a *account.Account) {
		a.Texts = draft.Settings{Examples: []string{"sent@tallis.example"}, Signature: "Mara"}
	})
	f.deliver("", request("1@tallis.example").raw())
	f.deliver("Sent", testMail{id: "sent@tallis.example", from: owner, to: "bob@example.org", subject: "Dates", body: "Hi Bob, Tuesday suits me."}.raw())
	f.once()
	asked := f.askText("1@tallis.example", wire.TriageTextInput{Kind: "draft", Note: "On Thursday."})
	again := f.askText("1@tallis.example", wire.TriageTextInput{Kind: "draft", Note: "Never."})
	w := &writer{text: "Hello Ann, see https://evil.example, on Thursday."}

	f.withWriter(w)
	f.withWriter(w)

	if again.Number != asked.Number || asked.State != "waiting" {
		t.Errorf("asked for %+v and %+v, want one that waits", asked, again)
	}
	if len(w.asked) != 1 {
		t.Fatalf("the model was asked %d times, want once", len(w.asked))
	}
	for _, part := range []string{"by Friday?", "On Thursday.", "Tuesday suits me."} {
		if !strings.Contains(w.asked[0].User, part) {
			t.Errorf("the question lacks %q: %s", part, w.asked[0].User)
		}
	}
	got := f.texts("1@tallis.example")
	const want = "Hello Ann, see [link left out] on Thursday.\n\nMara"
	if len(got) != 1 || got[0].State != "written" || got[0].Text != want || got[0].Model != "big" || got[0].Prompt != "draft.v1" || got[0].Problem != "" {
		t.Fatalf("texts = %+v, want %q", got, want)
	}
	args := one[string](f, "SELECT envelope ->> 'args' FROM triage_proposals WHERE external_id = $1 AND proposal_id IS NOT NULL AND envelope ->> 'approval' = 'required'", got[0].ExternalID)
	for _, part := range []string{`"to": ["ann@tallis.example"]`, `"subject": "Re: Could you send me the report?"`, `"in_reply_to": "1@tallis.example"`} {
		if !strings.Contains(args, part) {
			t.Errorf("arguments = %s, want %s", args, part)
		}
	}
	second := f.askText("1@tallis.example", wire.TriageTextInput{Kind: "draft"})
	f.withWriter(w)
	if n := one[int](f, "SELECT count(1) FROM triage_proposals WHERE action = 'draft'"); n != 2 || second.Number == asked.Number {
		t.Errorf("%d drafts are proposed, want the second one as well", n)
	}
}

// TestWantedTextsAreWrittenAutomatically checks that texts are written automatically,
// once, and only for messages that wait for their owner.
func TestWantedTextsAreWrittenAutomatically(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put("work", func(a *account.Account) {
		a.Texts = draft.Settings{Summaries: draft.Wanted, Drafts: draft.Wanted}
	})
	f.deliver("", newsletter("n@garden-weekly.example").raw())
	f.deliver("", request("1@tallis.example").raw())
	w := &writer{text: "Text."}
	f.withWriter(w)
	f.withWriter(w)

	// The small model of the tests may classify either differently; the texts
	// must follow the decision.
	want := one[int](f, `SELECT coalesce(sum((d.bucket IN ('urgent', 'actionable'))::int + coalesce(d.decision -> 'wants' @> '[{"action":"draft"}]', false)::int), 0) FROM triage_decisions d`)
	if n := one[int](f, "SELECT count(1) FROM triage_texts WHERE ended_at IS NOT NULL AND text <> '' AND asked_by = 'triage'"); n != want || len(w.asked) != want {
		t.Errorf("%d texts are written by %d questions, want %d", n, len(w.asked), want)
	}
	if want == 0 {
		t.Error("no message waits for its owner: the test shows nothing")
	}
}

func TestRefusedTexts(t *testing.T) {
	t.Parallel()
	invalid, unavailable := &models.Error{Kind: models.Invalid}, &models.Error{Kind: models.Unavailable}
	for name, test := range map[string]struct {
		kind    string
		change  string
		errs    []error
		none    bool
		state   string
		problem string
		asked   int
	}{
		"no model is configured":           {kind: "summary", none: true, state: "failed", problem: "no model is configured"},
		"a message that gives orders":      {kind: "summary", change: `signals = signals || '{"injection":true}'`, state: "failed", problem: "gives instructions to an assistant"},
		"phishing":                         {kind: "summary", change: `signals = signals || '{"phishing":true}'`, state: "failed", problem: "may be phishing"},
		"a draft for a suspicious message": {kind: "draft", change: `signals = signals || '{"suspicious":true}'`, state: "failed", problem: "is suspicious"},
		"a silent level":                   {kind: "draft", change: `decision = decision || '{"allowed":"L0"}'`, state: "failed", problem: "drafts are written from L1"},
		"a suspicious message, summarised": {kind: "summary", change: `signals = signals || '{"suspicious":true}'`, state: "written", asked: 1},
		"no server answers":                {kind: "summary", errs: []error{unavailable, unavailable}, state: "waiting", asked: 2},
		"one bad answer":                   {kind: "summary", errs: []error{invalid}, state: "written", asked: 2},
		"two bad answers":                  {kind: "summary", errs: []error{invalid, invalid}, state: "failed", problem: "no usable text: invalid", asked: 2},
		"a message over the context":       {kind: "draft", errs: []error{&models.Error{Kind: models.TooLong}}, state: "written", asked: 2},
		"an unknown error":                 {kind: "summary", errs: []error{errors.New("hush")}, state: "written", asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.deliver("", request("1@tallis.example").raw())
			f.once()
			if test.change != "" {
				f.exec("UPDATE triage_decisions SET " + test.change)
			}
			f.askText("1@tallis.example", wire.TriageTextInput{Kind: test.kind})
			w := &writer{text: "Text.", errs: test.errs}
			for range 2 {
				if test.none {
					f.once()
				} else {
					f.withWriter(w)
				}
			}

			got := f.texts("1@tallis.example")
			if len(got) != 1 || got[0].State != test.state || !strings.Contains(got[0].Problem, test.problem) || (test.problem == "") != (got[0].Problem == "") {
				t.Errorf("texts = %+v, want %s %q", got, test.state, test.problem)
			}
			if len(w.asked) != test.asked {
				t.Errorf("the model was asked %d times, want %d", len(w.asked), test.asked)
			}
		})
	}
}

// TestMovedMessageIsNotAnswered checks that a moved message is not answered.
func TestMovedMessageIsNotAnswered(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.deliver("", request("1@tallis.example").raw())
	f.once()
	f.exec("UPDATE triage_locations SET key = 'gone'")
	f.askText("1@tallis.example", wire.TriageTextInput{Kind: "draft"})
	w := &writer{text: "Text."}
	f.withWriter(w)
	if got := f.texts("1@tallis.example"); got[0].State != "failed" || len(w.asked) > 0 {
		t.Errorf("texts = %+v after %d questions, want one that failed", got, len(w.asked))
	}
}

// TestServerOfTierT3WritesTexts uses a server in place of the model.
func TestServerOfTierT3WritesTexts(t *testing.T) {
	t.Parallel()
	fake := modeltest.New(t, modeltest.Config{Answer: func(r modeltest.Request) modeltest.Reply {
		if !strings.Contains(string(r.Schema), "line1") {
			return modeltest.First(r)
		}
		return modeltest.Reply{Text: `{"line1":"She wants the report.","line2":"By Friday.","line3":""}`}
	}})
	f, models := asking(t, fake.Models())
	f.deliver("", request("1@tallis.example").raw())
	f.onceWith(models)
	f.askText("1@tallis.example", wire.TriageTextInput{Kind: "summary"})
	fake.Fail(modeltest.Loading)
	f.onceWith(restarted(t, fake.Models()))
	waiting := f.texts("1@tallis.example")
	fake.Recover()

	f.onceWith(restarted(t, fake.Models()))

	if got := f.texts("1@tallis.example"); waiting[0].State != "waiting" || got[0].State != "written" || got[0].Text != "She wants the report.\nBy Friday." || got[0].Model != "test-model" {
		t.Errorf("texts = %+v, after %+v", got, waiting)
	}
}

// chooser answers with given texts.
type chooser struct{ answers map[string]string }

// Ask implements asker.Writer.
func (c *chooser) Ask(context.Context, models.Question) (models.Answer, error) {
	raw, err := json.Marshal(c.answers)
	return models.Answer{Text: raw, Model: "big"}, err
}
