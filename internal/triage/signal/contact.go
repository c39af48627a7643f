package signal

import "strings"

// Contact is a correspondent of the owner.
type Contact struct{ Name, Addr string }

// Contacts is an index over the owner's correspondents, built once and asked
// for each message. It does not change, and is safe for concurrent use.
type Contacts struct {
	// addrs has the addresses by name, in lower case.
	addrs map[string][]string
	// domains has the registrable domains.
	domains map[string]bool
}

// NewContacts returns the index of correspondents.
func NewContacts(list []Contact) *Contacts {
	c := &Contacts{addrs: make(map[string][]string), domains: make(map[string]bool)}
	for _, one := range list {
		addr := strings.ToLower(one.Addr)
		name := strings.ToLower(strings.Join(strings.Fields(one.Name), " "))
		if name != "" {
			c.addrs[name] = append(c.addrs[name], addr)
		}
		if domain := registrable(domainOf(addr)); domain != "" {
			c.domains[domain] = true
		}
	}
	return c
}
