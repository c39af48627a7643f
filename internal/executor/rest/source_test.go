package rest_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/executor"
	"github.com/countersign-dev/countersign/internal/executor/executortest"
	"github.com/countersign-dev/countersign/internal/executor/rest"
)

// echo is a tool that answers its arguments.
func echo(schema string) rest.Tool {
	return rest.Tool{
		Tool: executor.Tool{Name: "echo", InputSchema: json.RawMessage(schema)},
		Run: func(_ context.Context, call executor.Call) rest.Finding {
			return rest.Finding{Observation: executor.Observation{Answered: true}, Result: call.Args}
		},
	}
}

func TestConform(t *testing.T) {
	t.Parallel()
	executortest.Conform(t, func(t *testing.T) executortest.Harness {
		src, err := rest.NewSource(rest.New("test", rest.Config{}), echo(`{"type":"object","properties":{"n":{"type":"integer"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		return executortest.Harness{
			Source:  src,
			Act:     executortest.Invocation{Tool: "echo", Args: json.RawMessage(` {"n":12345678901234567890} `)},
			BadArgs: executortest.Invocation{Tool: "echo", Args: json.RawMessage(`{"n":"1"}`)},
			Without: map[executortest.Feature]string{
				executortest.Effects:    "the tool changes nothing",
				executortest.ToolErrors: "the tool cannot fail",
				executortest.Hangs:      "the tool waits for nothing",
				executortest.Losses:     "the tool asks nobody",
				executortest.RateLimits: "the tool has no limits",
				executortest.Restarts:   "the tool has no server",
			},
		}
	})
}

func TestArgumentsThatFit(t *testing.T) {
	t.Parallel()
	src, err := rest.NewSource(rest.New("test", rest.Config{}), echo(`{"type":"object","maxProperties":1}`))
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"": "{}", " {\"a\":1}\n": `{"a":1}`, `{"a":1,"b":2}`: "", `[]`: "", `null`: "", `{`: "", `{} {}`: "",
	} {
		got := src.Execute(t.Context(), executor.Call{Tool: "echo", Args: json.RawMessage(args), Effect: envelope.EffectOnce})

		if string(got.Result) != want || (got.Kind == executor.KindRefused) != (want == "") {
			t.Errorf("Execute(%q) = %s %s, want %q", args, got.Kind, got.Result, want)
		}
	}
}

func TestASchemaThatDoesNotCompile(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`{`, `{"type":"thing"}`, `{"$ref":"https://example.com/other.json"}`} {
		if _, err := rest.NewSource(rest.New("test", rest.Config{}), echo(schema)); err == nil {
			t.Errorf("NewSource() with the schema %s = nil, want an error", schema)
		}
	}
}
