// Package suggest derives settings of an account from its recent mail: important
// senders, newsletters, the owner's addresses, signature and language. It reads the
// mailbox, and keeps no text but the signature.
package suggest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/draft"
)

// Limits of a suggestion, and of the messages that it is derived from.
const (
	maxMessages    = 500
	pageMessages   = 100
	maxVIP         = 10
	maxNewsletters = 50
	maxSignature   = 8
	// least is the number of messages each way that make a sender important, and the
	// number of messages that make a domain one of newsletters.
	least = 2
)

// Settings are suggested settings of an account.
type Settings struct {
	// Addresses are those of the owner: the given one, and others that sent mail has.
	Addresses []string `json:"addresses"`
	// VIP are addresses that the owner answers, the most frequent first.
	VIP []string `json:"vip"`
	// Newsletters are domains that send to lists alone.
	Newsletters []string `json:"newsletters"`
	// Signature is the most frequent signature of sent mail, and Examples the
	// Message-IDs of the newest sent mail with own text.
	Signature string   `json:"signature"`
	Examples  []string `json:"examples"`
	// Language is the language of most of the sent mail, as an ISO 639-1 code.
	Language string `json:"language"`
	// Received and Sent count the messages that were read.
	Received int `json:"received"`
	Sent     int `json:"sent"`
}

// From derives settings from mail that was received or sent since a time, at most 500
// messages of each. address is the owner's, or "".
func From(ctx context.Context, r mailbox.Reader, address string, since time.Time) (Settings, error) {
	c := count{own: map[string]int{}, people: map[string]*person{}, ids: map[string]string{}, domains: map[string]*domain{}, signatures: map[string]int{}, languages: map[string]int{}}
	if address = strings.ToLower(address); address != "" {
		c.own[address] = least
	}
	folders, err := r.Folders(ctx)
	if err != nil {
		return Settings{}, err
	}
	for _, of := range []struct {
		use mailbox.Use
		add func(*message.Message)
		n   *int
	}{{mailbox.UseInbox, c.addReceived, &c.received}, {mailbox.UseSent, c.addSent, &c.sent}} {
		i := slices.IndexFunc(folders, func(f mailbox.Folder) bool { return f.Use == of.use })
		if i < 0 {
			continue
		}
		if *of.n, err = read(ctx, r, folders[i].Name, since, of.add); err != nil {
			return Settings{}, err
		}
	}
	return c.settings(address), nil
}

// read reads the messages of a folder, newest first, until one is older.
func read(ctx context.Context, r mailbox.Reader, folder string, since time.Time, add func(*message.Message)) (n int, err error) {
	var at mailbox.Cursor
	for n < maxMessages {
		items, next, err := r.Older(ctx, folder, at, min(pageMessages, maxMessages-n))
		if err != nil || len(items) == 0 {
			return n, err
		}
		at = next
		some := len(items)
		items = slices.DeleteFunc(items, func(i mailbox.Item) bool { return i.Received.Before(since) || i.Unusable != "" })
		err = r.Read(ctx, items, func(_ mailbox.Item, raw []byte, err error) error {
			if err == nil { // one that is gone or too large does not count
				add(message.Parse(raw))
				n++
			}
			return nil
		})
		if err != nil || len(items) < some {
			return n, err
		}
	}
	return n, nil
}

// person is a correspondent.
type person struct{ wrote, got, answered int }

// domain counts the mail of a domain.
type domain struct{ bulk, other, written int }

// count counts messages.
type count struct {
	received, sent int
	own            map[string]int
	people         map[string]*person
	// ids are the senders by Message-ID.
	ids                   map[string]string
	domains               map[string]*domain
	signatures, languages map[string]int
	examples              []string
}

func (c *count) person(address string) *person {
	if c.people[address] == nil {
		c.people[address] = &person{}
	}
	return c.people[address]
}

func (c *count) domain(address string) *domain {
	_, name, _ := strings.Cut(address, "@")
	if c.domains[name] == nil {
		c.domains[name] = &domain{}
	}
	return c.domains[name]
}

func (c *count) addReceived(m *message.Message) {
	if len(m.From) == 0 || m.From[0].Addr == "" {
		return
	}
	from := m.From[0].Addr
	c.ids[m.MessageID] = from
	if isBulk(m) {
		c.domain(from).bulk++
		return
	}
	c.person(from).got++
	c.domain(from).other++
}

// isBulk reports whether a message came to many: it is of a list, or can be
// unsubscribed from.
func isBulk(m *message.Message) bool {
	return slices.ContainsFunc(m.Fields, func(f message.Field) bool {
		switch strings.ToLower(f.Name) {
		case "list-unsubscribe", "list-id":
			return true
		case "precedence":
			return strings.EqualFold(strings.TrimSpace(f.Value), "bulk") || strings.EqualFold(strings.TrimSpace(f.Value), "list")
		}
		return false
	})
}

func (c *count) addSent(m *message.Message) {
	if len(m.From) > 0 {
		c.own[m.From[0].Addr]++
	}
	for _, to := range slices.Concat(m.To, m.Cc) {
		c.person(to.Addr).wrote++
		c.domain(to.Addr).written++
	}
	for _, id := range m.InReplyTo {
		if from := c.ids[id]; from != "" {
			c.person(from).answered++
		}
	}
	if text := signature(m.Text); text != "" {
		c.signatures[text]++
	}
	if m.Language != "" {
		c.languages[m.Language]++
	}
	if m.MessageID != "" && m.Language != "" && len(c.examples) < draft.MaxExamples {
		c.examples = append(c.examples, m.MessageID)
	}
}

// signature returns the lines below a line of two hyphens, up to an empty one or a
// quote; "" for none.
func signature(text string) string {
	var lines []string
	below := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "--" || line == "—":
			below, lines = true, nil
		case !below:
		case line == "" && len(lines) > 0, strings.HasPrefix(line, ">"), len(lines) > maxSignature:
			below = false
		case line != "":
			lines = append(lines, line)
		}
		if strings.HasPrefix(line, ">") {
			break
		}
	}
	joined := strings.Join(lines, "\n")
	if len(lines) > maxSignature || len(joined) > draft.MaxSignature {
		return ""
	}
	return joined
}

// settings returns the suggestion.
func (c *count) settings(address string) Settings {
	s := Settings{
		Addresses: []string{}, VIP: []string{}, Newsletters: []string{}, Examples: append([]string{}, c.examples...),
		Signature: most(c.signatures, least), Language: most(c.languages, 1), Received: c.received, Sent: c.sent,
	}
	for _, own := range slices.Sorted(maps.Keys(c.own)) {
		if c.own[own] >= least && own != address {
			s.Addresses = append(s.Addresses, own)
		}
	}
	if address != "" {
		s.Addresses = slices.Insert(s.Addresses, 0, address)
	}
	for _, who := range slices.Sorted(maps.Keys(c.people)) {
		p := c.people[who]
		if p.wrote >= least && p.got >= least && p.answered > 0 && c.own[who] == 0 && !isMachine(who) {
			s.VIP = append(s.VIP, who)
		}
	}
	slices.SortStableFunc(s.VIP, func(a, b string) int { return cmp.Compare(c.people[b].score(), c.people[a].score()) })
	s.VIP = s.VIP[:min(len(s.VIP), maxVIP)]
	for _, name := range slices.Sorted(maps.Keys(c.domains)) {
		if d := c.domains[name]; d.bulk >= least && d.other == 0 && d.written == 0 && !c.isOwn(name) {
			s.Newsletters = append(s.Newsletters, name)
		}
	}
	slices.SortStableFunc(s.Newsletters, func(a, b string) int { return cmp.Compare(c.domains[b].bulk, c.domains[a].bulk) })
	s.Newsletters = s.Newsletters[:min(len(s.Newsletters), maxNewsletters)]
	return s
}

func (p *person) score() int { return 3*p.answered + min(p.wrote, p.got) }

// isOwn reports whether a domain is one of the owner's addresses.
func (c *count) isOwn(name string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(c.own)), func(address string) bool { return strings.HasSuffix(address, "@"+name) })
}

// isMachine reports whether nobody reads the mail to an address.
func isMachine(address string) bool {
	local, _, _ := strings.Cut(address, "@")
	return slices.ContainsFunc([]string{"noreply", "no-reply", "donotreply", "mailer-daemon"}, func(word string) bool { return strings.Contains(local, word) })
}

// most returns the most frequent text, the first by order among equals; "" if none is
// as frequent as least.
func most(counts map[string]int, least int) string {
	found := ""
	for _, text := range slices.Sorted(maps.Keys(counts)) {
		if counts[text] >= least && counts[text] > counts[found] {
			found = text
		}
	}
	return found
}
