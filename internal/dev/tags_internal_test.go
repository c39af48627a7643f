package dev

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/source/davtest"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// forgetful forwards requests to a server, and loses the answer to the first PUT of
// each item, as a worker does that dies between the call and its record.
type forgetful struct {
	to   *httputil.ReverseProxy
	mu   sync.Mutex
	puts map[string]int
}

func (f *forgetful) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	lose := r.Method == http.MethodPut && f.puts[r.URL.Path] == 0
	if r.Method == http.MethodPut {
		f.puts[r.URL.Path]++
	}
	f.mu.Unlock()
	if !lose {
		f.to.ServeHTTP(w, r)
		return
	}
	f.to.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// TestTagsEndInCalendarAndAddressBook goes from keywords of a mailbox through triage,
// outbox and worker into the collections of a Radicale. The answers of the first calls are
// lost.
func TestTagsEndInCalendarAndAddressBook(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	radicale := davtest.New(t)
	target, err := url.Parse(radicale.Calendar)
	if err != nil {
		t.Fatal(err)
	}
	target.Path = ""
	between := &forgetful{to: httputil.NewSingleHostReverseProxy(target), puts: map[string]int{}}
	proxy := httptest.NewServer(between)
	t.Cleanup(proxy.Close)
	e, err := Open(ctx, Config{DatabaseURL: dbtest.URL(t), Dir: t.TempDir(), Listen: "127.0.0.1:0", Accounts: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	owner := clientOf(t, e, e.Tokens().Owner)
	through := func(address string) string { return strings.Replace(address, target.String(), proxy.URL, 1) }
	if err := owner.PutSource(ctx, "dav", wire.SourceInput{
		Kind: catalog.KindDAV,
		Config: jsonOf(t, object{
			"user": davtest.User, "calendars": object{"default": through(radicale.Calendar)}, "address_books": object{"default": through(radicale.AddressBook)},
		}),
		Credentials: jsonOf(t, object{"values": object{"password": davtest.Password}}),
	}); err != nil {
		t.Fatal(err)
	}
	if err := connection.NewRefresher(e.pool, e.cache, e.live, e.cfg.Log).Refresh(ctx, e.demo.id, "dav"); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"dav:add-contact", "dav:create-reminder"} {
		if err := owner.PutMode(ctx, wire.Mode{Tool: tool, Mode: envelope.ModeAllow}); err != nil {
			t.Fatal(err)
		}
	}
	taggedMailbox(t, e)

	if _, err := owner.AskTriageRun(ctx, mailAccount); err != nil {
		t.Fatal(err)
	}
	tags := awaitTags(t, owner, 2)

	for _, got := range tags {
		if got.State != "gone" || got.Failures != 0 || got.Try != 2 {
			t.Errorf("tag = %+v, want it gone after its first try", got)
		}
	}
	for address, want := range map[string][]string{
		radicale.Calendar:    {"BEGIN:VEVENT", "SUMMARY:Invoice 1234", "DTSTART;VALUE=DATE:20270215"},
		radicale.AddressBook: {"BEGIN:VCARD", "FN:Jane Doe", "EMAIL", "jane@newcompany.example", "+49 30 1234567"},
	} {
		items := radicale.Items(address)
		for _, text := range want {
			if !strings.Contains(items, text) {
				t.Errorf("%s has no %q:\n%s", address, text, items)
			}
		}
		if n := strings.Count(items, want[0]); n != 1 {
			t.Errorf("%s has %d items, want 1", address, n)
		}
	}
	between.mu.Lock()
	defer between.mu.Unlock()
	if len(between.puts) != 2 {
		t.Errorf("calls for %v, want two items", between.puts)
	}
	for item, n := range between.puts {
		if n < 2 {
			t.Errorf("%d calls for %s, want a repeated one: else the test shows nothing", n, item)
		}
	}
	log, err := owner.TriageTries(ctx, client.TriageTagFilter{Account: mailAccount})
	if err != nil || len(log.Items) != 2 {
		t.Fatalf("log = %+v, %v, want two tries", log.Items, err)
	}
	for _, try := range log.Items {
		if try.Status != "success" || try.ActionID == nil || len(try.Extracted) == 0 {
			t.Errorf("try = %+v", try)
		}
	}
}

// taggedMailbox makes the mailbox of the environment, with a message that its owner tagged,
// and one whose sender wrote the keywords.
func taggedMailbox(t *testing.T, e *Environment) {
	t.Helper()
	dir := filepath.Join(e.mailDir(), e.demo.id.String())
	for _, folder := range []string{"", ".Archive", ".Sent", ".Drafts", ".Junk"} {
		for _, part := range []string{"cur", "new", "tmp"} {
			if err := os.MkdirAll(filepath.Join(dir, folder, part), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	const mail = "%sReceived: from out.newcompany.example ([192.0.2.1]) by mx.sample.example; %s\nAuthentication-Results: mx.sample.example; spf=pass smtp.mailfrom=newcompany.example; dkim=pass header.d=newcompany.example; dmarc=pass header.from=newcompany.example\n" +
		"Message-ID: <%d@newcompany.example>\nDate: %s\nFrom: Jane Doe <jane@newcompany.example>\nTo: " + mailOwner + "\nSubject: Invoice 1234\n\nDear Ada,\n\nthe payment is due by February 15, 2027.\n\nBest regards,\nJane Doe, CTO at NewCompany\n+49 30 1234567\n"
	at := time.Now().Format(time.RFC1123Z)
	for name, text := range map[string]string{
		"dovecot-keywords":              "0 countersign_do_add-contact\n1 countersign_do_create-reminder\n",
		"cur/1700000001.test.host:2,ab": fmt.Sprintf(mail, "", at, 1, at),
		"cur/1700000002.test.host:2,":   fmt.Sprintf(mail, "X-Keywords: countersign_do_create-reminder\nKeywords: countersign_do_add-contact\n", at, 2, at),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.registerMail(t.Context(), e.demo, dir); err != nil {
		t.Fatal(err)
	}
	if err := e.registerAccount(t.Context(), e.demo, dir); err != nil {
		t.Fatal(err)
	}
}

// awaitTags waits until a number of tags is gone, and returns all.
func awaitTags(t *testing.T, c *client.Client, want int) []wire.TriageTag {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		tags, err := c.TriageTags(t.Context(), client.TriageTagFilter{State: "any"})
		if err != nil {
			t.Fatal(err)
		}
		gone := 0
		for _, tag := range tags.Items {
			if tag.State == "gone" || tag.State == "skipped" {
				gone++
			}
		}
		if gone >= want && len(tags.Items) == gone {
			return tags.Items
		}
		select {
		case <-t.Context().Done():
			raw, _ := json.Marshal(tags.Items)
			t.Fatalf("tags = %s", raw)
		case <-ticker.C:
		}
	}
}
