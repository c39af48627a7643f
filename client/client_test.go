package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

const token = "cs_agent_hunter2"

// serve answers with a handler, and returns a client of it.
func serve(t *testing.T, cfg client.Config, handler http.HandlerFunc) *client.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := client.New(server.URL, token, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestNewRejectsInvalidAddresses(t *testing.T) {
	t.Parallel()

	for _, address := range []string{"", "localhost:8080", "ftp://host", "http://", "http://user:hunter2@host", "http://host\x7f"} {
		_, err := client.New(address, "", client.Config{})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("New(%q) = %v, want an error without the password", address, err)
		}
	}
	if _, err := client.New("http://host", "two words", client.Config{}); err == nil || strings.Contains(err.Error(), "two words") {
		t.Errorf("New with a broken token = %v, want an error without it", err)
	}
}

func TestSubmitSendsTheProposalAsItIs(t *testing.T) {
	t.Parallel()
	// A key twice is for the server to see, and to refuse.
	raw := json.RawMessage(`{"tool":{"name":"a"},"tool":{"name":"b"}}`)
	var got, query, auth string
	c := serve(t, client.Config{}, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got, query, auth = string(body), r.URL.RawQuery, r.Header.Get("Authorization")
		w.Header().Set("Countersign-Pending", "true")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprint(w, `{"phase":"approved","envelope":{}}`)
	})

	s, err := c.Submit(t.Context(), raw, 1500*time.Millisecond)

	if err != nil || s.Known || !s.Pending || s.Action.Phase != envelope.PhaseApproved {
		t.Errorf("Submit() = %+v, %v", s, err)
	}
	if got != string(raw) || query != "wait=1500ms" || auth != "Bearer "+token {
		t.Errorf("server got %s, %s, %s", got, query, auth)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()

	for kind, want := range map[string]error{
		"not_found": client.ErrNotFound, "invalid": client.ErrInvalid, "conflict": client.ErrConflict, "denied": client.ErrDenied,
		"unauthorized": client.ErrUnauthorized, "busy": client.ErrBusy, "gone": client.ErrGone, "limited": client.ErrLimited,
		"precondition_failed": client.ErrChanged, "too_large": client.ErrInvalid, "internal": nil,
	} {
		c := serve(t, client.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, `{"type":"urn:countersign:problem:%s","title":"Title","status":418,"detail":"the detail"}`, kind)
		})

		_, err := c.Action(t.Context(), envelope.NewActionID())

		if errors.Unwrap(err) != want || err.Error() != "the detail" {
			t.Errorf("%s: %v of kind %v, want %v", kind, err, errors.Unwrap(err), want)
		}
	}
}

func TestUnexpectedAnswers(t *testing.T) {
	t.Parallel()

	for name, answer := range map[string]struct {
		status int
		body   string
	}{
		"a proxy's page":  {http.StatusBadGateway, "<html>hunter2"},
		"another service": {http.StatusOK, "<html>hunter2"},
		"a redirect":      {http.StatusFound, ""},
	} {
		c := serve(t, client.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://elsewhere.example/")
			w.WriteHeader(answer.status)
			fmt.Fprint(w, answer.body)
		})

		_, err := c.Tools(t.Context(), client.ToolFilter{})

		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "Countersign API") {
			t.Errorf("%s: %v, want an error that says what it is", name, err)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	c, err := client.New("http://127.0.0.1:1", token, client.Config{})
	if err != nil {
		t.Fatal(err)
	}

	err = c.Ready(t.Context())

	if _, ok := errors.AsType[*client.UnreachableError](err); !ok || strings.Contains(err.Error(), token) {
		t.Errorf("Ready() = %v, want an *UnreachableError", err)
	}
}

// feed answers with one piece of a stream after the other, each on a
// connection of its own, and notes where each was to begin.
func feed(t *testing.T, cfg client.Config, pieces ...string) (*client.Client, *[]string) {
	t.Helper()
	var at atomic.Int32
	asked := make([]string, 0, len(pieces))
	c := serve(t, cfg, func(w http.ResponseWriter, r *http.Request) {
		n := int(at.Add(1)) - 1
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		if n >= len(pieces) {
			<-r.Context().Done()
			return
		}
		if pieces[n] == "503" {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, strings.TrimSuffix(pieces[n], "hang"))
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		if strings.HasSuffix(pieces[n], "hang") {
			<-r.Context().Done()
		}
	})
	return c, &asked
}

func message(id, kind string) string {
	return fmt.Sprintf("id: %s\nevent: %s\ndata: {\"kind\":%q,\"actor\":\"x\",\"at\":\"2026-01-02T03:04:05Z\"}\n\n", id, kind, kind)
}

func TestFollowResumesAfterTheLastEvent(t *testing.T) {
	t.Parallel()
	c, asked := feed(t, client.Config{Pause: time.Millisecond, Silence: 200 * time.Millisecond},
		"id: 1-1-0\n\n"+message("1-2-0", "proposed")+"id: 1-3-0\nda", // cut off in the middle
		"503",
		": alive\n\n"+message("1-3-0", "decided")+"hang", // falls silent
		message("1-4-0", "settled"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	lost, opened := 0, 0

	last, err := c.Follow(ctx, "", client.Watcher{
		Event: func(e wire.Event) error {
			if got = append(got, e.ID+" "+e.Kind); e.Kind == "settled" {
				cancel()
			}
			return nil
		},
		Opened: func(string) { opened++ },
		Lost:   func(error, time.Duration) { lost++ },
	})

	if !errors.Is(err, context.Canceled) || last != "1-4-0" || lost != 3 || opened != 3 {
		t.Errorf("Follow() = %q, %v, lost %d times and opened %d, want 3 and 3", last, err, lost, opened)
	}
	if diff := cmp.Diff([]string{"1-2-0 proposed", "1-3-0 decided", "1-4-0 settled"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"", "1-2-0", "1-2-0", "1-3-0"}, *asked); diff != "" {
		t.Errorf("Last-Event-ID (-want +got):\n%s", diff)
	}
}

func TestFollowEndsOnWatcherErrorAndRefusal(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")

	c, _ := feed(t, client.Config{}, message("1-1-0", "proposed"))
	_, err := c.Follow(t.Context(), "", client.Watcher{Event: func(wire.Event) error { return enough }})
	if !errors.Is(err, enough) {
		t.Errorf("Follow() = %v, want the watcher's error", err)
	}

	c = serve(t, client.Config{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	_, err = c.Follow(t.Context(), "", client.Watcher{Event: func(wire.Event) error { return nil }})
	if p, ok := errors.AsType[*client.Problem](err); !ok || p.Status != http.StatusUnauthorized {
		t.Errorf("Follow() = %v, want the refusal", err)
	}
}

// FuzzReadEvents: every stream can be read, and the result does not depend on
// the line endings.
func FuzzReadEvents(f *testing.F) {
	f.Add([]byte("id: 1-1-0\nevent: settled\ndata: {}\n\n"))
	f.Add([]byte(": alive\r\n\r\nid:2\r\ndata:a\r\ndata: b\r\n\r\n"))
	f.Add([]byte("data\n\nid\n\n\n\ndata: cut off"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		ids, data, err := client.ReadIDs(bytes.NewReader(stream))
		if err == nil {
			t.Fatal("the end of a stream is no error")
		}
		if len(ids) != len(data) {
			t.Fatalf("%d ids and %d pieces of data", len(ids), len(data))
		}
		if bytes.ContainsAny(stream, "\r") {
			return
		}
		again, _, _ := client.ReadIDs(bytes.NewReader(bytes.ReplaceAll(stream, []byte("\n"), []byte("\r\n"))))
		if diff := cmp.Diff(ids, again); diff != "" {
			t.Fatalf("with other line ends (-want +got):\n%s", diff)
		}
	})
}

func TestSafeRequestsAreRetried(t *testing.T) {
	t.Parallel()
	named := json.RawMessage(`{"external_id":"a"}`)
	for name, tt := range map[string]struct {
		status, retryAfter int
		do                 func(*client.Client) error
		want               int
	}{
		"a read of a busy server":      {503, 0, func(c *client.Client) error { return c.Ready(t.Context()) }, 3},
		"a proposal, which has a name": {502, 0, func(c *client.Client) error { _, err := c.Submit(t.Context(), named, 0); return err }, 3},
		"a put":                        {429, 0, func(c *client.Client) error { return c.PutSettings(t.Context(), wire.Settings{}) }, 3},
		"a call without a name":        {503, 0, func(c *client.Client) error { _, err := c.Invoke(t.Context(), "t", wire.Call{}); return err }, 1},
		"a call with a name": {503, 0, func(c *client.Client) error {
			_, err := c.Invoke(t.Context(), "t", wire.Call{ExternalID: "a"})
			return err
		}, 3},
		"a decision": {503, 0, func(c *client.Client) error {
			_, err := c.Deny(t.Context(), envelope.NewActionID(), wire.Denial{})
			return err
		}, 1},
		"a bug of the server":                {500, 0, func(c *client.Client) error { return c.Ready(t.Context()) }, 1},
		"a server that asks for a long wait": {429, 60, func(c *client.Client) error { return c.Ready(t.Context()) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			c := serve(t, client.Config{Retries: 2, Pause: time.Millisecond}, func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				if tt.retryAfter > 0 {
					w.Header().Set("Retry-After", strconv.Itoa(tt.retryAfter))
				}
				w.WriteHeader(tt.status)
			})

			err := tt.do(c)

			if p, ok := errors.AsType[*client.Problem](err); !ok || p.RetryAfter != time.Duration(tt.retryAfter)*time.Second {
				t.Errorf("it ends with %#v", err)
			}
			if n := int(asked.Load()); n != tt.want {
				t.Errorf("it was asked %d times, want %d", n, tt.want)
			}
		})
	}
}

func TestItemsGoThroughEveryPage(t *testing.T) {
	t.Parallel()
	c := serve(t, client.Config{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.RawQuery == "cursor=two&tool=t" {
			fmt.Fprint(w, `{"items":[{"phase":"failed"}],"next_cursor":null}`)
			return
		}
		fmt.Fprint(w, `{"items":[{"phase":"pending"},{"phase":"approved"}],"next_cursor":"two"}`)
	})

	var phases []envelope.Phase
	for a, err := range c.AllActions(t.Context(), client.ActionFilter{Tool: "t"}) {
		if err != nil {
			t.Fatal(err)
		}
		phases = append(phases, a.Phase)
	}

	if diff := cmp.Diff([]envelope.Phase{envelope.PhasePending, envelope.PhaseApproved, envelope.PhaseFailed}, phases); diff != "" {
		t.Errorf("phases (-want +got):\n%s", diff)
	}
}
