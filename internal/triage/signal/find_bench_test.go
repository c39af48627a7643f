package signal_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// BenchmarkFind measures the rules on mail of three sizes, for an owner with
// two thousand correspondents.
func BenchmarkFind(b *testing.B) {
	var list []signal.Contact
	for i := range 2000 {
		list = append(list, signal.Contact{Name: fmt.Sprintf("Person Number%d", i), Addr: fmt.Sprintf("p%d@firma%d.example", i, i)})
	}
	about := signal.Context{Addresses: []string{"me@harbourworks.example"}, Domains: []string{"harbourworks.example"}, Contacts: signal.NewContacts(list)}
	sentence := "The harbour office moved the delivery to the second week, and Jonas asked whether the cranes can be booked before then. "
	for _, size := range []int{5, 30, 200} {
		m := mail("Anna <anna@nordlicht.example> | Delivery of the cranes | " + strings.Repeat(sentence, size))
		for i := range size / 3 {
			host := fmt.Sprintf("www.firma-%d.example", i)
			m.Links = append(m.Links, message.Link{Text: "more", URL: "https://" + host + "/x", Host: host, Domain: host[4:]})
		}
		b.Run(fmt.Sprintf("%d_bytes_%d_links", len(m.Text), len(m.Links)), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				signal.Find(m, about)
			}
		})
	}
}
