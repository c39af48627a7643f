package mcpmail_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/mailboxtest"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/triage/mcpmail"
	"github.com/countersign-dev/countersign/internal/triage/mcpmailtest"
)

const canary = "canary"

// server starts a server with some messages in INBOX.
func server(t *testing.T, kind mcpmailtest.Kind, messages int) *mcpmailtest.Server {
	t.Helper()
	s := mcpmailtest.New(t, kind)
	for n := range messages {
		s.Deliver("INBOX", mailboxtest.Message(n+1, "hello"))
	}
	return s
}

func changes(t *testing.T, r mailbox.Reader, since mailbox.Cursor) (mailbox.Changes, error) {
	t.Helper()
	return r.Changes(t.Context(), "INBOX", since, 100, func(context.Context) ([]mailbox.Location, error) { return nil, nil })
}

// wantError fails unless an error is of a kind and has no text of the server.
func wantError(t *testing.T, what string, err, kind error) {
	t.Helper()
	if err == nil || kind != nil && !errors.Is(err, kind) || strings.Contains(strings.ToLower(err.Error()), canary) {
		t.Errorf("%s: %v, want an error of the kind %v without words of the server", what, err, kind)
	}
}

// TestOnlyReadingToolsAreCalled has the server declare each tool in turn as
// writing, at first and after a call.
func TestOnlyReadingToolsAreCalled(t *testing.T) {
	t.Parallel()
	for name, hints := range map[string]*sdk.ToolAnnotations{
		"it has no hints":               nil,
		"it has no read-only hint":      {Title: "Reads"},
		"it is not read-only":           {IdempotentHint: true},
		"it is read-only, and destroys": {ReadOnlyHint: true, DestructiveHint: new(true)},
	} {
		for _, tool := range []string{mcpmailtest.Folders, mcpmailtest.List, mcpmailtest.Changes, mcpmailtest.Read} {
			t.Run(name+" of "+tool, func(t *testing.T) {
				t.Parallel()
				s := server(t, mcpmailtest.Kind{}, 2)
				r := open(t, config(t, s))
				got, err := changes(t, r, nil)
				if err != nil || len(got.New) != 2 {
					t.Fatalf("before: %+v, %v", got, err)
				}
				called := len(s.Calls())

				s.Offer(tool, hints)
				_, err = changes(t, r, got.Next)
				wantError(t, "after another listing", err, mailbox.ErrDenied)
				err = r.Read(t.Context(), got.New, func(mailbox.Item, []byte, error) error { return nil })
				wantError(t, "a message that was listed before", err, mailbox.ErrDenied)
				_, err = open(t, config(t, s)).Folders(t.Context())
				wantError(t, "a new reader", err, mailbox.ErrDenied)

				if after := s.Calls(); len(after) != called || slices.Contains(after, mcpmailtest.Delete) {
					t.Errorf("the server was called: %v", after[called:])
				}
			})
		}
	}
}

func TestMissingTool(t *testing.T) {
	t.Parallel()
	s := server(t, mcpmailtest.Kind{}, 1)
	r := open(t, config(t, s))
	got, err := changes(t, r, nil)
	if err != nil {
		t.Fatal(err)
	}

	s.Withdraw(mcpmailtest.Changes)
	_, err = changes(t, r, got.Next)
	wantError(t, "the cursor of a tool that went", err, mailbox.ErrUnsupported)
	if again, err := changes(t, r, nil); err != nil || len(again.New) != 1 {
		t.Errorf("from the beginning, by time: %+v, %v", again, err)
	}
	s.Withdraw(mcpmailtest.Read)
	_, err = r.Folders(t.Context())
	wantError(t, "no tool that reads", err, mailbox.ErrUnsupported)
	c := config(t, s)
	c.Profile = profile(t, "", map[string]string{"tool.read": mcpmailtest.Folders, "tool.changes": "chosen"})
	_, err = open(t, c).Folders(t.Context())
	wantError(t, "a tool that the account chose", err, mailbox.ErrUnsupported)
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	s := server(t, mcpmailtest.Kind{Secret: "right"}, 1)
	c := config(t, s)
	c.Secret = func(context.Context) (string, error) { return canary, nil }
	_, err := open(t, c).Folders(t.Context())
	wantError(t, "another credential", err, mailbox.ErrDenied)
	c.Secret = func(context.Context) (string, error) { return "right", nil }
	r := open(t, c)
	got, err := changes(t, r, nil)
	if err != nil || len(got.New) != 1 {
		t.Fatalf("the credential: %+v, %v", got, err)
	}
	s.Stop()
	_, err = changes(t, r, got.Next)
	wantError(t, "a server that went", err, nil)
	for _, kind := range []error{mailbox.ErrDenied, mailbox.ErrGone, mailbox.ErrBusy, mailbox.ErrUnsupported} {
		if errors.Is(err, kind) {
			t.Errorf("an outage is %v", err)
		}
	}
	c.Networks = nil
	_, err = open(t, c).Folders(t.Context())
	wantError(t, "an address that is not allowed", err, nil)
}

// TestLimitsAreHonoured has the server report its limits in every supported
// form.
func TestLimitsAreHonoured(t *testing.T) {
	t.Parallel()
	at := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	for name, row := range map[string]struct {
		status      int
		after, fail string
		least, most time.Duration
	}{
		"429 with a time":            {status: http.StatusTooManyRequests, after: "3600", least: time.Hour, most: 75 * time.Minute},
		"429 without":                {status: http.StatusTooManyRequests, least: 40 * time.Second, most: 75 * time.Second},
		"503 with a time":            {status: http.StatusServiceUnavailable, after: "60", least: time.Minute, most: 75 * time.Second},
		"a tool with seconds":        {fail: `{"error": "canary: rate limit", "retryAfter": 120}`, least: 2 * time.Minute, most: 150 * time.Second},
		"a tool with milliseconds":   {fail: `{"code":"RATE_LIMITED","retry_after_ms": 120000, "text": "canary"}`, least: 2 * time.Minute, most: 150 * time.Second},
		"a tool with a time of day":  {fail: "User-rate limit exceeded.  Retry after " + at, least: 59 * time.Minute, most: 75 * time.Minute},
		"a tool with too long":       {fail: "429 Too many requests. Retry-After: 99999999999999999999", least: 24 * time.Hour, most: 30 * time.Hour},
		"a tool without a time":      {fail: "Quota exceeded for canary", least: 40 * time.Second, most: 75 * time.Second},
		"a tool with a negative one": {fail: "too many requests, retry after -5", least: 40 * time.Second, most: 75 * time.Second},
	} {
		for _, when := range []string{"at first", "while it is read"} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				s := server(t, mcpmailtest.Kind{}, 1)
				c := config(t, s)
				if when == "while it is read" {
					r := open(t, c)
					if _, err := r.Folders(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				s.Refuses(func() (int, string) { return row.status, row.after })
				s.Answers(func(_ string, _, answer map[string]any) {
					if row.fail != "" {
						answer["fail"] = row.fail
					}
				})

				_, err := changes(t, open(t, c), nil)
				wantError(t, "refused", err, mailbox.ErrBusy)
				if after := mailbox.RetryAfter(err); after < row.least || after > row.most {
					t.Errorf("try again after %s, want %s to %s", after, row.least, row.most)
				}
				s.Refuses(nil)
				called := len(s.Calls())
				_, err = open(t, c).Folders(t.Context()) // another account of the same mailbox
				wantError(t, "held back", err, mailbox.ErrBusy)
				if len(s.Calls()) != called || c.Quota.State().Until == nil {
					t.Errorf("the server was asked, or the state %+v does not say until when", c.Quota.State())
				}
			})
		}
	}
}

// TestCallsCountAgainstTheProvider counts the units of Gmail that a reading
// takes.
func TestCallsCountAgainstTheProvider(t *testing.T) {
	t.Parallel()
	s := server(t, mcpmailtest.Kind{}, 3)
	c := config(t, s)
	limit := quota.Limit{Of: quota.Units, Most: 10_000, Per: 24 * time.Hour}
	c.Quota = quota.New(quota.Provider{Name: "test", Limits: []quota.Limit{limit}, Costs: map[quota.Operation]int{quota.Read: 100, quota.Changes: 20, quota.Folders: 7, quota.Command: 0}})
	r := open(t, c)
	got, err := changes(t, r, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Read(t.Context(), got.New, func(_ mailbox.Item, _ []byte, err error) error { return err }); err != nil {
		t.Fatal(err)
	}
	if left := c.Quota.State().Levels[0].Left; left != 3000-7-20-300 {
		t.Errorf("%d units are left, want %d", left, 3000-327)
	}
}

func TestInvalidAnswers(t *testing.T) {
	t.Parallel()
	item := func(id any) map[string]any {
		return map[string]any{"id": id, "received_at": "2026-03-05T16:23:00Z"}
	}
	for name, row := range map[string]struct {
		tool   string
		change func(answer map[string]any)
	}{
		"more with the same cursor": {mcpmailtest.Changes, func(a map[string]any) { a["more"], a["next"] = true, "1:0" }},
		"more without end": {mcpmailtest.Changes, func(a map[string]any) {
			a["new"], a["more"], a["next"] = []any{}, true, fmt.Sprint(canary, time.Now().UnixNano())
		}},
		"no cursor":                 {mcpmailtest.Changes, func(a map[string]any) { delete(a, "next") }},
		"a cursor that is a list":   {mcpmailtest.Changes, func(a map[string]any) { a["next"] = []any{canary} }},
		"a cursor that is too long": {mcpmailtest.Changes, func(a map[string]any) { a["next"] = strings.Repeat(canary, 2000) }},
		"more than was asked for":   {mcpmailtest.Changes, func(a map[string]any) { a["new"] = slices.Repeat([]any{item("x")}, 101) }},
		"a text instead of a list":  {mcpmailtest.Changes, func(a map[string]any) { a["new"] = canary }},
		"messages without an id":    {mcpmailtest.Changes, func(a map[string]any) { a["new"] = slices.Repeat([]any{item(nil)}, 3) }},
		"ids of two lines":          {mcpmailtest.Changes, func(a map[string]any) { a["new"] = slices.Repeat([]any{item("a\n" + canary)}, 3) }},
		"ids that are too long":     {mcpmailtest.Changes, func(a map[string]any) { a["new"] = slices.Repeat([]any{item(strings.Repeat(canary, 200))}, 3) }},
		"ids that are fractions":    {mcpmailtest.Changes, func(a map[string]any) { a["new"] = slices.Repeat([]any{item(1.5)}, 3) }},
		"messages without a time": {mcpmailtest.Changes, func(a map[string]any) {
			a["new"] = []any{map[string]any{"id": "x"}, map[string]any{"id": "y"}, map[string]any{"id": "z"}}
		}},
		"an answer that is too large":  {mcpmailtest.Changes, func(a map[string]any) { a["x"] = strings.Repeat(canary, 1<<20) }},
		"a tool that fails":            {mcpmailtest.Changes, func(a map[string]any) { a["fail"] = canary }},
		"an error without a failure":   {mcpmailtest.Changes, func(a map[string]any) { a["error"] = canary }},
		"a folder without a name":      {mcpmailtest.Folders, func(a map[string]any) { a["folders"] = []any{map[string]any{"name": ""}} }},
		"a folder of two lines":        {mcpmailtest.Folders, func(a map[string]any) { a["folders"] = []any{map[string]any{"name": "a\r\n" + canary}} }},
		"an object instead of folders": {mcpmailtest.Folders, func(a map[string]any) { a["folders"] = map[string]any{canary: 1} }},
		"the same folder a second time": {mcpmailtest.Folders, func(a map[string]any) {
			a["folders"] = []any{map[string]any{"name": "INBOX"}, map[string]any{"name": "INBOX"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t, mcpmailtest.Kind{}, 1)
			s.Answers(func(tool string, _, answer map[string]any) {
				if tool == row.tool {
					row.change(answer)
				}
			})
			_, err := changes(t, open(t, config(t, s)), mailbox.Cursor(`{"server":"1:0"}`))
			wantError(t, name, err, nil)
		})
	}
}

// TestRepeatedPageEndsTheListing has the server return the same page under
// new cursors forever.
func TestRepeatedPageEndsTheListing(t *testing.T) {
	t.Parallel()
	s := server(t, mcpmailtest.Kind{NoChanges: true}, 3)
	var pages atomic.Int64
	s.Answers(func(tool string, _, answer map[string]any) {
		if tool == mcpmailtest.List {
			answer["next_cursor"] = fmt.Sprint("page", pages.Add(1))
		}
	})
	r := open(t, config(t, s))
	got, err := changes(t, r, nil)
	if err != nil || len(got.New) != 3 || got.More || pages.Load() > 2 {
		t.Errorf("%d new, %v, after %d pages; want 3 after 2", len(got.New), err, pages.Load())
	}
	if got, err = changes(t, r, got.Next); err != nil || len(got.New) != 0 {
		t.Errorf("again: %+v, %v", got, err)
	}
}

// TestEndlessListingIsAnError has the server return one more message on
// each page, or hundreds, and always another page.
func TestEndlessListingIsAnError(t *testing.T) {
	t.Parallel()
	const most = 3
	for name, row := range map[string]struct{ onPage, last, pages int }{
		"as many pages as may be":           {onPage: 1, last: most, pages: most},
		"one page more":                     {onPage: 1, last: most + 1, pages: most},
		"pages without end":                 {onPage: 1, last: 1 << 30, pages: most},
		"more messages than were asked for": {onPage: 200, last: 1 << 30, pages: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t, mcpmailtest.Kind{NoChanges: true}, 0)
			var pages, messages atomic.Int64
			s.Answers(func(tool string, _, answer map[string]any) {
				if tool != mcpmailtest.List {
					return
				}
				found := make([]any, row.onPage)
				for i := range found {
					found[i] = map[string]any{"id": fmt.Sprint(canary, messages.Add(1)), "received_at": "2026-03-05T16:23:00Z"}
				}
				answer["messages"] = found
				if page := pages.Add(1); page < int64(row.last) {
					answer["next_cursor"] = fmt.Sprint("page", page)
				}
			})
			r := open(t, config(t, s))
			mcpmail.SetMaxPages(r, most)

			got, err := changes(t, r, nil)

			if row.last == most {
				if err != nil || len(got.New) != most {
					t.Errorf("%d new, %v, want all", len(got.New), err)
				}
			} else if wantError(t, name, err, nil); len(got.New) != 0 {
				t.Errorf("%d new messages with the error", len(got.New))
			}
			if int(pages.Load()) != row.pages {
				t.Errorf("%d pages were asked for, want %d", pages.Load(), row.pages)
			}
		})
	}
}

// TestTimeInTheFutureHidesNothing has a message with a time in a hundred
// years.
func TestTimeInTheFutureHidesNothing(t *testing.T) {
	t.Parallel()
	s := server(t, mcpmailtest.Kind{NoChanges: true}, 1)
	s.At("INBOX", mailboxtest.Message(2, "hello"), time.Now().AddDate(100, 0, 0))
	r := open(t, config(t, s))
	got, err := changes(t, r, nil)
	if err != nil || len(got.New) != 2 {
		t.Fatalf("%+v, %v", got, err)
	}
	s.Deliver("INBOX", mailboxtest.Message(3, "hello"))
	if got, err = changes(t, r, got.Next); err != nil || len(got.New) != 1 {
		t.Errorf("after the message of the future: %+v, %v, want the one that came", got, err)
	}
}

// TestUnreadableMessagesAreReported reads three messages of which the server cannot
// return one, or any.
func TestUnreadableMessagesAreReported(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(answer map[string]any)
		kind   error
	}{
		"it went":                        {func(a map[string]any) { a["fail"] = "Message not found: " + canary }, mailbox.ErrGone},
		"the tool fails":                 {func(a map[string]any) { a["fail"] = canary }, mailbox.ErrUnreadable},
		"its original is invalid base64": {func(a map[string]any) { a["raw"] = canary + "!" }, mailbox.ErrUnreadable},
		"it is empty":                    {func(a map[string]any) { delete(a, "raw") }, mailbox.ErrUnreadable},
		"it is over the limit":           {func(a map[string]any) { a["raw"] = strings.Repeat("AAAA", mailboxtest.MaxSize) }, mailbox.ErrTooLarge},
		"it is far over the limit":       {func(a map[string]any) { a["raw"] = strings.Repeat("AAAA", 5<<20/4) }, mailbox.ErrTooLarge},
		"it is a number":                 {func(a map[string]any) { a["raw"] = 7 }, mailbox.ErrUnreadable},
		"it has no sender":               {func(a map[string]any) { delete(a, "raw"); a["text"] = canary }, mailbox.ErrUnreadable},
		"it is over, with no sender":     {func(a map[string]any) { delete(a, "raw"); a["text"] = strings.Repeat(canary, 1<<20) }, mailbox.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t, mcpmailtest.Kind{}, 3)
			r := open(t, config(t, s))
			got, err := changes(t, r, nil)
			if err != nil {
				t.Fatal(err)
			}
			s.Answers(func(tool string, args, answer map[string]any) {
				if tool == mcpmailtest.Read && args["id"] == got.New[1].Key {
					row.change(answer)
				}
			})
			found := map[string]error{}
			err = r.Read(t.Context(), got.New, func(item mailbox.Item, raw []byte, err error) error {
				found[item.Key] = err
				if (err == nil) != (raw != nil) {
					t.Errorf("%d bytes with the error %v", len(raw), err)
				}
				return nil
			})
			if err != nil || len(found) != 3 || found[got.New[0].Key] != nil || found[got.New[2].Key] != nil {
				t.Errorf("of three messages: %v, %v", found, err)
			}
			wantError(t, name, found[got.New[1].Key], row.kind)
			if row.kind != mailbox.ErrUnreadable {
				return
			}
			s.Answers(func(tool string, _, answer map[string]any) {
				if tool == mcpmailtest.Read {
					row.change(answer)
				}
			})
			err = r.Read(t.Context(), got.New, func(_ mailbox.Item, _ []byte, err error) error { return err })
			wantError(t, "all of them", err, nil)
			if errors.Is(err, mailbox.ErrGone) {
				t.Errorf("all of them is %v", err)
			}
		})
	}
}

// TestUnusableEntryStopsNoOther lists messages without an id and without a
// time, next to one that has both, and alone.
func TestUnusableEntryStopsNoOther(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]map[string]any{
		"no id":                {"received_at": "2026-03-05T16:23:00Z"},
		"an id that is a list": {"id": []any{}, "received_at": "2026-03-05T16:23:00Z"},
		"no time":              {"id": "x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t, mcpmailtest.Kind{}, 1)
			s.Answers(func(tool string, _, answer map[string]any) {
				if found, ok := answer["new"].([]any); ok && tool == mcpmailtest.Changes && len(found) > 0 {
					answer["new"] = append(found, bad)
				}
			})

			got, err := changes(t, open(t, config(t, s)), nil)

			if err != nil || len(got.New) != 2 {
				t.Fatalf("%+v, %v; want both", got, err)
			}
			usable := slices.IndexFunc(got.New, func(it mailbox.Item) bool { return it.Unusable == "" })
			if usable < 0 || got.New[usable].Key == "" || got.New[1-usable].Unusable == "" {
				t.Errorf("%+v, want one that is usable", got.New)
			}

			s.Answers(func(tool string, _, answer map[string]any) {
				if tool == mcpmailtest.Changes {
					answer["new"] = []any{bad}
				}
			})
			got, err = changes(t, open(t, config(t, s)), nil)
			if err != nil || len(got.New) != 1 || got.New[0].Unusable == "" {
				t.Errorf("alone: %+v, %v; want it unusable", got.New, err)
			}
		})
	}
}
