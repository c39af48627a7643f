package connection_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source/mail"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

func TestCheckConfig(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind, config string
		want         []string
	}{
		{catalog.KindMCP, `{"transport":"http","url":"http://x"}`, nil},
		{catalog.KindMCP, `{"transport":"http"}`, []string{"/config/url required"}},
		{catalog.KindToolGateway, `{"url":"http://127.0.0.1:8085","honours_key":true}`, nil},
		{catalog.KindToolGateway, `{}`, []string{"/config/url required"}},
		{catalog.KindToolGateway, `{"url":"https://hush@x"}`, []string{"/config/url pattern"}},
		{catalog.KindToolGateway, `{"url":"https://x?hush"}`, []string{"/config/url pattern"}},
		{catalog.KindToolGateway, `{"url":"https://x","hush":1}`, []string{"/config/hush unknown_field"}},
		{catalog.KindToolGateway, `[]`, []string{"/config type"}},
		{catalog.KindToolGateway, `{`, []string{"/config syntax"}},
		{catalog.KindComposio, `{"user_id":"u","toolkits":["gmail"],"version":"latest","connected_account_id":"ca_1"}`, nil},
		{catalog.KindComposio, `{"toolkits":[]}`, []string{"/config/toolkits minItems", "/config/user_id required"}},
		{catalog.KindComposio, `{"user_id":7,"toolkits":["a b"]}`, []string{"/config/toolkits/0 pattern", "/config/user_id type"}},
		{catalog.KindSlack, `{}`, nil},
		{catalog.KindSlack, ``, nil},
		{catalog.KindSlack, `{"mark_messages":"yes","token":"hush"}`, []string{"/config/mark_messages type", "/config/token unknown_field"}},
		{catalog.KindLinear, `{"url":"https://api.linear.app/graphql"}`, nil},
		{catalog.KindLinear, `{"url":7}`, []string{"/config/url type"}},
		{catalog.KindSentry, `{"organization":"acme"}`, nil},
		{catalog.KindDAV, `{"calendars":{"work":"https://dav.example.org/ann/work/"},"address_books":{"family":"http://127.0.0.1:5232/ann/family"},"user":"ann","timeout":"5s"}`, nil},
		{catalog.KindDAV, `{"calendars":{"work":"dav.example.org"}}`, []string{"/config/calendars/work pattern"}},
		{catalog.KindDAV, `{"address_books":{"family":"https://ann:hush@dav.example.org/"}}`, []string{"/config/address_books/family pattern"}},
		{catalog.KindDAV, `{"calendars":{"work":"https://dav.example.org/"},"password":"hush"}`, []string{"/config/password unknown_field"}},
		{catalog.KindDAV, `{}`, []string{"/config minProperties"}},
		{catalog.KindSentry, `{"organization":".."}`, []string{"/config/organization pattern"}},
		{catalog.KindMail, `{"accounts":{"home":{"kind":"maildir","path":"/var/mail/ada","folders":{"archive":"Old"}}},"timeout":"5s"}`, nil},
		{catalog.KindMail, `{"accounts":{"work":{"kind":"imap","host":"imap.example.org","port":993,"tls":"implicit","user":"ada@example.org","auth":"xoauth2","label_prefix":"Countersign_"}}}`, nil},
		{catalog.KindMail, `{}`, []string{"/config/accounts required"}},
		{catalog.KindMail, `{"accounts":{}}`, []string{"/config/accounts minProperties"}},
		{catalog.KindMail, `{"accounts":{"work":{"kind":"pop3"}}}`, []string{"/config/accounts/work/kind enum"}},
		{catalog.KindMail, `{"accounts":{"work":{"kind":"imap","host":"a","user":"u","password":"hush"}}}`, []string{"/config/accounts/work/password unknown_field"}},
		{catalog.KindMail, `{"accounts":{"work":{"kind":"imap","user":"u"}}}`, []string{"/config/accounts/work/host required"}},
		{catalog.KindMail, `{"accounts":{"work":{"kind":"imap","host":"a"}}}`, []string{"/config/accounts/work/user required"}},
		{catalog.KindMail, `{"accounts":{"work":{"kind":"imap","host":"a","user":"u","path":"/a"}}}`, []string{"/config/accounts/work/path unknown_field"}},
		{catalog.KindMail, `{"accounts":{"home":{"kind":"maildir"}}}`, []string{"/config/accounts/home/path required"}},
		{catalog.KindMail, `{"accounts":{"home":{"kind":"maildir","path":"/a","user":"hush"}}}`, []string{"/config/accounts/home/user unknown_field"}},
		{catalog.KindMail, `{"accounts":{"home":{"kind":"maildir","path":"mail"}}}`, []string{"/config/accounts/home/path format"}},
		{catalog.KindMail, `{"accounts":{"home":{"kind":"maildir","path":"/mail/../etc"}}}`, []string{"/config/accounts/home/path format"}},
		{catalog.KindMail, `{"accounts":{"home":{"kind":"maildir","path":"/a","folders":{"inbox":"x"}}}}`, []string{"/config/accounts/home/folders/inbox unknown_field"}},
		{catalog.KindMail, `{"accounts":{"home":{"kind":"maildir","path":"/a"}},"timeout":"0s"}`, []string{"/config/timeout format"}},
		{catalog.KindMail, `{"accounts":{"home":{"kind":"maildir","path":"/a"}},"networks":["10.1.2.3/8"]}`, []string{"/config/networks/0 format"}},
		{catalog.KindBuiltin, ``, nil},
		{catalog.KindBuiltin, `{"max_wait":"5s","http":{"allow":[{"prefix":"https://a/v1","methods":["GET"],"credentials":true,"honours_key":true}],"networks":["10.1.0.0/16"],"timeout":"5s"}}`, nil},
		{catalog.KindBuiltin, `{"http":{}}`, []string{"/config/http/allow required"}},
		{catalog.KindBuiltin, `{"max_wait":"0s"}`, []string{"/config/max_wait format"}},
		{catalog.KindBuiltin, `{"max_wait":5}`, []string{"/config/max_wait type"}},
		{catalog.KindBuiltin, `{"max_wait":"5x"}`, []string{"/config/max_wait pattern"}},
		{catalog.KindBuiltin, `{"http":{"allow":[{"prefix":"https://a"}],"timeout":"11m"}}`, []string{"/config/http/timeout format"}},
		{catalog.KindBuiltin, `{"http":{"allow":[{"prefix":"https://a"},{"prefix":"https://a/b/../c"}]}}`, []string{"/config/http/allow/1 format"}},
		{catalog.KindBuiltin, `{"http":{"allow":[{"prefix":"https://a"}],"networks":["10.0.0.0/8","10.1.2.3/8"]}}`, []string{"/config/http/networks/1 format"}},
		{catalog.KindBuiltin, `{"http":{"allow":[{"prefix":"https://a","methods":["get"]}]}}`, []string{"/config/http/allow/0/methods/0 enum"}},
	} {
		err := connection.CheckConfig(test.kind, json.RawMessage(test.config))

		var got []string
		if invalid, ok := errors.AsType[*envelope.InvalidError](err); ok {
			for _, f := range invalid.Fields {
				got = append(got, f.Pointer+" "+string(f.Rule))
				if strings.Contains(f.Message, "hush") || strings.Contains(f.Message, "argument") || f.Message == "" {
					t.Errorf("CheckConfig(%s, %s) says %q", test.kind, test.config, f.Message)
				}
			}
		} else if err != nil {
			t.Errorf("CheckConfig(%s, %s) = %v, want an InvalidError", test.kind, test.config, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("CheckConfig(%s, %s) (-want +got):\n%s", test.kind, test.config, diff)
		}
	}
	if err := connection.CheckConfig("fax", json.RawMessage(`{}`)); !errors.Is(err, fault.Invalid) {
		t.Errorf("CheckConfig(fax) = %v, want fault.Invalid", err)
	}
}

// newCipher returns a cipher with a key.
func newCipher(t *testing.T) connection.Cipher {
	t.Helper()
	v, err := connection.NewCipher(base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPoolOpensEveryKind(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	vault := newCipher(t)
	live := connection.NewPool(connection.Config{Cipher: vault, Networks: safehttp.Loopback(), Maildir: mail.Below([]string{"/mail"})})
	t.Cleanup(live.Close)
	values := func(of ...string) connection.Credentials {
		c := connection.Credentials{Values: map[string]string{}}
		for _, name := range of {
			c.Values[name] = "https://hush.example.com/"
		}
		return c
	}
	works := make(map[string]bool)
	put := func(id, kind, config string, creds connection.Credentials, ok bool) {
		t.Helper()
		raw, err := json.Marshal(creds)
		if err != nil {
			t.Fatal(err)
		}
		encrypted, err := vault.Encrypt(s.Tenant, id, raw)
		if err != nil {
			t.Fatal(err)
		}
		s.Put(catalog.Source{ID: id, Kind: kind, Enabled: true, Config: json.RawMessage(config), Secret: encrypted})
		works[id] = ok
	}
	put("gateway", catalog.KindToolGateway, `{"url":"http://127.0.0.1:1"}`, connection.Credentials{}, true)
	put("apps", catalog.KindComposio, `{"user_id":"u","toolkits":["gmail"]}`, values(connection.ValueAPIKey), true)
	put("apps-bare", catalog.KindComposio, `{"user_id":"u","toolkits":["gmail"]}`, values(connection.ValueToken), false)
	put("team", catalog.KindSlack, `{}`, values(connection.ValueToken), true)
	put("team-hook", catalog.KindSlack, `{}`, values(connection.ValueWebhookURL), true)
	put("team-bare", catalog.KindSlack, `{}`, values(), false)
	put("work", catalog.KindLinear, `{}`, values(connection.ValueAPIKey), true)
	put("work-both", catalog.KindLinear, `{}`, values(connection.ValueAPIKey, connection.ValueToken), false)
	put("home", catalog.KindDAV, `{"calendars":{"work":"https://dav.example.org/ann/work/"},"user":"ann"}`, values(connection.ValuePassword), true)
	put("home-token", catalog.KindDAV, `{"address_books":{"all":"https://dav.example.org/ann/all/"}}`, values(connection.ValueToken), true)
	put("home-odd", catalog.KindDAV, `{"calendars":{"work":"https://dav.example.org/"}}`, values(connection.ValuePassword), false)
	put("home-http", catalog.KindDAV, `{"calendars":{"work":"http://dav.example.org/"},"user":"ann"}`, values(connection.ValuePassword), false)
	put("errors", catalog.KindSentry, `{"organization":"acme"}`, values(connection.ValueToken), true)
	put("errors-odd", catalog.KindSentry, `{}`, values(connection.ValueToken), false)
	accounts := connection.Credentials{Accounts: map[string]string{"work": "hush"}}
	put("mailbox", catalog.KindMail, `{"accounts":{"work":{"kind":"imap","host":"imap.example.org","user":"ada"},"home":{"kind":"maildir","path":"/mail/ada"}}}`, accounts, true)
	put("mailbox-bare", catalog.KindMail, `{"accounts":{"play":{"kind":"imap","host":"imap.example.org","user":"ada"}}}`, accounts, false)
	put("mailbox-odd", catalog.KindMail, `{"accounts":{"home":{"kind":"maildir","path":"/mailboxes/ada"}}}`, accounts, false)
	put("tools", catalog.KindBuiltin, `{"http":{"allow":[{"prefix":"https://a"}]}}`, connection.Credentials{}, true)
	put("tools-odd", catalog.KindBuiltin, `{"http":{"allow":[]}}`, connection.Credentials{}, false)
	snap := s.snapshot()

	for id, ok := range works {
		src, err := live.Get(snap, id)

		if (err == nil) != ok || (src == nil) == ok || err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("Get(%s) = %v, %v, want it to work: %t", id, src, err, ok)
		}
	}
	tools, err := live.Get(snap, "tools")
	if err != nil {
		t.Fatal(err)
	}
	if all, err := tools.List(t.Context()); err != nil || len(all) != 4 {
		t.Errorf("the built-in source lists %d tools, %v, want 4: nobody keeps notes here", len(all), err)
	}
}

func TestPoolSendsCredentialsOnlyToTheProvider(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Header.Get("Authorization")
		_, _ = io.WriteString(w, `[]`) // the client may be gone
	}))
	t.Cleanup(gateway.Close)
	s := newFixture(t)
	vault := newCipher(t)
	live := connection.NewPool(connection.Config{Cipher: vault, Networks: safehttp.Loopback()})
	t.Cleanup(live.Close)
	encrypted, err := vault.Encrypt(s.Tenant, "gateway", []byte(`{"header":{"Authorization":"Bearer hush"}}`))
	if err != nil {
		t.Fatal(err)
	}
	s.Put(catalog.Source{
		ID: "gateway", Kind: catalog.KindToolGateway, Enabled: true, Secret: encrypted, Config: json.RawMessage(`{"url":"` + gateway.URL + `"}`),
	})

	src, err := live.Get(s.snapshot(), "gateway")
	if err != nil {
		t.Fatal(err)
	}
	_, err = src.List(t.Context())

	if got := <-seen; err != nil || got != "Bearer hush" {
		t.Errorf("List() = %v, and the gateway saw %q, want the header", err, got)
	}
}
