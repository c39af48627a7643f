package model_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/model/modeltest"
)

// TestRecorded reads the recorded answers of real servers.
func TestRecorded(t *testing.T) {
	t.Parallel()
	q := model.Question{
		User: "From: a <b.com>\nSubject: [ILUG] kernel\nhas anyone tried the new kernel patch on debian?", MaxTokens: 40,
		Schema: json.RawMessage(`{"type":"object","properties":{"show":{"enum":["yes","no"]},"kind":{"enum":["bulk","list","direct"]}},"required":["show","kind"],"additionalProperties":false}`),
	}
	for name, want := range map[string]struct{ llama, ollama model.Kind }{
		"chat_ok":                {"", ""},
		"chat_logprobs":          {"", ""},
		"chat_truncated":         {model.Cut, model.Cut},
		"chat_overflow":          {model.TooLong, model.Cut},
		"chat_bad_schema":        {model.Invalid, model.Unavailable},
		"chat_invalid_json":      {model.Unavailable, model.Invalid},
		"chat_no_messages":       {model.Invalid, model.Invalid},
		"chat_stream":            {model.Invalid, model.Invalid},
		"unknown_path":           {model.WrongModel, model.WrongModel},
		"embeddings_unsupported": {model.Unavailable, model.Unavailable},
	} {
		for server, kind := range map[string]model.Kind{"llama-server": want.llama, "ollama": want.ollama} {
			r, err := modeltest.Recorded(server, name)
			if err != nil {
				t.Fatal(err)
			}

			a, err := model.ReadRecorded(t.Context(), r.Status, r.Body(), "triage-t1", 2048, q)

			e, _ := errors.AsType[*model.Error](err)
			switch {
			case kind == "" && err != nil:
				t.Errorf("%s of %s = %v, want an answer", name, server, err)
			case kind == "" && string(a.Text) != `{"show":"yes","kind":"list"}`:
				t.Errorf("%s of %s = %s", name, server, a.Text)
			case kind != "" && (e == nil || e.Kind != kind):
				t.Errorf("%s of %s = %v, want the kind %s", name, server, err, kind)
			case name == "chat_logprobs" && (len(a.Tokens) == 0 || len(a.Tokens[0].Top) != 3):
				t.Errorf("%s of %s has the tokens %v", name, server, a.Tokens)
			}
		}
	}
}

// TestRecordedFlatSchema shows the purpose of the probe: the servers answer 200
// and ignore the schema.
func TestRecordedFlatSchema(t *testing.T) {
	t.Parallel()
	for _, server := range []string{"llama-server", "ollama"} {
		r, err := modeltest.Recorded(server, "chat_flat_schema_ignored")
		if err != nil {
			t.Fatal(err)
		}

		_, err = model.ReadRecorded(t.Context(), r.Status, r.Body(), "triage-t1", 2048,
			model.Question{Schema: json.RawMessage(`{"type":"array","items":{"type":"integer"}}`)})

		wantKind(t, err, model.Invalid)
	}
}
