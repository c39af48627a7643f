package authenticate

import (
	"context"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/publicsuffix"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

const (
	defaultTimeout = 3 * time.Second
	maxLookups     = 30
	maxSignatures  = 5
)

// Config configures a check: the trusted hosts and the DNS resolver.
type Config struct {
	// TrustedHost is the authserv-id that the owner's receiving host writes
	// into Authentication-Results (RFC 8601). If empty, every such header is
	// ignored.
	TrustedHost string
	// Border lists the owner's hosts that receive mail from outside, by the
	// names that they write into Received. If empty, SPF is not checked.
	Border []string
	// Resolver queries DNS. If nil, no query is made, as when there is no
	// network.
	Resolver Resolver
	// Timeout bounds all DNS queries for one message; zero means three seconds.
	Timeout time.Duration
	// Now is the time of the check, for the expiry of signatures.
	Now time.Time
}

// Check authenticates the sender of a message; raw are the bytes that m was
// parsed from. It never fails: a check that cannot be made has the result
// Unknown.
func Check(ctx context.Context, raw []byte, m *message.Message, config Config) Result {
	from := fromDomain(m)
	if r, ok := config.believed(m, from); ok {
		return r
	}
	if config.Resolver == nil {
		return Result{SPF: Unknown, DKIM: Unknown, DMARC: Unknown, ARC: Unknown, Source: FromNone}
	}
	timeout := config.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	o := own{m: m, config: config, from: from, dns: &bounded{resolver: config.Resolver, remaining: maxLookups}}
	return o.check(ctx, raw)
}

// fromDomain returns the domain of the From address in lower case. It returns
// "" without From, and with more than one address: programs differ in which
// they show, and a signature covers only one.
func fromDomain(m *message.Message) string {
	if len(m.From) != 1 || count(m, "From") > 1 {
		return ""
	}
	addr := m.From[0].Addr
	return strings.ToLower(strings.TrimSuffix(addr[strings.LastIndexByte(addr, '@')+1:], "."))
}

func count(m *message.Message, name string) int {
	n := 0
	for _, f := range m.Fields {
		if strings.EqualFold(f.Name, name) {
			n++
		}
	}
	return n
}

// organisation returns the registrable domain of a host, or the host if it has
// none.
func organisation(host string) string {
	if domain, err := publicsuffix.EffectiveTLDPlusOne(host); err == nil {
		return domain
	}
	return host
}

// aligned reports whether a domain that passed is aligned with From's domain:
// the same domain or, unless strict, one of the same organisation.
func aligned(domain, from string, strict bool) bool {
	domain = strings.ToLower(strings.TrimSuffix(domain, "."))
	if from == "" || domain == "" {
		return false
	}
	return domain == from || !strict && organisation(domain) == organisation(from)
}

// listDomain returns the host in List-Id.
func listDomain(m *message.Message) string {
	id := strings.TrimSpace(m.Get("List-Id"))
	if start := strings.LastIndexByte(id, '<'); start >= 0 {
		id, _, _ = strings.Cut(id[start+1:], ">")
	}
	return strings.ToLower(strings.TrimSpace(id))
}

// unsubscribeSigned reports whether the header keys of a valid signature cover
// both fields of RFC 8058. With a second field of that name, the signed field
// and the one that a program reads may differ.
func unsubscribeSigned(m *message.Message, keys []string) bool {
	covers := func(name string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return strings.EqualFold(strings.TrimSpace(key), name) })
	}
	return !slices.ContainsFunc([]string{"List-Unsubscribe", "List-Unsubscribe-Post"}, func(name string) bool { return !covers(name) || count(m, name) != 1 })
}
