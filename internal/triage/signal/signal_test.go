package signal_test

import (
	"math"
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

// TestModelSetsFlagsAndClearsNone checks that the models' probability flags a
// first contact, and neither somebody known nor less than a half.
func TestModelSetsFlagsAndClearsNone(t *testing.T) {
	t.Parallel()
	m := message.Parse([]byte("From: Some One <one@stranger.example>\r\nTo: o@north.example\r\nSubject: x\r\n\r\nSee the attached note.\r\n"))
	first := signal.Find(m, signal.Context{})
	known := signal.Find(m, signal.Context{Sender: signal.Sender{Received: 9, Sent: 2}})

	for _, test := range []struct {
		found       signal.Result
		probability float64
		want        bool
	}{{first, .9, true}, {first, .51, true}, {first, .5, false}, {first, math.NaN(), false}, {known, .9, false}} {
		if got := test.found.WithModel(test.probability); got.Phishing != test.want || got.Named != test.found.Named || got.Keeps != test.found.Keeps {
			t.Errorf("WithModel(%v) of %v = %+v, want phishing %v", test.probability, test.found.Symbols, got, test.want)
		}
	}
	flagged := signal.Result{Symbols: first.Symbols, Phishing: true, Suspicious: true}
	if got := flagged.WithModel(0); !got.Phishing {
		t.Error("a low probability cleared the flag")
	}
}
