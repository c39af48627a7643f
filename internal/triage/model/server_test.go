package model_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

func question() model.Question {
	return model.Question{
		System: "Answer by the schema.", User: "Is it a request?", MaxTokens: 32, Choices: true,
		Schema: json.RawMessage(`{"type":"object","properties":{"m1":{"enum":["R","C"]},"m2":{"enum":["D","P"]}},"required":["m1","m2"],"additionalProperties":false}`),
	}
}

func TestAsk(t *testing.T) {
	t.Parallel()
	server := modeltest.New(t, modeltest.Config{})

	a, err := server.Tier(t, "t1").Ask(t.Context(), question())

	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(a.Text), `{"m1":"R","m2":"D"}`; got != want {
		t.Errorf("Ask() = %s, want %s", got, want)
	}
	if len(a.Tokens) == 0 {
		t.Error("Ask() has no tokens")
	}
}

func TestAskRefusesAnswersThatDoNotFit(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]model.Kind{
		`{"m1":"R"}`:                                model.Invalid,
		`{"m1":"R","m2":"X"}`:                       model.Invalid,
		`{"m1":"R","m2":"D","m2":"D"}`:              model.Invalid,
		`{"m1":"R","m2":"D"} and more`:              model.Invalid,
		"```json\n{\"m1\":\"R\",\"m2\":\"D\"}\n```": model.Invalid,
		``: model.Invalid,
	} {
		server := modeltest.New(t, modeltest.Config{Answer: func(modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: text} }})

		_, err := server.Tier(t, "t1").Ask(t.Context(), question())

		if e, ok := errors.AsType[*model.Error](err); !ok || e.Kind != want {
			t.Errorf("Ask() with the answer %q: %v, want the kind %s", text, err, want)
		}
	}
}
