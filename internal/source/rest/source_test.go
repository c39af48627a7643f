package rest_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

// echo returns a tool that returns its arguments.
func echo(schema string) rest.Tool {
	return rest.Tool{
		Name: "echo", Input: json.RawMessage(schema), Effect: envelope.EffectIdempotent,
		Run: func(_ context.Context, call source.Call) source.Observation {
			return source.Observation{Answered: true, Result: call.Args}
		},
	}
}

func TestConform(t *testing.T) {
	t.Parallel()
	sourcetest.Conform(t, func(t *testing.T) sourcetest.Harness {
		src, err := rest.NewSource(rest.New("test", rest.Config{}), echo(`{"type":"object","properties":{"n":{"type":"integer"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		return sourcetest.Harness{
			Source:  src,
			Act:     sourcetest.Invocation{Tool: "echo", Args: json.RawMessage(` {"n":12345678901234567890} `)},
			BadArgs: sourcetest.Invocation{Tool: "echo", Args: json.RawMessage(`{"n":"1"}`)},
			Without: map[sourcetest.Feature]string{
				sourcetest.Effects:    "the tool changes nothing",
				sourcetest.ToolErrors: "the tool cannot fail",
				sourcetest.Hangs:      "the tool waits for nothing",
				sourcetest.Losses:     "the tool asks nobody",
				sourcetest.RateLimits: "the tool has no limits",
				sourcetest.Restarts:   "the tool has no server",
			},
		}
	})
}

func TestArgumentsAreValidated(t *testing.T) {
	t.Parallel()
	src, err := rest.NewSource(rest.New("test", rest.Config{}), echo(`{"type":"object","maxProperties":1}`))
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"": "{}", " {\"a\":1}\n": `{"a":1}`, `{"a":1,"b":2}`: "", `[]`: "", `null`: "", `{`: "", `{} {}`: "",
	} {
		got := src.Execute(t.Context(), source.Call{Tool: "echo", Args: json.RawMessage(args), Effect: envelope.EffectOnce})

		if string(got.Result) != want || (got.Kind == source.KindRefused) != (want == "") {
			t.Errorf("Execute(%q) = %s %s, want %q", args, got.Kind, got.Result, want)
		}
	}
}

func TestInvalidSchema(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`{`, `{"type":"thing"}`, `{"$ref":"https://example.com/other.json"}`} {
		if _, err := rest.NewSource(rest.New("test", rest.Config{}), echo(schema)); err == nil {
			t.Errorf("NewSource() with the schema %s = nil, want an error", schema)
		}
	}
}
