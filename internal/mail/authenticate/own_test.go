package authenticate_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/message"
)

const (
	pass    = authenticate.Pass
	fail    = authenticate.Fail
	unknown = authenticate.Unknown
)

// result returns the expected result of an own check.
func result(dkim, spf, dmarc authenticate.Status, policy string, aligned bool) authenticate.Result {
	return authenticate.Result{
		SPF: spf, DKIM: dkim, DMARC: dmarc, ARC: unknown, Policy: policy, Aligned: aligned, Source: authenticate.FromOwn,
	}
}

func TestOwnDKIM(t *testing.T) {
	t.Parallel()
	shop, other := newSigner("shop.example", 1), newSigner("lists.example", 2)
	z := func(more ...string) *zone {
		z := &zone{txt: map[string][]string{"_dmarc.shop.example": {"v=DMARC1; p=reject"}}}
		for _, s := range []signer{shop, other} {
			name, records := s.record(t)
			z.txt[name] = records
		}
		for i := 0; i < len(more); i += 2 {
			z.txt[more[i]] = []string{more[i+1]}
		}
		return z
	}
	mail := rawMail("From: Shop <news@shop.example>", "To: me@example.com", "Subject: hello")
	keys := []string{"From", "To", "Subject"}
	signed := shop.sign(t, mail, keys...)
	revoked := z()
	revoked.txt["s1._domainkey.shop.example"] = []string{"v=DKIM1; k=ed25519; p="}
	gone := z()
	delete(gone.txt, "s1._domainkey.shop.example")
	silent := z()
	silent.broken = map[string]bool{"s1._domainkey.shop.example": true}

	for name, test := range map[string]struct {
		zone *zone
		raw  string
		want authenticate.Result
	}{
		"a valid signature":                 {z(), signed, result(pass, unknown, pass, "reject", true)},
		"line ends without carriage return": {z(), strings.ReplaceAll(signed, "\r\n", "\n"), result(pass, unknown, pass, "reject", true)},
		"no signature":                      {z(), mail, result(unknown, unknown, unknown, "reject", false)},
		"a changed body":                    {z(), strings.Replace(signed, "morning", "evening", 1), result(fail, unknown, unknown, "reject", false)},
		"a changed subject, ed25519":        {z(), strings.Replace(signed, "Subject: hello", "Subject: hallo", 1), result(fail, unknown, unknown, "reject", false)},
		"a missing key":                     {gone, signed, result(unknown, unknown, unknown, "reject", false)},
		"a key that was revoked":            {revoked, signed, result(unknown, unknown, unknown, "reject", false)},
		"a server that does not answer":     {silent, signed, result(unknown, unknown, unknown, "reject", false)},
		"a signature of somebody else":      {z(), other.sign(t, mail, keys...), result(pass, unknown, unknown, "reject", false)},
		"a list that changed the subject": {
			z(), other.sign(t, strings.Replace(signed, "Subject: hello", "Subject: [list] hello", 1), keys...),
			result(fail, unknown, unknown, "reject", false),
		},
		"two From": {z(), "From: Bank <a@bank.example>\r\n" + signed, result(pass, unknown, unknown, "", false)},
		"a subdomain": {
			z(), shop.sign(t, strings.Replace(mail, "news@shop", "news@mail.shop", 1), keys...), result(pass, unknown, pass, "reject", true),
		},
		"a subdomain with a policy of its own": {
			z("_dmarc.shop.example", "v=DMARC1; p=none; sp=quarantine"), shop.sign(t, strings.Replace(mail, "news@shop", "news@mail.shop", 1), keys...),
			result(pass, unknown, pass, "quarantine", true),
		},
		"strict alignment": {
			z("_dmarc.shop.example", "v=DMARC1; p=reject; adkim=s"), shop.sign(t, strings.Replace(mail, "news@shop", "news@mail.shop", 1), keys...),
			result(pass, unknown, unknown, "reject", false),
		},
		"no policy":         {&zone{txt: map[string][]string{"s1._domainkey.shop.example": z().txt["s1._domainkey.shop.example"]}}, signed, result(pass, unknown, unknown, "", true)},
		"nothing but bytes": {z(), "\x00\xff", result(unknown, unknown, unknown, "", false)},
		"empty":             {z(), "", result(unknown, unknown, unknown, "", false)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := check(test.zone, test.raw, authenticate.Config{})

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Check (-want +got)\n%s", diff)
			}
		})
	}
}

func TestRSASignature(t *testing.T) {
	t.Parallel()
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	s := signer{"shop.example", "r", key}
	name, records := s.record(t)
	raw := s.sign(t, rawMail("From: a@shop.example", "Subject: x"), "From", "Subject")

	got := check(&zone{txt: map[string][]string{name: records}}, raw, authenticate.Config{})

	if got.DKIM != pass || !got.Aligned {
		t.Errorf("Check = %+v, want an aligned pass", got)
	}
}

func TestUnsubscribeIsSigned(t *testing.T) {
	t.Parallel()
	shop := newSigner("shop.example", 1)
	name, records := shop.record(t)
	z := func() *zone { return &zone{txt: map[string][]string{name: records}} }
	mail := rawMail("From: a@shop.example", "List-Unsubscribe: <https://shop.example/u>", "List-Unsubscribe-Post: List-Unsubscribe=One-Click")
	both := shop.sign(t, mail, "From", "List-Unsubscribe", "List-Unsubscribe-Post")

	for name, test := range map[string]struct {
		raw  string
		want bool
	}{
		"both fields are covered": {both, true},
		"one field is covered":    {shop.sign(t, mail, "From", "List-Unsubscribe"), false},
		"the address was changed": {strings.Replace(both, "shop.example/u", "evil.example/u", 1), false},
		"a second field on top":   {"List-Unsubscribe: <https://evil.example/u>\r\n" + both, false},
		"no signature":            {mail, false},
	} {
		if got := check(z(), test.raw, authenticate.Config{}); got.UnsubscribeSigned != test.want {
			t.Errorf("%s: signed %t, want %t", name, got.UnsubscribeSigned, test.want)
		}
	}
}

func TestListIsAligned(t *testing.T) {
	t.Parallel()
	lists := newSigner("lists.example", 2)
	name, records := lists.record(t)
	mail := func(id string) string {
		return rawMail("From: a@shop.example", "List-Id: The club <"+id+">", "Subject: x")
	}
	for id, want := range map[string]bool{"club.lists.example": true, "club.other.example": false, "": false, "example": false} {
		signed := lists.sign(t, mail(id), "From")
		believed := "Authentication-Results: mx.example.com; dkim=pass header.d=lists.example\r\n" + mail(id)

		own := check(&zone{txt: map[string][]string{name: records}}, signed, authenticate.Config{})
		header := check(nil, believed, authenticate.Config{TrustedHost: "mx.example.com"})

		if own.ListAligned != want || header.ListAligned != want {
			t.Errorf("List-Id %q: aligned %t by own check and %t by header, want %t", id, own.ListAligned, header.ListAligned, want)
		}
	}
}

func TestSPF(t *testing.T) {
	t.Parallel()
	z := func() *zone {
		return &zone{txt: map[string][]string{
			"shop.example":        {"v=spf1 ip4:192.0.2.10 -all"},
			"soft.example":        {"v=spf1 ip4:192.0.2.10 ~all"},
			"lists.example":       {"v=spf1 ip4:198.51.100.7 -all"},
			"endless.example":     {"v=spf1 include:endless.example -all"},
			"_dmarc.shop.example": {"v=DMARC1; p=quarantine"},
		}}
	}
	mail := func(mailer, ip, from string) string {
		return rawMail("Return-Path: <"+mailer+">", "Received: from mx.outside.example (unknown ["+ip+"]) by mx.example.com with ESMTPS; Mon, 4 May 2026 03:00:00 +0000",
			"Received: from evil (evil [192.0.2.10]) by relay.outside.example", "From: "+from, "Subject: x")
	}
	border := authenticate.Config{Border: []string{"mx.example.com"}}

	for name, test := range map[string]struct {
		raw    string
		config authenticate.Config
		want   authenticate.Result
	}{
		"the right host":              {mail("a@shop.example", "192.0.2.10", "a@shop.example"), border, result(unknown, pass, pass, "quarantine", true)},
		"another host":                {mail("a@shop.example", "203.0.113.9", "a@shop.example"), border, result(unknown, fail, fail, "quarantine", false)},
		"no border host is known":     {mail("a@shop.example", "203.0.113.9", "a@shop.example"), authenticate.Config{}, result(unknown, unknown, unknown, "quarantine", false)},
		"another border host":         {mail("a@shop.example", "203.0.113.9", "a@shop.example"), authenticate.Config{Border: []string{"mx.else.example"}}, result(unknown, unknown, unknown, "quarantine", false)},
		"left open":                   {mail("a@soft.example", "203.0.113.9", "a@soft.example"), border, result(unknown, unknown, unknown, "", false)},
		"an endless record":           {mail("a@endless.example", "203.0.113.9", "a@endless.example"), border, result(unknown, unknown, unknown, "", false)},
		"a list passes for itself":    {mail("bounce@lists.example", "198.51.100.7", "a@shop.example"), border, result(unknown, pass, fail, "quarantine", false)},
		"no record":                   {mail("a@none.example", "203.0.113.9", "a@none.example"), border, result(unknown, unknown, unknown, "", false)},
		"a sender of no address":      {mail("", "192.0.2.10", "a@shop.example"), border, result(unknown, unknown, unknown, "quarantine", false)},
		"an invalid IP address":       {mail("a@shop.example", "evil", "a@shop.example"), border, result(unknown, unknown, unknown, "quarantine", false)},
		"an address of the same site": {mail("a@shop.example", "10.0.0.1", "a@shop.example"), border, result(unknown, unknown, unknown, "quarantine", false)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := check(z(), test.raw, test.config)

			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Check (-want +got)\n%s", diff)
			}
		})
	}
}

func TestNoQueriesWithoutResolver(t *testing.T) {
	t.Parallel()
	got := check(nil, rawMail("From: a@shop.example"), authenticate.Config{})
	want := authenticate.Result{SPF: unknown, DKIM: unknown, DMARC: unknown, ARC: unknown, Source: authenticate.FromNone}
	if got != want {
		t.Errorf("Check = %+v, want %+v", got, want)
	}
}

func TestQueriesAreBounded(t *testing.T) {
	t.Parallel()
	z := &zone{txt: map[string][]string{}}
	raw := rawMail("From: a@shop.example", "Subject: x")
	for i := range byte(40) {
		raw = newSigner(strings.Repeat("a", int(i)+1)+".example", i).sign(t, raw, "From")
	}

	got := check(z, raw, authenticate.Config{})

	if z.count() > 30 || got.DKIM != unknown {
		t.Errorf("asked %d questions, DKIM %s", z.count(), got.DKIM)
	}
}

func TestCancelledCheckIsUnknown(t *testing.T) {
	t.Parallel()
	shop := newSigner("shop.example", 1)
	name, records := shop.record(t)
	raw := shop.sign(t, rawMail("From: a@shop.example"), "From")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	got := authenticate.Check(ctx, []byte(raw), message.Parse([]byte(raw)), authenticate.Config{Resolver: &zone{txt: map[string][]string{name: records}}})

	if got != result(unknown, unknown, unknown, "", false) {
		t.Errorf("Check = %+v, want nothing known", got)
	}
}

func TestCache(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	z := &zone{txt: map[string][]string{"a": {"1"}}, broken: map[string]bool{"b": true}}
	c := authenticate.NewCache(z, 2, time.Minute, func() time.Time { return now })
	ask := func(name string) int {
		before := z.count()
		_, _ = c.LookupTXT(t.Context(), name)
		return z.count() - before
	}

	for i, step := range []struct {
		name string
		want int
	}{{"a", 1}, {"a", 0}, {"none", 1}, {"none", 0}, {"b", 1}, {"b", 1}, {"third", 1}} {
		if got := ask(step.name); got != step.want {
			t.Errorf("step %d: %d questions about %q, want %d", i, got, step.name, step.want)
		}
	}
	now = now.Add(time.Hour)
	if ask("third") != 1 {
		t.Error("an old answer was used")
	}
}
