package discover_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/countersign-dev/countersign/internal/triage/discover"
)

// dnsServer is a DNS server on this machine. It keeps the questions.
type dnsServer struct {
	mx map[string]string

	mu        sync.Mutex
	questions []string
}

// newDNS starts a server, and returns a resolver that asks it.
func newDNS(t *testing.T, mx map[string]string) (*dnsServer, *net.Resolver) {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, ended := &dnsServer{mx: mx}, make(chan struct{})
	go func() { // ends with the connection
		defer close(ended)
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if answer := s.answer(buffer[:n]); answer != nil {
				_, _ = conn.WriteTo(answer, from) // the resolver asks again
			}
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-ended
	})
	return s, &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// answer answers a question; nil for other bytes.
func (s *dnsServer) answer(raw []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(raw) != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	s.mu.Lock()
	s.questions = append(s.questions, q.Type.String()+" "+q.Name.String())
	s.mu.Unlock()
	m.Response, m.Additionals = true, nil
	host, known := s.mx[q.Name.String()]
	switch {
	case !known:
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeMX:
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Type: dnsmessage.TypeMX, Class: dnsmessage.ClassINET, TTL: 60},
			Body:   &dnsmessage.MXResource{Pref: 10, MX: dnsmessage.MustNewName(host)},
		}}
	}
	packed, err := m.Pack()
	if err != nil {
		return nil
	}
	return packed
}

func TestProvidersByDomainAndMX(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ address, mx, want, host string }{
		{"a@gmail.com", "", "gmail", "imap.gmail.com"},
		{"A@GoogleMail.com", "", "gmail", "imap.gmail.com"},
		{"a@workspace.example", "aspmx.l.google.com.", "gmail", "imap.gmail.com"},
		{"a@smtp-in.example", "smtp.google.com.", "gmail", "imap.gmail.com"},
		{"a@outlook.com", "", "outlook", "outlook.office365.com"},
		{"a@hotmail.co.uk", "", "outlook", "outlook.office365.com"},
		{"a@live.nl", "", "outlook", "outlook.office365.com"},
		{"a@msn.com", "", "outlook", "outlook.office365.com"},
		{"a@contoso.onmicrosoft.com", "", "microsoft365", "outlook.office365.com"},
		{"a@contoso.example", "contoso-example.mail.protection.outlook.com.", "microsoft365", "outlook.office365.com"},
		{"a@dane.example", "dane-example.a-v1.mx.microsoft.", "microsoft365", "outlook.office365.com"},
		{"a@custom-outlook.example", "custom.olc.protection.outlook.com.", "outlook", "outlook.office365.com"},
		{"a@fastmail.fm", "", "fastmail", "imap.fastmail.com"},
		{"a@own.example", "in1-smtp.messagingengine.com.", "fastmail", "imap.fastmail.com"},
		{"a@proton.me", "", "proton", "127.0.0.1"},
		{"a@private.example", "mail.protonmail.ch.", "proton", "127.0.0.1"},
		{"a@yahoo.co.jp", "", "yahoo", "imap.mail.yahoo.com"},
		{"a@small.example", "mx-biz.mail.am0.yahoodns.net.", "yahoo", "imap.mail.yahoo.com"},
		{"a@aol.com", "", "aol", "imap.aol.com"},
		{"a@verizon.net", "", "aol", "imap.aol.com"},
		{"a@me.com", "", "icloud", "imap.mail.me.com"},
		{"a@family.example", "mx01.mail.icloud.com.", "icloud", "imap.mail.me.com"},
		{"a@zoho.eu", "", "zoho-eu", "imap.zoho.eu"},
		{"a@shop.example", "mx2.zoho.com.", "zoho", "imap.zoho.com"},
		{"a@gmx.com", "", "gmx-com", "imap.gmx.com"},
		{"a@gmx.de", "", "gmx", "imap.gmx.net"},
		{"a@web.de", "", "webde", "imap.web.de"},
		{"a@t-online.de", "", "tonline", "secureimap.t-online.de"},
		{"a@verein.example", "mxext1.mailbox.org.", "mailbox-org", "imap.mailbox.org"},
		{"a@posteo.net", "", "posteo", "posteo.de"},
		{"a@yandex.ru", "", "yandex", "imap.yandex.com"},
		{"a@bk.ru", "", "mailru", "imap.mail.ru"},
		{"a@firma.example", "mx00.kundenserver.de.", "ionos-de", "imap.ionos.de"},
		{"a@blog.example", "spool.mail.gandi.net.", "gandi", "mail.gandi.net"},
		{"a@atelier.example", "mx1.mail.ovh.net.", "ovh", "ssl0.ovh.net"},
		{"a@studio.example", "mta-gw.infomaniak.ch.", "infomaniak", "mail.infomaniak.com"},
		{"a@dev.example", "aspmx1.migadu.com.", "migadu", "imap.migadu.com"},
		{"a@agency.example", "mx1.emailsrvr.com.", "rackspace", "secure.emailsrvr.com"},
		{"a@qq.com", "", "qq", "imap.qq.com"},
		{"a@university.example", "mx.university.example.", "other", "imap.university.example"},
		{"a@lookalike.example", "mx.notgoogle.com.", "other", "imap.lookalike.example"},
		{"a@nowhere.example", "", "other", "imap.nowhere.example"},
	} {
		t.Run(row.address, func(t *testing.T) {
			t.Parallel()
			_, domain, _ := strings.Cut(row.address, "@")
			records := map[string]string{}
			if row.mx != "" {
				records[domain+"."] = row.mx
			}
			dns, resolver := newDNS(t, records)

			got := discover.ProviderOf(t.Context(), row.address, resolver)

			if got.Name != row.want || got.IMAP.Host != row.host || got.From == "" {
				t.Errorf("ProviderOf(%s) = %s at %s from %q, want %s at %s", row.address, got.Name, got.IMAP.Host, got.From, row.want, row.host)
			}
			var want []string
			if row.mx != "" || row.want == "other" {
				want = []string{"TypeMX " + domain + "."}
			}
			dns.mu.Lock()
			defer dns.mu.Unlock()
			if diff := cmp.Diff(want, dns.questions); diff != "" {
				t.Errorf("questions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProviderWithoutDNSIsTheDomain(t *testing.T) {
	t.Parallel()

	got := discover.ProviderOf(t.Context(), "a@example.org", nil)

	if got.Name != "other" || got.IMAP != (discover.Server{Host: "imap.example.org", Port: 993, Security: discover.TLS}) {
		t.Errorf("ProviderOf = %+v", got)
	}
}
