package slack_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
	"github.com/countersign-dev/countersign/internal/source/resttest"
	"github.com/countersign-dev/countersign/internal/source/slack"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	token = "xoxb-hush"
	hook  = "/services/T0/B0/hush-hook"
)

// workspace behaves as in Slack's documentation: it answers with status 200 for
// success and failure.
func workspace(s *resttest.Server) http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		_, _ = io.WriteString(w, text) // the client may be gone
	}
	method := func(name string, act func(w http.ResponseWriter, r *http.Request, args map[string]any)) {
		mux.HandleFunc("/api/"+name, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer "+token {
				answer(w, `{"ok":false,"error":"invalid_auth"}`)
				return
			}
			args := map[string]any{}
			for name, values := range r.URL.Query() {
				args[name] = values[0]
			}
			if r.Method == http.MethodPost && json.NewDecoder(r.Body).Decode(&args) != nil {
				answer(w, `{"ok":false,"error":"invalid_json"}`)
				return
			}
			// A channel E-x makes every method fail with x.
			if word, fails := strings.CutPrefix(fmt.Sprint(args["channel"]), "E-"); fails {
				answer(w, fmt.Sprintf(`{"ok":false,"error":%q}`, word))
				return
			}
			act(w, r, args)
		})
	}
	message := func(w http.ResponseWriter, r *http.Request, args map[string]any) {
		s.Effect(r)
		raw, err := json.Marshal(map[string]any{"ok": true, "channel": args["channel"], "ts": "1712.0001", "message": args})
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		answer(w, string(raw))
	}
	ok := func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		s.Effect(r)
		answer(w, `{"ok":true}`)
	}
	method("chat.postMessage", message)
	method("chat.update", message)
	method("chat.delete", message)
	method("chat.postEphemeral", ok)
	mux.HandleFunc("/api/views.open", func(w http.ResponseWriter, r *http.Request) {
		var args struct {
			TriggerID string `json:"trigger_id"`
		}
		if json.NewDecoder(r.Body).Decode(&args) != nil || args.TriggerID == "used" {
			answer(w, `{"ok":false,"error":"exchanged_trigger_id"}`)
			return
		}
		s.Effect(r)
		answer(w, `{"ok":true,"view":{"id":"V1"}}`)
	})
	method("reactions.add", ok)
	method("reactions.remove", ok)
	method("conversations.history", func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
		answer(w, fmt.Sprintf(`{"ok":true,"messages":[{"text":%q}],"has_more":false}`, r.URL.RawQuery))
	})
	mux.HandleFunc("POST "+hook, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil:
			panic(http.ErrAbortHandler)
		case strings.Contains(string(body), "archived"):
			w.WriteHeader(http.StatusGone)
			answer(w, "channel_is_archived")
		default:
			s.Effect(r)
			answer(w, "ok")
		}
	})
	return mux
}

// open returns a source for a server, with changes to its configuration.
func open(t *testing.T, s *resttest.Server, change ...func(*slack.Config)) source.Source {
	t.Helper()
	cfg := slack.Config{
		Name: "team", URL: s.URL + "/api", Token: rest.NewSecret(token), Webhook: rest.NewSecret(s.URL + hook),
		HTTP: resttest.Config(t),
	}
	for _, c := range change {
		c(&cfg)
	}
	src, err := slack.New(cfg)
	if err != nil {
		t.Fatalf("New() = %v", err)
	}
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Errorf("Close() = %v", err)
		}
	})
	return resttest.Keyed(src)
}

func send(channel string) sourcetest.Invocation {
	return sourcetest.Invocation{Tool: slack.ToolMessageSend, Args: json.RawMessage(`{"channel":"` + channel + `","text":"hello"}`)}
}

func post(text string) sourcetest.Invocation {
	return sourcetest.Invocation{Tool: slack.ToolWebhookSend, Args: json.RawMessage(`{"text":"` + text + `"}`)}
}

func TestConform(t *testing.T) {
	t.Parallel()
	without := map[sourcetest.Feature]string{
		sourcetest.Keys:     "Slack takes no idempotency key",
		sourcetest.Restarts: "Slack keeps nothing of its clients",
	}
	t.Run("web api", func(t *testing.T) {
		t.Parallel()
		sourcetest.Conform(t, func(t *testing.T) sourcetest.Harness {
			s := resttest.New(t, workspace)
			return sourcetest.Harness{
				Source: open(t, s), Count: s.Count, Act: send("C1"), Fail: send("E-a_word_of_tomorrow"),
				BadArgs: sourcetest.Invocation{Tool: slack.ToolMessageSend, Args: json.RawMessage(`{"channel":"C1","text":7}`)},
				Hang:    send(resttest.MarkerHang), Lose: send(resttest.MarkerLose),
				Refused: []sourcetest.Invocation{send(resttest.MarkerRefused)},
				Limited: send(resttest.MarkerLimited), RetryAfter: 7 * time.Second, Without: without,
			}
		})
	})
	t.Run("webhook", func(t *testing.T) {
		t.Parallel()
		sourcetest.Conform(t, func(t *testing.T) sourcetest.Harness {
			s := resttest.New(t, workspace)
			return sourcetest.Harness{
				Source: open(t, s), Count: s.Count, Act: post("hello"), BadArgs: sourcetest.Invocation{Tool: slack.ToolWebhookSend},
				Hang: post(resttest.MarkerHang), Lose: post(resttest.MarkerLose),
				Refused: []sourcetest.Invocation{post(resttest.MarkerRefused)},
				Limited: post(resttest.MarkerLimited), RetryAfter: 7 * time.Second,
				Without: map[sourcetest.Feature]string{
					sourcetest.Keys:       without[sourcetest.Keys],
					sourcetest.Restarts:   without[sourcetest.Restarts],
					sourcetest.ToolErrors: "a webhook fails with a status",
				},
			}
		})
	})
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]sourcetest.Invocation{"web api": send("C1"), "webhook": post("hello")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resttest.Faults(t, func(t *testing.T) resttest.Fixture {
				s := resttest.New(t, workspace)
				return resttest.Fixture{Server: s, Source: open(t, s), Act: act, Secret: "hush"}
			})
		})
	}
}

func TestErrorsAreClassifiedByCode(t *testing.T) {
	t.Parallel()
	src := open(t, resttest.New(t, workspace))
	for word, want := range map[string]struct {
		once, idempotent source.Kind
		code             string
	}{
		"channel_not_found":     {source.KindRefused, source.KindRefused, source.CodeNotFound},
		"not_in_channel":        {source.KindRefused, source.KindRefused, source.CodeRejected},
		"msg_too_long":          {source.KindRefused, source.KindRefused, source.CodeInvalidArgs},
		"missing_scope":         {source.KindRefused, source.KindRefused, source.CodeUnauthorized},
		"ratelimited":           {source.KindRetry, source.KindRetry, source.CodeRateLimited},
		"team_added_to_org":     {source.KindRetry, source.KindRetry, source.CodeUnreachable},
		"internal_error":        {source.KindUnknown, source.KindRetry, source.CodeServerError},
		"fatal_error":           {source.KindUnknown, source.KindRetry, source.CodeServerError},
		"a_word_of_tomorrow":    {source.KindRefused, source.KindRefused, source.CodeToolError},
		"message_not_found":     {source.KindRefused, source.KindRefused, source.CodeNotFound},
		"already_reacted":       {source.KindRefused, source.KindRefused, source.CodeToolError},
		"the \"quoted\" <word>": {source.KindRefused, source.KindRefused, source.CodeToolError},
	} {
		args, err := json.Marshal(map[string]string{"channel": "E-" + word, "text": "hello"})
		if err != nil {
			t.Fatal(err)
		}
		for effect, kind := range map[envelope.Effect]source.Kind{envelope.EffectOnce: want.once, envelope.EffectIdempotent: want.idempotent} {
			got := src.Execute(t.Context(), source.Call{Key: "k", Tool: slack.ToolMessageSend, Args: args, Effect: effect})

			if got.Kind != kind || got.Code != want.code {
				t.Errorf("Execute() with %s, %s = %s %q, want %s %q", word, effect, got.Kind, got.Code, kind, want.code)
			}
			resttest.NotShown(t, word, got.Message)
		}
	}
}

func TestExistingEffectIsAConflict(t *testing.T) {
	t.Parallel()
	src := open(t, resttest.New(t, workspace))
	for tool, args := range map[string]string{
		slack.ToolMessageDelete:  `{"channel":"E-message_not_found","ts":"1.2"}`,
		slack.ToolReactionAdd:    `{"channel":"E-already_reacted","timestamp":"1.2","name":"eyes"}`,
		slack.ToolReactionRemove: `{"channel":"E-no_reaction","timestamp":"1.2","name":"eyes"}`,
		slack.ToolViewOpen:       `{"trigger_id":"used","view":{"type":"modal"}}`,
	} {
		got := src.Execute(t.Context(), source.Call{Tool: tool, Args: json.RawMessage(args), Effect: envelope.EffectIdempotent})

		if got.Kind != source.KindConflict || got.Code != source.CodeConflict {
			t.Errorf("Execute(%s) = %s %q, want conflict", tool, got.Kind, got.Code)
		}
	}
}

func TestEveryToolWorks(t *testing.T) {
	t.Parallel()
	src := open(t, resttest.New(t, workspace))
	for tool, args := range map[string]string{
		slack.ToolMessageSend:      `{"channel":"C1","blocks":[{"type":"divider"}]}`,
		slack.ToolMessageUpdate:    `{"channel":"C1","ts":"1.2","text":"bye"}`,
		slack.ToolMessageDelete:    `{"channel":"C1","ts":"1.2"}`,
		slack.ToolMessageList:      `{"channel":"C1","limit":5,"oldest":"1.2","inclusive":true}`,
		slack.ToolReactionAdd:      `{"channel":"C1","timestamp":"1.2","name":"eyes"}`,
		slack.ToolReactionRemove:   `{"channel":"C1","timestamp":"1.2","name":"eyes"}`,
		slack.ToolWebhookSend:      `{"text":"hello"}`,
		slack.ToolMessageEphemeral: `{"channel":"C1","user":"U1","text":"psst"}`,
		slack.ToolViewOpen:         `{"trigger_id":"1.2.x","view":{"type":"modal"}}`,
	} {
		got := src.Execute(t.Context(), source.Call{Tool: tool, Args: json.RawMessage(args), Effect: envelope.EffectOnce})

		if got.Kind != source.KindDone || got.Code != "" || !json.Valid(got.Result) {
			t.Errorf("Execute(%s) = %s %q %s, want done", tool, got.Kind, got.Code, got.Result)
		}
		if tool == slack.ToolMessageSend && got.ProviderID != "C1/1712.0001" {
			t.Errorf("ProviderID = %q, want channel and ts", got.ProviderID)
		}
		if want := "channel=C1&include_all_metadata=true&inclusive=true&limit=5&oldest=1.2"; tool == slack.ToolMessageList &&
			!strings.Contains(string(got.Result), want) {
			t.Errorf("Result = %s, want the query %s", got.Result, want)
		}
	}
}

func TestMessagesAreMarkedIfConfigured(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, workspace)
	sent := func(mark bool) any {
		src := open(t, s, func(cfg *slack.Config) { cfg.MarkMessages = mark })
		got := src.Execute(t.Context(), source.Call{Key: "k-1", Tool: slack.ToolMessageSend, Args: send("C1").Args, Effect: envelope.EffectOnce})
		var result struct {
			Message struct{ Metadata any }
		}
		if err := json.Unmarshal(got.Result, &result); err != nil {
			t.Fatalf("Result = %s: %v", got.Result, err)
		}
		return result.Message.Metadata
	}

	want := map[string]any{"event_type": slack.EventType, "event_payload": map[string]any{"idempotency_key": "k-1"}}
	if diff := cmp.Diff(want, sent(true)); diff != "" {
		t.Errorf("metadata of a marked message (-want +got):\n%s", diff)
	}
	if got := sent(false); got != nil {
		t.Errorf("metadata of a message that is not marked = %v, want none", got)
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, workspace)
	src := open(t, s, func(cfg *slack.Config) { cfg.Token = rest.NewSecret("xoxb-other-hush") })
	call := source.Call{Tool: slack.ToolMessageSend, Args: send("C1").Args, Effect: envelope.EffectOnce}

	got := src.Execute(t.Context(), call)

	if got.Kind != source.KindRefused || got.Code != source.CodeUnauthorized {
		t.Errorf("Execute() with another's token = %s %q, want refused unauthorized", got.Kind, got.Code)
	}
	archived := src.Execute(t.Context(), source.Call{Tool: slack.ToolWebhookSend, Args: post("archived").Args, Effect: envelope.EffectOnce})
	if archived.Kind != source.KindRefused || archived.Code != source.CodeNotFound {
		t.Errorf("Execute() of an archived channel's webhook = %s %q, want refused", archived.Kind, archived.Code)
	}
	cfg := slack.Config{Token: rest.NewSecret(token), Webhook: rest.NewSecret(s.URL + hook)}
	made, err := slack.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	resttest.NotShown(t, "hush", cfg, &cfg, made, *made, src, got, archived)
}

func TestNewRejectsInvalidConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]slack.Config{
		"neither token nor webhook": {},
		"an address with a user":    {URL: "https://hush@slack.com", Token: rest.NewSecret(token)},
		"a webhook that is none":    {Webhook: rest.NewSecret("hush")},
		"a token of two lines":      {Token: rest.NewSecret("hush\nhush")},
	} {
		_, err := slack.New(cfg)

		if !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "hush") {
			t.Errorf("New() with %s = %v, want fault.Invalid without the secret", name, err)
		}
	}
}

func TestListHasToolsWithCredentials(t *testing.T) {
	t.Parallel()
	s := resttest.New(t, workspace)
	for name, test := range map[string]struct {
		change func(*slack.Config)
		want   int
	}{
		"both":    {func(*slack.Config) {}, 9},
		"token":   {func(cfg *slack.Config) { cfg.Webhook = rest.Secret{} }, 8},
		"webhook": {func(cfg *slack.Config) { cfg.Token = rest.Secret{} }, 1},
	} {
		tools, err := open(t, s, test.change).List(t.Context())
		if err != nil || len(tools) != test.want {
			t.Errorf("List() with %s = %d tools, %v, want %d", name, len(tools), err, test.want)
		}
	}
}
