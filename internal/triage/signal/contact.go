package signal

import (
	"strings"

	"github.com/countersign-dev/countersign/internal/lookalike"
)

// Contact is a correspondent of the owner.
type Contact struct{ Name, Addr string }

// Contacts is an index over the owner's correspondents, built once for all
// messages. It is immutable and safe for concurrent use.
type Contacts struct {
	// addrs maps names to addresses, as words.
	addrs map[string][]string
	// domains holds the registrable domains.
	domains map[string]bool
	targets lookalike.Targets
}

// NewContacts returns the index of correspondents.
func NewContacts(list []Contact) *Contacts {
	c := &Contacts{addrs: make(map[string][]string), domains: make(map[string]bool)}
	lex := loaded()
	for _, one := range list {
		addr := strings.ToLower(one.Addr)
		// A name of one word may be many people's.
		if name := plainWords(one.Name); strings.Contains(name, " ") {
			c.addrs[name] = append(c.addrs[name], addr)
		}
		domain := lookalike.Registrable(lookalike.DomainOf(addr))
		if domain == "" || c.domains[domain] {
			continue
		}
		c.domains[domain] = true
		if !lex.freemail[domain] && !lex.brands.domains[domain] {
			c.targets.Add(lookalike.LabelOf(domain), domain, false)
		}
	}
	return c
}

// plainWords returns the words of a text in lower case without accents.
func plainWords(text string) string {
	text = composed(text)
	var letters [maxWord]byte
	var b strings.Builder
	for i := 0; i < len(text); {
		end, size := scanWord(text, i, &letters)
		if size > 0 {
			if b.Len() > 0 {
				b.WriteByte(' ')
			}
			b.Write(letters[:size])
		}
		if end == i {
			end, _ = skipSeparator(text, i)
		}
		i = end
	}
	return b.String()
}

func (c *Contacts) named(name string) []string {
	if c == nil {
		return nil
	}
	return c.addrs[name]
}

func (c *Contacts) has(domain string) bool { return c != nil && c.domains[domain] }

// Freemail reports whether a domain is that of a public mail provider.
func Freemail(domain string) bool { return loaded().freemail[domain] }
