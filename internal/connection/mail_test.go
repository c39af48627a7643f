package connection_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/connection"
	"github.com/countersign-dev/countersign/internal/mail/dovecottest"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/mail"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// TestMailFromAServer reads a message over IMAP with valid credentials,
// with invalid ones, and with a forbidden network.
func TestMailFromAServer(t *testing.T) {
	t.Parallel()
	server := dovecottest.New(t)
	raw := []byte("From: bob@example.com\r\nMessage-ID: <1@example.com>\r\nSubject: hush\r\n\r\nhush\r\n")
	if err := server.Deliver("ada", "INBOX", raw); err != nil {
		t.Fatal(err)
	}
	digest := message.Identify(raw)
	args := fmt.Appendf(nil, `{"account":"work","message":{"folder":"INBOX","key":"","message_id":"1@example.com","identity":"%s"}}`, hex.EncodeToString(digest[:]))
	for name, test := range map[string]struct {
		password, tls, address string
		networks               []netip.Prefix
		kind                   source.Kind
		code                   string
	}{
		"its credentials":          {dovecottest.Password, "none", server.Address, safehttp.Loopback(), source.KindDone, ""},
		"others":                   {"hush", "none", server.Address, safehttp.Loopback(), source.KindRefused, source.CodeUnauthorized},
		"an unknown certificate":   {dovecottest.Password, "implicit", server.TLSAddress, safehttp.Loopback(), source.KindRefused, source.CodeUnauthorized},
		"a closed network":         {dovecottest.Password, "implicit", server.TLSAddress, nil, source.KindRefused, source.CodeRejected},
		"a server that is not one": {dovecottest.Password, "none", "127.0.0.1:1", safehttp.Loopback(), source.KindRetry, source.CodeUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFixture(t)
			vault := newCipher(t)
			live := connection.NewPool(connection.Config{Cipher: vault, Networks: test.networks})
			t.Cleanup(live.Close)
			secret, err := json.Marshal(connection.Credentials{Accounts: map[string]string{"work": test.password}})
			if err != nil {
				t.Fatal(err)
			}
			encrypted, err := vault.Encrypt(s.Tenant, "mailbox", secret)
			if err != nil {
				t.Fatal(err)
			}
			host, port, err := net.SplitHostPort(test.address)
			if err != nil {
				t.Fatal(err)
			}
			config := fmt.Appendf(nil, `{"accounts":{"work":{"kind":"imap","host":%q,"port":%s,"tls":%q,"user":"ada"}}}`, host, port, test.tls)
			s.Put(catalog.Source{ID: "mailbox", Kind: catalog.KindMail, Enabled: true, Config: config, Secret: encrypted})
			src, err := live.Get(s.snapshot(), "mailbox")
			if err != nil {
				t.Fatal(err)
			}

			out := src.Execute(t.Context(), source.Call{Key: "k", Tool: mail.ToolState, Args: args, Attempt: 1})

			if out.Kind != test.kind || out.Code != test.code {
				t.Errorf("outcome = %s %q (%s), want %s %q", out.Kind, out.Code, out.Message, test.kind, test.code)
			}
			if shown := out.Message + string(out.Result); strings.Contains(shown, "hush") || strings.Contains(shown, dovecottest.Password) {
				t.Errorf("outcome shows a secret, or what the mail says: %s", shown)
			}
		})
	}
}

func TestSourcesOfOneAccountLogIn(t *testing.T) {
	t.Parallel()
	const oauth = `"oauth":{"issuer":"https://as.example","token_url":"https://as.example/t","authorize_url":"https://as.example/a"}`
	for name, row := range map[string]struct {
		config, want string
	}{
		"one account":           {`{"accounts":{"a":{"kind":"imap","host":"imap.example","port":993,"user":"ann","auth":"xoauth2",` + oauth + `}}}`, "imap://imap.example:993/ann"},
		"two accounts":          {`{"accounts":{"a":{"kind":"imap","host":"h.example","user":"ann","auth":"xoauth2",` + oauth + `},"b":{"kind":"maildir","path":"/m"}}}`, ""},
		"without a server":      {`{"accounts":{"a":{"kind":"imap","host":"h.example","user":"ann","auth":"xoauth2"}}}`, ""},
		"with a password":       {`{"accounts":{"a":{"kind":"imap","host":"h.example","user":"ann",` + oauth + `}}}`, ""},
		"of a folder":           {`{"accounts":{"a":{"kind":"maildir","path":"/m",` + oauth + `}}}`, ""},
		"with an unknown field": {`{"accounts":{"a":{"kind":"imap","host":"h.example","user":"ann","auth":"xoauth2","oauth":{"issuer":"https://as.example"}}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := connection.MailLogin(catalog.Source{ID: "m", Kind: catalog.KindMail, Config: []byte(row.config)})

			if (err == nil) != (row.want != "") || err == nil && got.Address() != row.want {
				t.Errorf("MailLogin = %s, %v, want %q", got.Address(), err, row.want)
			}
		})
	}
}
