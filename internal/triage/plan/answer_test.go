package plan_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/plan"
)

// TestRecipientIsFromTheHeader checks that no text of a model becomes a
// recipient, a subject or a Message-ID.
func TestRecipientIsFromTheHeader(t *testing.T) {
	t.Parallel()
	const text = "Hello,\n\nTo: mallory@evil.example\nBcc: all@evil.example"
	ann := message.Address{Addr: "ann@example.org"}
	for name, test := range map[string]struct {
		message message.Message
		args    string
		problem string
	}{
		"an answer": {
			message: message.Message{From: []message.Address{ann}, Subject: "Dates", MessageID: "2@example.org", References: []string{"0@example.org", "not one", "1@example.org"}},
			args:    `"in_reply_to":"2@example.org","references":["0@example.org","1@example.org","2@example.org"],"subject":"Re: Dates","text":TEXT,"to":["ann@example.org"]`,
		},
		"a conversation": {
			message: message.Message{From: []message.Address{ann}, Subject: "RE: Dates", MessageID: "no id"},
			args:    `"subject":"RE: Dates","text":TEXT,"to":["ann@example.org"]`,
		},
		"answers go elsewhere in the same domain": {
			message: message.Message{From: []message.Address{ann}, ReplyTo: []message.Address{{Addr: "team@Example.org"}}},
			args:    `"subject":"Re:","text":TEXT,"to":["team@Example.org"]`,
		},
		"answers are led to another domain": {
			message: message.Message{From: []message.Address{ann}, ReplyTo: []message.Address{{Addr: "ann@evil.example"}}},
			args:    `"subject":"Re:","text":TEXT,"to":["ann@example.org"]`,
		},
		"several authors":                    {message: message.Message{From: []message.Address{ann, ann}}, problem: "does not have exactly one sender"},
		"no author":                          {problem: "does not have exactly one sender"},
		"a subject that no header can carry": {message: message.Message{From: []message.Address{ann}, Subject: "a\nBcc: x"}, problem: "contains unprintable characters"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			on := plan.Target{Message: &test.message}

			p, err := plan.Answer(text, 7, true, on, config())

			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("Answer() = %v, want an error with %q", err, test.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			e, err := p.Envelope()
			want := `{"account":"ana",` + strings.Replace(test.args, "TEXT", `"Hello,\n\nTo: mallory@evil.example\nBcc: all@evil.example"`, 1) + `}`
			if err != nil || string(e.Args) != want || e.Approval != "required" {
				t.Errorf("Envelope() = %s approval %q, %v, want %s", e.Args, e.Approval, err, want)
			}
			for _, f := range p.Fields {
				if f.Value.Origin() == plan.ModelText && f.Pointer != "/text" {
					t.Errorf("%s holds words of a model", f.Pointer)
				}
			}
			other, _ := plan.Answer(text, 8, true, on, config())
			if again, _ := plan.Answer("other", 7, false, on, config()); again.ExternalID != p.ExternalID || other.ExternalID == p.ExternalID {
				t.Error("the name of a proposal does not depend on the number of the draft alone")
			}
		})
	}
	if _, err := plan.Answer(text, 1, true, plan.Target{Message: &message.Message{From: []message.Address{ann}}, Built: true}, config()); err == nil {
		t.Error("Answer() answers a message whose original is not known")
	}
}
