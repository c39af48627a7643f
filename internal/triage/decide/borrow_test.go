package decide_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// header is a header field, or several of one name.
type header struct{ name, value string }

// strangersMail is the first mail of a stranger that passes for the stranger's
// own server.
func strangersMail() []header {
	return []header{
		{"From", "Offer <mail@stranger.example>"}, {"To", "ana@example.org"}, {"Subject", "Something new"},
		{"Message-ID", "<1@stranger.example>"}, {"Date", "Thu, 05 Mar 2026 16:23:00 +0000"},
	}
}

// knownMail returns headers of mail that the owner knows, by kind of sender.
func knownMail() map[string][]header {
	thread := []header{{"In-Reply-To", "<mine@example.org>"}, {"References", "<mine@example.org>"}, {"Subject", "Re: Order 17"}}
	return map[string][]header{
		"a newsletter": {
			{"From", "Shop <news@shop.example>"}, {"Sender", "news@shop.example"}, {"Reply-To", "news@shop.example"},
			{"Return-Path", "<bounce@shop.example>"}, {"Message-ID", "<9@shop.example>"}, {"List-Id", "<news.shop.example>"},
			{"List-Unsubscribe", "<https://shop.example/u>"}, {"List-Unsubscribe-Post", "List-Unsubscribe=One-Click"},
			{"Precedence", "bulk"}, {"DKIM-Signature", "v=1; d=shop.example; s=a; h=from; bh=x; b=y"}, {"Subject", "Offers of the week"},
		},
		"a machine": append([]header{
			{"From", "Orders <noreply@shop.example>"}, {"Auto-Submitted", "auto-generated"}, {"Message-ID", "<8@shop.example>"},
		}, thread...),
		"a friend":         append([]header{{"From", "Bo <bo@friend.example>"}, {"Cc", "ana@example.org"}, {"Message-ID", "<7@friend.example>"}}, thread...),
		"a social network": {{"From", "Notices <notify@social.example>"}, {"List-Unsubscribe", "<https://social.example/u>"}, {"Precedence", "bulk"}},
		"a colleague":      append([]header{{"From", "Eve <eve@example.org>"}}, thread...),
		"a mailing list": append([]header{
			{"From", "Member <member@people.example>"}, {"To", "talk@lists.example"}, {"List-Id", "Talk <talk.lists.example>"},
			{"List-Post", "<mailto:talk@lists.example>"}, {"Precedence", "list"}, {"Sender", "talk-bounces@lists.example"},
		}, thread...),
	}
}

// results are the results that the owner's host may add to the stranger's mail,
// which the stranger cannot influence. The last has a forged field below it.
func results() map[string][]string {
	const host = "Authentication-Results: mx.example.org; "
	return map[string][]string{
		"passes for its own domain": {host + "spf=pass smtp.mailfrom=stranger.example; dkim=pass header.d=stranger.example; dmarc=pass header.from=stranger.example"},
		"proves nothing":            {host + "spf=none smtp.mailfrom=stranger.example; dkim=none; dmarc=none"},
		"fails":                     {host + "spf=softfail smtp.mailfrom=shop.example; dkim=pass header.d=stranger.example; dmarc=fail (p=REJECT) header.from=shop.example"},
		"is forged below": {
			host + "dkim=pass header.d=stranger.example",
			host + "dkim=pass header.d=shop.example; dmarc=pass; spf=pass smtp.mailfrom=shop.example",
		},
	}
}

// decided decides a mail as the engine does. The account knows every address
// and list of knownMail, and the models classify the text as a newsletter.
func decided(fields []header, results []string, levels map[decide.Cohort]decide.Level) decide.Decision {
	var raw strings.Builder
	for _, r := range results {
		raw.WriteString(r + "\r\n")
	}
	for _, f := range fields {
		raw.WriteString(f.name + ": " + f.value + "\r\n")
	}
	raw.WriteString("\r\nThis week we have ten plants for a dry summer.\r\n")
	m := message.Parse([]byte(raw.String()))
	last := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	known := signal.Sender{Received: 30, Accepted: 3, FirstSeen: last.AddDate(0, -6, 0), LastSeen: last}
	about := signal.Context{
		Addresses: []string{"ana@example.org"}, Domains: []string{"example.org"},
		Authentication: authenticate.Check(context.Background(), nil, m, authenticate.Config{TrustedHost: "mx.example.org"}),
	}
	var sender, list string
	if len(m.From) > 0 {
		sender = m.From[0].Addr
	}
	if _, id, ok := strings.Cut(m.Get("List-Id"), "<"); ok {
		list = strings.TrimSuffix(id, ">")
	}
	if sender != "" && !strings.HasSuffix(sender, "@stranger.example") {
		about.Sender = known
	}
	if strings.HasSuffix(sender, "@friend.example") {
		about.Sender.Sent, about.Sender.Replied = 20, 29
	}
	if list != "" {
		about.List = known
	}
	about.ReplyToMine = slices.Contains(m.InReplyTo, "mine@example.org") &&
		signal.Participates(about.Authentication, sender, list, []string{"ana@example.org", "noreply@shop.example", "bo@friend.example", "talk@lists.example"})
	return decide.Decide(decide.Facts{
		Headers: decide.HeadersOf(m), Folder: mailbox.UseInbox, Authentication: about.Authentication, Signals: signal.Find(m, about),
		Prediction: classify.Prediction{
			Act: classify.FYI, ActConfidence: 0.95, Category: classify.Newsletters, CategoryConfidence: 0.95, Priority: classify.ForInfo, Attention: 0.02,
		},
		Sender: about.Sender, List: about.List,
		Settings: decide.Settings{
			Addresses: about.Addresses, Domains: about.Domains, VIP: []string{"friend.example"}, Newsletters: []string{"shop.example"},
			Social: []string{"social.example"}, Levels: levels,
		},
	})
}

// swapped returns a header with the fields of some names replaced.
func swapped(fields, with []header) []header {
	var out []header
	for _, f := range fields {
		if !slices.ContainsFunc(with, func(w header) bool { return w.name == f.name }) {
			out = append(out, f)
		}
	}
	return append(out, with...)
}

// TestForgedFieldsGainNothing replaces the fields of a stranger's mail by those of
// mail that the owner knows: each alone, all of them, and any of them.
func TestForgedFieldsGainNothing(t *testing.T) {
	t.Parallel()
	autonomous := map[decide.Cohort]decide.Level{}
	for _, c := range allCohorts() {
		autonomous[c] = decide.L5
	}
	autonomous[decide.FirstContact] = decide.L1
	check := func(t rapid.TB, result []string, with []header) {
		for _, levels := range []map[decide.Cohort]decide.Level{nil, autonomous} {
			alone, got := decided(strangersMail(), result, levels), decided(swapped(strangersMail(), with), result, levels)
			if got.Allowed > alone.Allowed {
				t.Errorf("with %v, level %v of %s became %v of %s", with, alone.Allowed, alone.Cohort, got.Allowed, got.Cohort)
			}
			if len(got.Wants) > len(alone.Wants) {
				t.Errorf("with %v, %v is wanted, and without %v", with, got.Wants, alone.Wants)
			}
		}
	}
	for kind, fields := range knownMail() {
		for name, result := range results() {
			t.Run(kind+" that "+name, func(t *testing.T) {
				t.Parallel()
				for _, f := range fields {
					check(t, result, []header{f})
				}
				check(t, result, fields)
				rapid.Check(t, func(t *rapid.T) {
					check(t, result, rapid.SliceOfDistinct(rapid.SampledFrom(fields), func(h header) string { return h.name }).Draw(t, "fields"))
				})
			})
		}
	}
}

// TestKnownMailIsKnown is the counterpart: the same mail with a proof has the
// level of its cohort.
func TestKnownMailIsKnown(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]decide.Level{
		"a newsletter": decide.L5, "a machine": decide.L5, "a friend": decide.L2, "a social network": decide.L5, "a mailing list": decide.L2,
	} {
		fields := swapped(strangersMail(), knownMail()[kind])
		domain := fields[slices.IndexFunc(fields, func(h header) bool { return h.name == "From" })].value
		domain = strings.TrimSuffix(domain[strings.IndexByte(domain, '@')+1:], ">")
		if kind == "a mailing list" {
			domain = "lists.example"
		}

		d := decided(fields, []string{"Authentication-Results: mx.example.org; dkim=pass header.d=" + domain}, nil)

		if d.Allowed != want || d.Cohort == decide.FirstContact {
			t.Errorf("%s is of %s at %v, want %v", kind, d.Cohort, d.Allowed, want)
		}
	}
}
