package builtin_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/builtin"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

// drawer keeps notes in memory.
type drawer struct {
	mu   sync.Mutex
	kept map[string]string
	fail error
}

func (d *drawer) Keep(ctx context.Context, key, text string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := errors.Join(ctx.Err(), d.fail); err != nil {
		return "", err
	}
	if _, there := d.kept[key]; !there {
		d.kept[key] = text
	}
	return "id of " + key, nil
}

func (d *drawer) count(key string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, there := d.kept[key]; there {
		return 1
	}
	return 0
}

func withNotes(t *testing.T) (*builtin.Source, *drawer) {
	t.Helper()
	d := &drawer{kept: make(map[string]string)}
	src, err := builtin.With(builtin.Config{Notes: d})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = src.Close() })
	return src, d
}

func TestConform(t *testing.T) {
	t.Parallel()
	sourcetest.Conform(t, func(t *testing.T) sourcetest.Harness {
		t.Helper()
		src, d := withNotes(t)
		return sourcetest.Harness{
			Source:  src,
			Act:     sourcetest.Invocation{Tool: builtin.ToolNote, Args: json.RawMessage(`{"text":"hello"}`)},
			Count:   d.count,
			BadArgs: sourcetest.Invocation{Tool: builtin.ToolNote, Args: json.RawMessage(`{"text":7}`)},
			Without: map[sourcetest.Feature]string{
				sourcetest.ToolErrors: "built-in tools have nothing that could fail",
				sourcetest.Hangs:      "built-in tools wait for nothing",
				sourcetest.Losses:     "built-in tools run in this process",
				sourcetest.RateLimits: "built-in tools have no limits",
				sourcetest.Restarts:   "built-in tools have no server",
			},
		}
	})
}

func TestNote(t *testing.T) {
	t.Parallel()
	call := func(args string) source.Call {
		return source.Call{Tool: builtin.ToolNote, Key: "k", Args: json.RawMessage(args), Effect: envelope.EffectKeyed}
	}
	for name, test := range map[string]struct {
		args string
		fail error
		want source.Outcome
	}{
		"is kept": {
			args: `{"text":"x"}`,
			want: source.Outcome{Kind: source.KindDone, Result: json.RawMessage(`{"id":"id of k"}`), ProviderID: "id of k"},
		},
		"that cannot be kept is tried again, since the key says that it is the same": {
			args: `{"text":"x"}`, fail: errors.New("secret of the database"),
			want: source.Outcome{Kind: source.KindRetry, Code: source.CodeUnreachable, Message: "the note could not be stored", Unsure: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src, d := withNotes(t)
			d.fail = test.fail

			got := src.Execute(t.Context(), call(test.args))

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Execute(%s) (-want +got):\n%s", test.args, diff)
			}
		})
	}
	for _, args := range []string{`{}`, `{"text":""}`, `{"text":"x","more":1}`, `{"text":"` + strings.Repeat("ä", builtin.MaxNoteLength+1) + `"}`} {
		src, d := withNotes(t)

		got := src.Execute(t.Context(), call(args))

		if got.Kind != source.KindRefused || got.Code != source.CodeInvalidArgs || d.count("k") != 0 {
			t.Errorf("Execute(%.30s) = %+v and keeps %d, want it refused", args, got, d.count("k"))
		}
	}
}

func TestNoNoteToolWithoutStorage(t *testing.T) {
	t.Parallel()

	tools, err := builtin.New().List(t.Context())

	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		if tool.Name == builtin.ToolNote {
			t.Error("List has the tool for notes, want none")
		}
	}
}
