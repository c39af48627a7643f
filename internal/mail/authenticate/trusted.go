package authenticate

import (
	"strings"

	"github.com/emersion/go-msgauth/authres"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

// believed returns what the trusted host wrote, if it wrote anything. The
// topmost field with its name counts, above the first Received of a foreign
// host: everything below is the sender's text.
func (c Config) believed(m *message.Message, from string) (Result, bool) {
	if c.TrustedHost == "" {
		return Result{}, false
	}
	for _, f := range m.Fields {
		switch {
		case strings.EqualFold(f.Name, "Received") && c.foreign(parseReceived(f.Value).by):
			return Result{}, false
		case strings.EqualFold(f.Name, "Authentication-Results"):
			text, policy := withoutComments(f.Value)
			id, results, _ := authres.Parse(text)
			if strings.EqualFold(id, c.TrustedHost) {
				return fromResults(m, results, policy, from), true
			}
		}
	}
	return Result{}, false
}

// foreign reports whether a host that received the message is not the owner's.
// Names without a public suffix, and addresses, are steps within one site.
func (c Config) foreign(host string) bool {
	if host == "" || !strings.Contains(host, ".") || strings.Trim(topLabel(host), "0123456789") == "" || strings.Contains(host, ":") {
		return false
	}
	if organisation(host) == organisation(strings.ToLower(c.TrustedHost)) {
		return false
	}
	return !c.border(host)
}

func (c Config) border(host string) bool {
	for _, own := range c.Border {
		if strings.EqualFold(own, host) {
			return true
		}
	}
	return false
}

func topLabel(host string) string { return host[strings.LastIndexByte(host, '.')+1:] }

// fromResults reads what the trusted host found.
func fromResults(m *message.Message, results []authres.Result, policy, from string) Result {
	r := Result{SPF: Unknown, DKIM: Unknown, DMARC: Unknown, ARC: Unknown, Source: FromHeader}
	for _, one := range results {
		switch one := one.(type) {
		case *authres.SPFResult:
			if r.SPF == Unknown {
				r.SPF = statusOf(one.Value)
				r.Aligned = r.Aligned || r.SPF == Pass && aligned(mailDomain(one.From), from, false)
				r.ListAligned = r.ListAligned || r.SPF == Pass && aligned(mailDomain(one.From), listDomain(m), false)
			}
		case *authres.DKIMResult:
			readDKIM(&r, m, one, from)
		case *authres.DMARCResult:
			named := strings.ToLower(mailDomain(one.From))
			if r.DMARC == Unknown && from != "" && (named == "" || named == from) {
				r.DMARC = statusOf(one.Value)
				r.Aligned = r.Aligned || r.DMARC == Pass
				r.Policy = policy
			}
		case *authres.ARCResult:
			r.ARC = statusOf(one.Value)
		}
	}
	return r
}

// readDKIM takes the result of one signature: one that passes for From's domain
// counts before all others, and a failure before nothing.
func readDKIM(r *Result, m *message.Message, one *authres.DKIMResult, from string) {
	domain := one.Domain
	if domain == "" {
		domain = mailDomain(one.Identifier)
	}
	status := statusOf(one.Value)
	if status == Pass {
		r.Aligned = r.Aligned || aligned(domain, from, false)
		r.ListAligned = r.ListAligned || aligned(domain, listDomain(m), false)
		r.UnsubscribeSigned = r.UnsubscribeSigned || unsubscribeSigned(m, signedKeys(m, domain))
	}
	if r.DKIM != Pass && status != Unknown {
		r.DKIM = status
	}
}

// statusOf reads a result of RFC 8601. What a domain leaves open, and errors,
// are unknown.
func statusOf(value authres.ResultValue) Status {
	switch value {
	case authres.ResultPass:
		return Pass
	case authres.ResultFail, authres.ResultHardFail:
		return Fail
	default:
		return Unknown
	}
}

func mailDomain(addr string) string { return addr[strings.LastIndexByte(addr, '@')+1:] }

// signedKeys returns the header keys that all signatures of a domain cover. The
// trusted host does not say which of several passed.
func signedKeys(m *message.Message, domain string) []string {
	var common []string
	found := false
	for _, f := range m.Fields {
		if !strings.EqualFold(f.Name, "DKIM-Signature") {
			continue
		}
		var of string
		var keys []string
		for tag := range strings.SplitSeq(f.Value, ";") {
			name, value, _ := strings.Cut(tag, "=")
			value = strings.Join(strings.Fields(value), "")
			switch strings.TrimSpace(name) {
			case "d":
				of = value
			case "h":
				keys = strings.Split(strings.ToLower(value), ":")
			}
		}
		if !strings.EqualFold(of, domain) {
			continue
		}
		if !found {
			common, found = keys, true
			continue
		}
		common = both(common, keys)
	}
	return common
}

func both(a, b []string) []string {
	var common []string
	for _, one := range a {
		for _, other := range b {
			if one == other {
				common = append(common, one)
				break
			}
		}
	}
	return common
}

// withoutComments returns the value of Authentication-Results without comments,
// with quoted text as one word, and the DMARC policy that it names. Comments and
// quoted text hold what the sender wrote, such as its HELO: without this step it
// could add results of its own.
func withoutComments(value string) (text, policy string) {
	var b, comment strings.Builder
	depth, quoted := 0, false
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case c == '\\' && (depth > 0 || quoted):
			i++
		case c == '"' && depth == 0:
			quoted = !quoted
		case quoted:
			if c == ';' || c <= ' ' || c == '=' {
				c = '_'
			}
			b.WriteByte(c)
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			if depth--; depth == 0 {
				if strings.HasPrefix(lastResult(b.String()), "dmarc=") && policy == "" {
					policy = policyIn(comment.String(), "p=")
				}
				comment.Reset()
				b.WriteByte(' ')
			}
		case depth > 0:
			comment.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	text = b.String()
	if policy == "" {
		policy = policyIn(text, "policy.dmarc=")
	}
	return text, policy
}

func lastResult(text string) string {
	return strings.ToLower(strings.TrimSpace(text[strings.LastIndexByte(text, ';')+1:]))
}

// policyIn returns the DMARC policy behind a prefix.
func policyIn(text, prefix string) string {
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		if value, ok := strings.CutPrefix(word, prefix); ok {
			switch value = strings.TrimRight(value, ",;"); value {
			case "none", "quarantine", "reject":
				return value
			}
		}
	}
	return ""
}
