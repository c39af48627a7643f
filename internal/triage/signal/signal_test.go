package signal_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

func names(r signal.Result) []string {
	var all []string
	for _, s := range r.Symbols {
		all = append(all, s.Name)
	}
	return all
}

func TestHeaderRules(t *testing.T) {
	t.Parallel()
	anna := message.Address{Name: "Anna", Addr: "anna@example.org"}
	me := message.Address{Addr: "me@example.com"}

	for name, test := range map[string]struct {
		m       message.Message
		about   signal.Context
		want    []string
		missing []string
	}{
		"two From fields": {
			m:    message.Message{Fields: []message.Field{{Name: "From", Value: "a@b.org"}, {Name: "from", Value: "c@d.org"}}, From: []message.Address{anna}},
			want: []string{signal.MultipleFrom},
		},
		"no From": {want: []string{signal.MissingFrom}, missing: []string{signal.FirstContact}},
		"list": {
			m: message.Message{From: []message.Address{anna}, Fields: []message.Field{
				{Name: "From"}, {Name: "List-ID", Value: "<x.example.org>"}, {Name: "List-Unsubscribe", Value: "<https://example.org/u>"},
				{Name: "List-Unsubscribe-Post", Value: "List-Unsubscribe=One-Click"}, {Name: "Precedence", Value: "Bulk"},
			}},
			want: []string{signal.ListID, signal.ListUnsubscribe, signal.OneClick, signal.PrecedenceBulk},
		},
		"one click needs https": {
			m: message.Message{Fields: []message.Field{
				{Name: "List-Unsubscribe", Value: "<mailto:u@example.org>"}, {Name: "List-Unsubscribe-Post", Value: "List-Unsubscribe=One-Click"},
			}},
			want: []string{signal.ListUnsubscribe}, missing: []string{signal.OneClick},
		},
		"to me alone, from someone I write to": {
			m: message.Message{From: []message.Address{anna}, To: []message.Address{{Addr: "me+shop@example.com"}}},
			about: signal.Context{
				Addresses: []string{"me@example.com"}, ReplyToMine: true, Sender: signal.Sender{Sent: 2, VIP: true},
			},
			want: []string{signal.ToMeAlone, signal.ReplyToMine, signal.VIP, signal.KnownCorrespondent}, missing: []string{signal.FirstContact},
		},
		"cc only": {
			m:     message.Message{From: []message.Address{anna}, To: []message.Address{anna}, Cc: []message.Address{me}},
			about: signal.Context{Addresses: []string{"me@example.com"}},
			want:  []string{signal.CcOnly, signal.FirstContact},
		},
		"display name is another address": {
			m:    message.Message{From: []message.Address{{Name: "boss@example.com", Addr: "x@evil.example.net"}}},
			want: []string{signal.DisplayIsOtherAddress},
		},
		"display name is the same domain": {
			m:       message.Message{From: []message.Address{{Name: "news@mail.example.com", Addr: "x@example.com"}}},
			missing: []string{signal.DisplayIsOtherAddress},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := names(signal.Find(&test.m, test.about))

			for _, want := range test.want {
				if !slices.Contains(got, want) {
					t.Errorf("found %v, want %s", got, want)
				}
			}
			for _, missing := range test.missing {
				if slices.Contains(got, missing) {
					t.Errorf("found %v, want no %s", got, missing)
				}
			}
		})
	}
}

func TestAuthenticationWeighsLessOnKnownLists(t *testing.T) {
	t.Parallel()
	m := message.Message{Fields: []message.Field{{Name: "List-Id", Value: "<l.example.org>"}}}
	failed := signal.Authentication{DMARC: signal.AuthFail, SPF: signal.AuthFail, DKIM: signal.AuthFail, Policy: "reject", Source: authenticate.FromHeader}

	alone := signal.Find(&m, signal.Context{Authentication: failed})
	forged := signal.Find(&m, signal.Context{Authentication: failed, List: signal.Sender{Received: 3}})
	failed.ListAligned = true
	passed := signal.Find(&m, signal.Context{Authentication: failed, List: signal.Sender{Received: 3}})

	if !forged.Suspicious || passed.Suspicious {
		t.Errorf("risk %v where the list did not pass, %v where it did", forged.Sums, passed.Sums)
	}
	if !alone.Suspicious {
		t.Errorf("risk %v is not suspicious", alone.Sums)
	}
}

func TestEvidenceIsShortAndValid(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä\xff", 5000)

	r := signal.Find(&message.Message{Fields: []message.Field{{Name: "List-Id", Value: long}}}, signal.Context{})

	for _, s := range r.Symbols {
		if n := utf8.RuneCountInString(s.Evidence); n > 200 || !utf8.ValidString(s.Evidence) {
			t.Errorf("%s: evidence has %d characters, valid %t", s.Name, n, utf8.ValidString(s.Evidence))
		}
	}
	if !r.Has(signal.ListID) {
		t.Error("List-Id was not found")
	}
}
