package classify

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// facts adds the features of a message other than its words.
func (v vocabulary) facts(c *collector, subject, body []word, m *message.Message, about signal.Context, found signal.Result) {
	c.add(spaceFact, hashString("bias"))
	v.groups(c, spaceFact, subject, 1)
	v.groups(c, spaceFact, body, 2)
	v.groups(c, spaceFact, body[:min(len(body), maxStartWords)], 3)
	v.pairs(c, subject, body)
	amounts(c, subject, body)
	sender(c, m, about)
	recipients(c, m, about)
	form(c, m)
	for _, s := range found.Symbols {
		if !ofHistory(s.Name) {
			c.add(spaceFact, hashString("symbol "+s.Name))
		}
	}
	level(c, "axis bulk", steps(int(found.Sums[signal.Bulk]), 0, 1, 3))
}

// ofHistory reports whether a symbol is about an account's history, or about
// headers that only some sets of mail have. No training set has an account's
// history, and reputation must not affect the classification of content.
func ofHistory(symbol string) bool {
	switch symbol {
	case "FIRST_CONTACT", "KNOWN_CORRESPONDENT", "VIP", "REPLY_TO_MINE",
		"DMARC_FAIL", "SPF_FAIL", "DKIM_FAIL", "AUTH_PASS", "ARC_PASS", "MISSING_FROM":
		return true
	}
	return strings.HasPrefix(symbol, "FIRST_CONTACT") || strings.HasPrefix(symbol, "DMARC")
}

// level adds a feature for every step up to the level, so that the order of the
// steps need not be learned.
func level(c *collector, name string, at int) {
	h := hashString(name)
	for i := range at {
		c.add(spaceFact, h+uint64(i)+1)
	}
	if at == 0 {
		c.add(spaceFact, h)
	}
}

func fact(c *collector, name string, holds bool) {
	if holds {
		c.add(spaceFact, hashString(name))
	}
}

// amounts adds counts of kinds of words.
func amounts(c *collector, subject, body []word) {
	count := func(words []word, is func(word) bool) int {
		n := 0
		for _, w := range words {
			if is(w) {
				n++
			}
		}
		return n
	}
	of := func(token uint64) func(word) bool { return func(w word) bool { return w.hash == token } }
	for _, text := range []struct {
		name  string
		words []word
	}{{"subject ", subject}, {"body ", body}} {
		level(c, text.name+"questions", steps(count(text.words, of(tokenQuestion)), 0, 1, 3))
		level(c, text.name+"exclamations", steps(count(text.words, of(tokenExclamation)), 0, 1, 3, 7))
		level(c, text.name+"money", steps(count(text.words, of(tokenMoney)), 0, 2))
		level(c, text.name+"percents", steps(count(text.words, of(tokenPercent)), 0, 1))
		level(c, text.name+"capitals", steps(count(text.words, func(w word) bool { return w.upper }), 0, 2, 6, 15))
		level(c, text.name+"times", steps(count(text.words, of(tokenTime)), 0, 1))
		level(c, text.name+"numbers", steps(count(text.words, of(tokenNumber)), 0, 3, 10))
	}
	level(c, "length", steps(len(body), 8, 20, 40, 80, 150, 300))
	level(c, "subject length", steps(len(subject), 2, 5, 9, 14))
}

// sender adds the kind of the sender, never its identity.
func sender(c *collector, m *message.Message, about signal.Context) {
	if len(m.From) == 0 {
		fact(c, "no sender", true)
		return
	}
	from := m.From[0]
	local, domain, _ := strings.Cut(from.Addr, "@")
	fact(c, "free mail", freeMail(domain))
	fact(c, "same domain", own(about, domain))
	fact(c, "role "+role(local), true)
	fact(c, "top "+top(domain), true)
	level(c, "domain labels", min(3, strings.Count(domain, ".")))
	fact(c, "digits in sender", strings.ContainsAny(from.Addr, "0123456789"))
	fact(c, "dashes in domain", strings.Contains(domain, "-"))
	words := strings.Fields(from.Name)
	level(c, "name words", min(3, len(words)))
	fact(c, "named like a person", likePerson(words, local))
	if len(words) > 0 {
		first := strings.ToLower(strings.Trim(words[0], `",`))
		tail := strings.ToLower(m.Text[max(0, len(m.Text)-160):])
		fact(c, "signed by the sender", len(first) > 1 && strings.Contains(tail, first))
	}
	fact(c, "reply elsewhere", len(m.ReplyTo) > 0 && m.ReplyTo[0].Addr != from.Addr)
}

func own(about signal.Context, domain string) bool {
	return slices.ContainsFunc(about.Domains, func(d string) bool { return domain == d || strings.HasSuffix(domain, "."+d) })
}

func freeMail(domain string) bool {
	switch domain {
	case "gmail.com", "googlemail.com", "yahoo.com", "hotmail.com", "outlook.com", "live.com", "msn.com", "aol.com",
		"icloud.com", "me.com", "mac.com", "gmx.de", "gmx.net", "web.de", "proton.me", "protonmail.com", "fastmail.com",
		"mail.ru", "yandex.ru", "comcast.net", "verizon.net", "earthlink.net", "freemail.example", "mail.example":
		return true
	}
	return false
}

// role returns the kind of the local part of an address.
func role(local string) string {
	for _, kind := range []struct {
		name  string
		parts []string
	}{
		{"machine", []string{"noreply", "no-reply", "no_reply", "donotreply", "do-not-reply", "notification", "notify", "alert", "mailer", "daemon", "bounce", "automat", "robot", "system", "jenkins", "jira", "github", "ci-", "monitor"}},
		{"list", []string{"newsletter", "news", "digest", "weekly", "updates", "announce", "list", "owner-", "-admin", "community"}},
		{"selling", []string{"marketing", "promo", "offer", "deal", "sale", "shop", "store", "hello", "info", "team"}},
		{"billing", []string{"billing", "invoice", "receipt", "order", "payment", "account", "shipping", "booking"}},
		{"service", []string{"support", "service", "help", "security", "admin", "postmaster", "hr", "it-", "office", "events"}},
	} {
		if slices.ContainsFunc(kind.parts, func(p string) bool { return strings.Contains(local, p) }) {
			return kind.name
		}
	}
	if strings.ContainsAny(local, "._") {
		return "two names"
	}
	return "other"
}

func top(domain string) string {
	switch last := domain[strings.LastIndexByte(domain, '.')+1:]; last {
	case "com", "org", "net", "edu", "gov", "io", "info", "biz", "co", "example", "test":
		return last
	case "xyz", "top", "club", "click", "link", "online", "site", "shop", "live", "icu", "ru", "cn", "tk", "zip", "mov":
		return "suspicious"
	default:
		if len(last) == 2 {
			return "country"
		}
		return "other"
	}
}

// likePerson reports whether a display name is two or three words of letters,
// one of which is in the address.
func likePerson(words []string, local string) bool {
	if len(words) < 2 || len(words) > 3 {
		return false
	}
	return slices.ContainsFunc(words, func(w string) bool {
		w = strings.ToLower(strings.Trim(w, `",.`))
		return len(w) > 2 && strings.Contains(local, w)
	})
}

// recipients adds features of the recipients.
func recipients(c *collector, m *message.Message, about signal.Context) {
	mine := func(a message.Address) bool { return slices.Contains(about.Addresses, a.Addr) }
	to, cc := slices.ContainsFunc(m.To, mine), slices.ContainsFunc(m.Cc, mine)
	fact(c, "to owner alone", to && len(m.To) == 1 && len(m.Cc) == 0)
	fact(c, "copy to owner", !to && cc)
	fact(c, "not to owner", !to && !cc && len(about.Addresses) > 0)
	level(c, "recipients", steps(len(m.To)+len(m.Cc), 0, 1, 2, 4, 8))
	if len(about.Addresses) > 0 {
		name, _, _ := strings.Cut(about.Addresses[0], "@")
		name, _, _ = strings.Cut(name, ".")
		start := strings.ToLower(m.Body[:min(len(m.Body), 60)])
		fact(c, "owner is greeted", len(name) > 2 && strings.Contains(start, name))
	}
}

// form adds features of the message's format.
func form(c *collector, m *message.Message) {
	subject := strings.ToLower(m.Subject)
	reply := strings.HasPrefix(subject, "re:") || strings.HasPrefix(subject, "aw:")
	fact(c, "reply", reply)
	fact(c, "reply in a thread", len(m.InReplyTo) > 0)
	fact(c, "forward", strings.HasPrefix(subject, "fwd:") || strings.HasPrefix(subject, "fw:"))
	fact(c, "tag in subject", strings.HasPrefix(subject, "["))
	level(c, "links", steps(len(m.Links), 0, 1, 3, 8, 20))
	level(c, "attachments", steps(len(m.Attachments), 0, 1))
	level(c, "hidden", steps(len(m.Hidden), 0, 3))
	fact(c, "calendar "+m.Calendar, m.Calendar != "")
	fact(c, "pixels", m.Pixels > 0)
	fact(c, "forms", m.Forms > 0)
	fact(c, "quotes", len(m.Text) > len(m.Body)+40)
	fact(c, "foreign language", m.Language != "" && m.Language != "en")
}
