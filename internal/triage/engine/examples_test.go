package engine_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/draft"
	"github.com/countersign-dev/countersign/internal/triage/engine"
)

// TestExamplesFromSentMail has drafts written with each choice of examples. A draft
// takes the owner's own words alone, and by recipient only what its recipient has got.
func TestExamplesFromSentMail(t *testing.T) {
	t.Parallel()
	canary := "canary" + uuid.NewString()[:8]
	sent := func(id, to, body string) string {
		return testMail{id: id + "@tallis.example", from: "Mara <" + owner + ">", to: to, subject: "Dates", body: body}.raw()
	}
	const ann = "Ann Lee <ann@tallis.example>"
	mails := map[string]string{
		"to Ann":         sent("a", ann, "Hi Ann, Tuesday suits me. "+canary+"\n\nCheers,\nMara\n\nOn Mon, Apr 2, 2012 at 6:26 PM, Ann Lee <ann@tallis.example> wrote:\n> quoted words of Ann\n"),
		"to both":        sent("b", "bob@example.org, "+ann, "Dear both, Wednesday then."),
		"to Bob":         sent("c", "Bob <bob@example.org>", "Bob, the price is a secret."),
		"a forward":      sent("d", ann, "---------- Forwarded message ---------\nFrom: Carl <carl@example.org>\nDate: Mon\nSubject: Fence\nTo: Mara\n\nforwarded words of Carl"),
		"to Ann, listed": sent("listed", ann, "Listed words."),
	}
	elsewhere := request("1@tallis.example")
	elsewhere.headers = "Reply-To: ann.private@tallis.example"
	for name, test := range map[string]struct {
		texts  draft.Settings
		about  testMail
		want   []string
		absent []string
	}{
		"off":            {draft.Settings{}, request("1@tallis.example"), nil, []string{"Tuesday", "Wednesday", "secret", "Listed"}},
		"listed":         {draft.Settings{Examples: []string{"listed@tallis.example"}}, request("1@tallis.example"), []string{"Listed"}, []string{"Tuesday", "Wednesday"}},
		"by recipient":   {draft.Settings{ExamplesFrom: draft.FromRecipient}, request("1@tallis.example"), []string{"Tuesday", "Wednesday", "Listed"}, []string{"secret", "quoted words", "forwarded words"}},
		"to another one": {draft.Settings{ExamplesFrom: draft.FromRecipient}, elsewhere, nil, []string{"Tuesday", "Wednesday", "Listed", "secret"}},
		"a folder":       {draft.Settings{ExamplesFrom: draft.FromFolder, ExamplesFolder: "Archive"}, request("1@tallis.example"), []string{"Style of mine"}, []string{"Tuesday", "words of a stranger"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.put("work", func(a *account.Account) {
				a.Texts, a.Connection.Folders = test.texts, []string{"INBOX", "Sent", "Archive"}
			})
			for _, mail := range mails {
				f.deliver("Sent", mail)
			}
			f.deliver("Archive", sent("style", "dora@example.org", "Style of mine."))
			f.deliver("Archive", testMail{id: "stranger@x", from: "eve@foreign.example", to: owner, subject: "Hi", body: "words of a stranger"}.raw())
			f.deliver("", test.about.raw())
			f.once()
			f.askText("1@tallis.example", wire.TriageTextInput{Kind: "draft"})
			w := &writer{text: "Gladly."}
			var log bytes.Buffer
			e := f.engine(func(c *engine.Config) {
				c.Writer, c.Log = w, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
			})

			if err := e.Once(t.Context()); err != nil {
				t.Fatal(err)
			}

			if len(w.asked) != 1 || f.texts("1@tallis.example")[0].State != "written" {
				t.Fatalf("%d questions, and %+v", len(w.asked), f.texts("1@tallis.example"))
			}
			question := w.asked[0].User
			for _, part := range test.want {
				if !strings.Contains(question, part) {
					t.Errorf("the question lacks %q:\n%s", part, question)
				}
			}
			for _, part := range test.absent {
				if strings.Contains(question, part) {
					t.Errorf("the question has %q:\n%s", part, question)
				}
			}
			if got := strings.Count(question, "An earlier e-mail of the person"); got != len(test.want) {
				t.Errorf("%d examples, want %d", got, len(test.want))
			}
			if strings.Contains(question, canary) != slices.Contains(test.want, "Tuesday") {
				t.Error("the canary is not where its mail is: the test proves nothing")
			}
			if tables := f.holding(canary); !slices.Equal(tables, []string{"countersign_data.triage_messages"}) || strings.Contains(log.String(), canary) {
				t.Errorf("the words of an example are in %v, and in the log: %v", tables, strings.Contains(log.String(), canary))
			}
		})
	}
}
