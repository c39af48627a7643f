package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/model"
)

// Conform checks the behaviour that triage requires of a server. The model need
// not be good: the content of its answers is not checked.
func Conform(t *testing.T, tier model.Tier) {
	t.Run("is fit to be asked", func(t *testing.T) {
		if err := tier.Ready(t.Context()); err != nil {
			t.Fatalf("Ready() = %v", err)
		}
		if is := tier.State(); !is.Usable {
			t.Errorf("State() = %+v, want usable", is)
		}
	})
	t.Run("answers by the schema, in its order", func(t *testing.T) {
		a := must(t, tier, packed(3, 64))
		var keys members
		if err := json.Unmarshal(a.Text, &keys); err != nil {
			t.Fatal(err)
		}
		for i, key := range keys {
			if want := fmt.Sprintf("m%d", i+1); key.name != want {
				t.Errorf("member %d is %s, want %s", i, key.name, want)
			}
		}
		if a.PromptTokens <= 0 || a.CompletionTokens <= 0 {
			t.Errorf("Ask() counts %d and %d tokens", a.PromptTokens, a.CompletionTokens)
		}
	})
	t.Run("gives the tokens of the answer, or none", func(t *testing.T) {
		q := packed(2, 64)
		q.Choices = true
		a := must(t, tier, q)
		var text strings.Builder
		for _, token := range a.Tokens {
			text.WriteString(token.Text)
			if token.Logprob > 0 || len(token.Top) == 0 {
				t.Errorf("token %q has the log-probability %g and %d alternatives", token.Text, token.Logprob, len(token.Top))
			}
		}
		if got := strings.TrimSpace(text.String()); len(a.Tokens) > 0 && got != strings.TrimSpace(string(a.Text)) {
			t.Errorf("the tokens are %q, want %q", got, a.Text)
		}
	})
	t.Run("says that an answer was cut", func(t *testing.T) {
		fails(t, tier, packed(8, 3), model.Cut)
	})
	t.Run("refuses a prompt that is longer than the context", func(t *testing.T) {
		q := packed(2, 16)
		q.User = strings.Repeat("many different words, one after another, and no end of them ", tier.Context()/8)
		fails(t, tier, q, model.TooLong)
	})
	t.Run("answers several at once", func(t *testing.T) {
		var all sync.WaitGroup
		for range 2 * tier.Slots() {
			all.Go(func() {
				if _, err := tier.Ask(t.Context(), packed(1, 32)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

// packed returns a question with a value for each of several messages.
func packed(n, maxTokens int) model.Question {
	var properties, required []string
	for i := range n {
		properties = append(properties, fmt.Sprintf(`"m%d":{"enum":["R","C","D"]}`, i+1))
		required = append(required, fmt.Sprintf(`"m%d"`, i+1))
	}
	return model.Question{
		System: "Answer with a code for each message.", User: "From: a <a@example.com>\nSubject: minutes\nHere are the minutes of the meeting.",
		Schema:    json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":[` + strings.Join(required, ",") + `],"additionalProperties":false}`),
		MaxTokens: maxTokens,
	}
}

func must(t *testing.T, tier model.Tier, q model.Question) model.Answer {
	t.Helper()
	a, err := tier.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func fails(t *testing.T, tier model.Tier, q model.Question, want model.Kind) {
	t.Helper()
	_, err := tier.Ask(t.Context(), q)
	if e, ok := errors.AsType[*model.Error](err); !ok || e.Kind != want {
		t.Errorf("Ask() = %v, want the kind %s", err, want)
	}
}
