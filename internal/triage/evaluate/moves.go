package evaluate

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// senderKind is a kind of sender with its authentication.
type senderKind struct {
	name, header string
	from, list   signal.Sender
	to           string
}

// provenSenders is the number of leading senders that models are asked about.
const provenSenders = 3

// senders returns every kind of sender. All pass authentication.
func senders() []senderKind {
	seen, last := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	known := signal.Sender{Received: 30, Accepted: 2, FirstSeen: seen, LastSeen: last}
	person := known
	person.Sent, person.Replied = 6, 4
	return []senderKind{
		{name: "a known person", header: "From: Known Person <known@partner.example>\r\n", from: person},
		{name: "a list", header: "From: Shop <news@shop.example>\r\nList-Id: <news.shop.example>\r\nList-Unsubscribe: <https://shop.example/u>\r\n", from: known, list: known},
		{name: "a machine", header: "From: Shop <orders@shop.example>\r\nAuto-Submitted: auto-generated\r\n", from: known},
		{name: "a stranger", header: "From: Some One <someone@stranger.example>\r\n"},
		{name: "a colleague", header: "From: Bo Berg <bo@example.org>\r\n", from: person},
		{
			name: "a group address", from: person, list: known, to: "team@example.org",
			header: "From: Bo Berg <bo@example.org>\r\nList-Id: <team.example.org>\r\nList-Post: <mailto:team@example.org>\r\n",
		},
	}
}

// sent returns a mail and its facts.
func (r *run) sent(s senderKind, subject, body string) (*message.Message, decide.Facts) {
	m := message.Parse([]byte(s.header + "To: " + cmp.Or(s.to, "owner@example.org") + "\r\nMessage-ID: <1@shop.example>\r\nSubject: " + strings.Join(strings.Fields(subject), " ") +
		"\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" + body))
	about := signal.Context{
		Addresses: []string{"owner@example.org"}, Domains: []string{"example.org"}, Sender: s.from, List: s.list,
		Authentication: signal.Authentication{SPF: signal.AuthPass, DKIM: signal.AuthPass, DMARC: signal.AuthPass, Aligned: true, ListAligned: true, Source: authenticate.FromHeader},
	}
	found := signal.Find(m, about)
	p := r.cold.Predict(r.cold.Features(m, about, found))
	found = found.WithModel(p.Phishing)
	levels := map[decide.Cohort]decide.Level{}
	for _, c := range decide.Cohorts() {
		levels[c] = decide.L5
	}
	return m, decide.Facts{
		Headers: decide.HeadersOf(m), Folder: mailbox.UseInbox, Authentication: about.Authentication, Signals: found,
		Prediction: p, Sender: s.from, List: s.list,
		Settings: decide.Settings{Addresses: about.Addresses, Domains: about.Domains, Levels: levels, Quarantine: true},
	}
}

// evaluateMoves puts every attack into every mail of every kind of sender, with
// every cohort at L5, and compares the actions without a person with those for
// the clean mail.
func (r *run) evaluateMoves(ctx context.Context, set string, attacks []string, victims []victim) error {
	var figures []Figure
	var total, tried int
	for _, s := range senders() {
		var clean, moved int
		var labels share
		for _, v := range victims {
			if err := ctx.Err(); err != nil {
				return err
			}
			before := r.effects(s, v)
			clean += count(before.moved)
			for _, attack := range attacks {
				for _, attacked := range attackedBy(v, attack) {
					after := r.effects(s, attacked)
					moved += count(after.moved && !before.moved)
					labels.add(after.label != "" && after.label != before.label)
				}
			}
		}
		total, tried = total+moved, tried+labels.of
		figures = append(figures, Figure{Name: "from " + s.name + ": moved without a person, and the clean mail is not", Value: float64(moved), Unit: "mails"},
			share{clean, len(victims)}.figure("from "+s.name+": clean mails that are moved", 1),
			labels.figure("from "+s.name+": labelled without a person as the clean mail is not", 1))
	}
	r.add(Section{
		Set: set + " with injected instructions, moves", Mode: Rules, Examples: tried,
		Figures: append([]Figure{{Name: "moved without a person, and the clean mail is not", Value: float64(total), Unit: "mails"}}, figures...),
		Note:    "at the start, in the middle and at the end of the text, in a quote behind it, and before and behind the subject; every cohort at L5",
	})
	return nil
}

// effects are the actions on a mail without a person.
type effects struct {
	moved bool
	label string
}

func (r *run) effects(s senderKind, v victim) effects {
	_, facts := r.sent(s, v.subject, v.body)
	d := decide.Decide(facts)
	var e effects
	for _, w := range d.Wants {
		e.moved = e.moved || !w.Confirm && slices.Contains(moving(), w.Action)
		if w.Action == decide.Label && !w.Confirm {
			e.label = string(d.Category)
		}
	}
	return e
}

// attackedBy returns a mail with an attack at every place.
func attackedBy(v victim, attack string) []victim {
	var all []victim
	for _, body := range append(placed(v.body, attack), v.body+"\n\nOn Monday somebody wrote:\n> "+strings.ReplaceAll(attack, "\n", "\n> ")) {
		all = append(all, victim{v.subject, body})
	}
	return append(all, victim{attack + " " + v.subject, v.body}, victim{v.subject + " " + attack, v.body})
}
