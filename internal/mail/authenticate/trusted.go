package authenticate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/emersion/go-msgauth/authres"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

// believed returns the results of the trusted host, if it wrote any. Only its
// fields above the first Received of a foreign host count: the sender may have
// written everything below. Only the topmost field may count in favour of the
// sender, who may have written the others; each of them may count against.
func (c Config) believed(m *message.Message, from string) (Result, bool) {
	if c.TrustedHost == "" {
		return Result{}, false
	}
	var all []trustedResults
	for _, f := range m.Fields {
		if strings.EqualFold(f.Name, "Received") && c.foreign(parseReceived(f.Value).by) {
			break
		}
		if !strings.EqualFold(f.Name, "Authentication-Results") {
			continue
		}
		text, policy := withoutComments(f.Value)
		if id, results, _ := authres.Parse(text); strings.EqualFold(id, c.TrustedHost) {
			all = append(all, resultsOf(m, results, policy, from))
		}
	}
	if len(all) == 0 {
		return Result{}, false
	}
	for _, further := range all[1:] {
		all[0].lower(further)
	}
	return all[0].result(), true
}

// foreign reports whether the host that received the message is outside the
// owner's site. Names without a public suffix, and addresses, are hops within a
// site.
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
	return slices.ContainsFunc(c.Border, func(own string) bool { return strings.EqualFold(own, host) })
}

func topLabel(host string) string { return host[strings.LastIndexByte(host, '.')+1:] }

// method is the result of one method and the domain that passed.
type method struct {
	// status is empty if the field has no result of the method.
	status        Status
	aligned, list bool
}

// trustedResults holds the results of one field of the trusted host.
type trustedResults struct {
	spf, dkim, dmarc, arc method
	policy                string
	unsubscribeSigned     bool
}

// worse returns the worse of two results: fail, then unknown, then pass. If
// only the second field has a result, it counts only if it is a failure.
func worse(a, b method) method {
	switch {
	case b.status == Fail:
		return b
	case a.status == "", b.status == "", a.status == Fail, b.status == Pass:
		return a
	}
	return b
}

// lower adds the failures of a further field.
func (v *trustedResults) lower(further trustedResults) {
	if further.dmarc.status == Fail && v.dmarc.status != Fail {
		v.policy = further.policy
	}
	v.spf, v.dkim = worse(v.spf, further.spf), worse(v.dkim, further.dkim)
	v.dmarc, v.arc = worse(v.dmarc, further.dmarc), worse(v.arc, further.arc)
}

func (v *trustedResults) result() Result {
	known := func(m method) Status { return Status(cmp.Or(string(m.status), string(Unknown))) }
	return Result{
		SPF: known(v.spf), DKIM: known(v.dkim), DMARC: known(v.dmarc), ARC: known(v.arc), Policy: v.policy,
		Aligned:           v.spf.aligned || v.dkim.aligned || v.dmarc.aligned,
		ListAligned:       v.spf.list || v.dkim.list || v.dmarc.list,
		UnsubscribeSigned: v.unsubscribeSigned && v.dkim.status == Pass,
		Source:            FromHeader,
	}
}

// resultsOf reads the results of a field.
func resultsOf(m *message.Message, results []authres.Result, policy, from string) trustedResults {
	var v trustedResults
	// passed returns a result, with the domain if it is a pass.
	passed := func(value authres.ResultValue, domain string) method {
		status := statusOf(value)
		return method{status, status == Pass && aligned(domain, from, false), status == Pass && aligned(domain, listDomain(m), false)}
	}
	for _, one := range results {
		switch one := one.(type) {
		case *authres.SPFResult:
			v.spf = firstKnown(v.spf, passed(one.Value, mailDomain(one.From)))
		case *authres.DKIMResult:
			v.readDKIM(m, one, passed)
		case *authres.DMARCResult:
			if named := strings.ToLower(mailDomain(one.From)); from != "" && (named == "" || named == from) {
				v.dmarc = firstKnown(v.dmarc, passed(one.Value, from))
				v.policy = policy
			}
		case *authres.ARCResult:
			v.arc.status = statusOf(one.Value)
		}
	}
	return v
}

// firstKnown returns the first known result of two in one field, or the failure
// among them.
func firstKnown(a, b method) method {
	if a.status == "" || a.status == Unknown || b.status == Fail {
		return b
	}
	return a
}

// readDKIM adds the result of one signature. A pass for From's domain takes
// precedence over all others, a failure over none.
func (v *trustedResults) readDKIM(m *message.Message, one *authres.DKIMResult, passed func(authres.ResultValue, string) method) {
	domain := one.Domain
	if domain == "" {
		domain = mailDomain(one.Identifier)
	}
	signature := passed(one.Value, domain)
	if signature.status == Pass {
		v.unsubscribeSigned = v.unsubscribeSigned || unsubscribeSigned(m, signedKeys(m, domain))
	}
	v.dkim.aligned, v.dkim.list = v.dkim.aligned || signature.aligned, v.dkim.list || signature.list
	if v.dkim.status == "" || v.dkim.status != Pass && signature.status != Unknown {
		v.dkim.status = signature.status
	}
}

// statusOf maps a result of RFC 8601. Neutral results and errors are unknown.
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

// signedKeys returns the header keys that all signatures of a domain cover,
// since the trusted host does not report which of several passed.
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
		if slices.Contains(b, one) {
			common = append(common, one)
		}
	}
	return common
}

// withoutComments returns the value of Authentication-Results without comments
// and with quoted text as one word, and its DMARC policy. Comments and quoted
// text hold text of the sender, such as its HELO, which could otherwise add
// results.
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

// policyIn returns the DMARC policy after a prefix.
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
