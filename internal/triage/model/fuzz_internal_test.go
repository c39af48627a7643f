package model

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// FuzzRead gives the decoders any body. An accepted answer matches its schema,
// is one JSON value, and has token counts that fit the context.
func FuzzRead(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join("modeltest", "recordings", "*", "*.json"))
	if err != nil || len(paths) == 0 {
		f.Fatalf("%d recordings, %v", len(paths), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		var r struct {
			Status   int
			Response json.RawMessage
		}
		if err := json.Unmarshal(text, &r); err != nil {
			f.Fatal(err)
		}
		f.Add(r.Status, []byte(r.Response))
	}
	f.Add(200, []byte(`{"model":"triage-t1","message":{"content":"{\"show\":\"no\",\"kind\":\"bulk\"}"},"done":true,"done_reason":"stop","prompt_eval_count":44,"eval_count":10}`))
	q := Question{Schema: json.RawMessage(`{"type":"object","properties":{"show":{"enum":["yes","no"]},"kind":{"enum":["bulk","list","direct"]}},"required":["show","kind"],"additionalProperties":false}`), MaxTokens: 40}
	s := &Server{model: "triage-t1"}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		for _, p := range []protocol{openAI{}, llamaServer{}, ollama{}, lemonade{}} {
			k := &known{protocol: p, context: 2048, lettersPerToken: prosePerToken}

			a, err := s.read(t.Context(), k, q, status, body)

			if err != nil {
				if asError(err) == nil {
					t.Fatalf("read() = %v, want an *Error", err)
				}
				continue
			}
			var answer struct{ Show, Kind string }
			if status != 200 || json.Unmarshal(a.Text, &answer) != nil || answer.Show == "" || answer.Kind == "" {
				t.Errorf("read() with status %d takes %s", status, a.Text)
			}
			if a.PromptTokens <= 0 || a.PromptTokens+a.CompletionTokens >= 2048 || a.Model != "triage-t1" && a.Model != "triage-t1:latest" {
				t.Errorf("read() takes %+v", a)
			}
		}
	})
}
