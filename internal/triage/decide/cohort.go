package decide

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// Cohort is a class of senders or messages with its own level.
type Cohort string

// The cohorts.
const (
	VIP           Cohort = "vip"
	FirstContact  Cohort = "first_contact"
	Newsletters   Cohort = "newsletters"
	Social        Cohort = "social"
	Transactional Cohort = "transactional"
	IntraOrg      Cohort = "intra_org"
	CrossOrg      Cohort = "cross_org"
	Default       Cohort = "default"
)

// Headers holds the header fields that determine a cohort.
type Headers struct {
	// From, To and Cc are addresses in lower case.
	From, To, Cc []string
	// ListUnsubscribe reports whether the field is present. Group reports
	// whether the message went to a discussion list: it has List-Post, or the
	// address in List-Id is among its recipients.
	ListUnsubscribe, Group bool
}

// HeadersOf returns the header fields of a message that determine its cohort.
func HeadersOf(m *message.Message) Headers {
	addresses := func(from []message.Address) []string {
		var all []string
		for _, a := range from {
			all = append(all, a.Addr)
		}
		return all
	}
	h := Headers{From: addresses(m.From), To: addresses(m.To), Cc: addresses(m.Cc)}
	for _, f := range m.Fields {
		h.ListUnsubscribe = h.ListUnsubscribe || strings.EqualFold(f.Name, "List-Unsubscribe")
		h.Group = h.Group || strings.EqualFold(f.Name, "List-Post") && strings.Contains(f.Value, "@")
	}
	id := strings.ToLower(m.Get("List-Id"))
	id, _, _ = strings.Cut(id[strings.LastIndexByte(id, '<')+1:], ">")
	h.Group = h.Group || slices.ContainsFunc(slices.Concat(h.To, h.Cc), func(addr string) bool { return strings.Replace(addr, "@", ".", 1) == id })
	return h
}

// cohortRow is a row of the table of cohorts.
type cohortRow struct {
	cohort Cohort
	level  Level
	// match describes in words the condition of holds.
	match string
	holds func(Facts) bool
}

// cohorts returns the table in order of precedence: the cohort of a message is
// the first row that holds.
func cohorts() []cohortRow {
	return []cohortRow{
		{VIP, L2, "the sender is on the list of VIPs, or the owner answers most of their messages, and no authentication failed", isVIP},
		{FirstContact, L1, "neither the sender nor the list is known, or neither is proven", isFirstContact},
		{Newsletters, L5, "it has List-Id or List-Unsubscribe, or its domain is on the list of newsletters, and it is not from a social network", isNewsletter},
		{Social, L5, "its domain is a social network's", isSocial},
		{Transactional, L4, "it is automated; or its words are those of a receipt, a delivery, an account notice or a code, and its owner never wrote to the sender", isTransactional},
		{IntraOrg, L2, "every participant is of the owner's organisation", isIntraOrg},
		{CrossOrg, L1, "a participant is outside the owner's organisation", isCrossOrg},
		{Default, L2, "no other cohort matches, because no domain of the owner's organisation is configured", func(Facts) bool { return true }},
	}
}

// Cohorts returns all cohorts in order of precedence.
func Cohorts() []Cohort {
	var all []Cohort
	for _, row := range cohorts() {
		all = append(all, row.cohort)
	}
	return all
}

// defaultLevel returns the level of a cohort that the owner has not set.
func defaultLevel(c Cohort) Level {
	for _, row := range cohorts() {
		if row.cohort == c {
			return row.level
		}
	}
	return L0
}

// A sender is treated as a VIP if the owner answered at least vipReplyRate of
// at least vipReceived messages. Starting values.
const (
	vipReplyRate = 0.8
	vipReceived  = 10
)

func isVIP(f Facts) bool {
	sender, _ := counted(f)
	replies := sender.Received >= vipReceived && float64(sender.Replied) >= vipReplyRate*float64(sender.Received)
	return (sender.VIP || replies || named(f, f.Settings.VIP)) && !failed(f)
}

func isFirstContact(f Facts) bool {
	sender, list := counted(f)
	return !sender.Known() && !list.Known() || claimsOwn(f)
}

func isNewsletter(f Facts) bool {
	return (f.Headers.ListUnsubscribe || has(f, signal.ListID) || named(f, f.Settings.Newsletters)) && !isSocial(f)
}

func isSocial(f Facts) bool {
	return has(f, signal.Social) && !unproven(f) || named(f, f.Settings.Social)
}

// isBulk reports whether a message is bulk mail, from any sender.
func isBulk(f Facts) bool { return isNewsletter(f) || isSocial(f) }

// addressed reports whether the header addresses a bulk message to its owner in
// particular: it answers the owner, or it went to a group and also names the
// owner as a recipient.
func addressed(f Facts) bool {
	return has(f, signal.ReplyToMine) || f.Headers.Group && slices.ContainsFunc(f.Headers.To, func(addr string) bool { return isOwnAddress(f, addr) })
}

// bulkNeed is the sum of need from which bulk mail may need its owner.
const bulkNeed = 3

// mayNeedOwner reports whether bulk mail may need its owner: it is addressed to
// the owner, names the owner in its text, is of a sender or a list that the
// owner answers, or there are other signs.
func mayNeedOwner(f Facts) bool {
	return addressed(f) || f.Signals.Named || f.Sender.Replied > 0 || f.List.Replied > 0 || f.Signals.Sums[signal.Need] >= bulkNeed
}

func isTransactional(f Facts) bool { return isMachine(f) || readsTransactional(f) }

// ByMachine reports whether a message is automated, so that it is not an
// answer.
func ByMachine(f Facts) bool { return isMachine(f) }

// isMachine reports whether the message is automated by its header.
func isMachine(f Facts) bool {
	machine := func(addr string) bool {
		local, _, _ := strings.Cut(addr, "@")
		return slices.ContainsFunc(strings.FieldsFunc(local, func(r rune) bool { return strings.ContainsRune("-_.+", r) }), func(word string) bool {
			return slices.Contains(machineNames(), word)
		})
	}
	return has(f, signal.AutoSubmitted, signal.NoReplySender) || len(f.Headers.From) == 1 && machine(f.Headers.From[0])
}

// machineNames are words in the addresses of automated senders.
func machineNames() []string {
	return []string{
		"alert", "alerts", "automated", "billing", "booking", "bookings", "bot", "calendar", "confirm", "confirmation",
		"delivery", "invoice", "invoices", "mailer", "monitor", "monitoring", "notice", "notices", "notification",
		"notifications", "notify", "order", "orders", "receipt", "receipts", "reminder", "reminders", "reservation",
		"reservations", "robot", "shipment", "shipping", "statement", "statements", "status", "system", "ticket",
		"tickets", "tracking", "update", "updates",
	}
}

// readsTransactional reports whether the words are those of a receipt, a
// delivery, an account notice or a code. The words of the owner's
// correspondents never count, since they may quote somebody else.
func readsTransactional(f Facts) bool {
	words := f.Signals.SecurityAlert ||
		has(f, signal.Receipt, signal.Shipping, signal.OneTimeCode, signal.SecurityAlert)
	return words && f.Sender.Sent == 0 && f.Sender.Replied == 0
}

// wordless returns the level that a message would have regardless of its words.
func wordless(f Facts) Level {
	f.Signals = signal.Result{}
	return levelOf(f, cohortOf(f).cohort)
}

func isIntraOrg(f Facts) bool {
	return len(f.Settings.Domains) > 0 && len(f.Headers.From) > 0 && !outside(f)
}

func isCrossOrg(f Facts) bool { return len(f.Settings.Domains) > 0 && outside(f) }

// outside reports whether any participant is outside the owner's organisation.
func outside(f Facts) bool {
	own := func(addr string) bool { return isOwn(f, addr) }
	return slices.ContainsFunc([][]string{f.Headers.From, f.Headers.To, f.Headers.Cc}, func(all []string) bool { return !every(all, own) })
}

func isOwn(f Facts, addr string) bool {
	return isOwnAddress(f, addr) || listed([]string{addr}, f.Settings.Domains)
}

func isOwnAddress(f Facts, addr string) bool {
	return slices.ContainsFunc(f.Settings.Addresses, func(own string) bool { return strings.EqualFold(own, addr) })
}

// claimsOwn reports whether a message claims to be from the owner's
// organisation without proof.
func claimsOwn(f Facts) bool {
	return slices.ContainsFunc(f.Headers.From, func(addr string) bool { return isOwn(f, addr) }) && !aligned(f)
}

// aligned reports whether authentication proves the only sender.
func aligned(f Facts) bool { return len(f.Headers.From) == 1 && f.Authentication.Proven() }

// unproven reports whether authentication had a result that does not prove the
// sender.
func unproven(f Facts) bool { return f.Authentication.Asked() && !f.Authentication.Proven() }

// counted returns the histories of the sender and the list that count for the
// message.
func counted(f Facts) (sender, list signal.Sender) {
	return signal.Counted(f.Authentication, f.Sender, f.List)
}

// claims reports whether the message may be from somebody else than its sender.
// Either no history counts for it and some would if it were proven, or it
// unprovenly names a correspondent, a listed sender or a colleague of the
// owner.
func claims(f Facts) bool {
	sender, list := counted(f)
	stranger := !sender.Known() && !list.Known() && (f.Sender.Known() || f.List.Known())
	dealt := sender != f.Sender && (f.Sender.Sent > 0 || f.Sender.Replied > 0 || f.Sender.VIP)
	onList := unproven(f) && listed(f.Headers.From, slices.Concat(f.Settings.Newsletters, f.Settings.Social, f.Settings.VIP))
	return stranger || dealt || onList || claimsOwn(f) || failed(f)
}

// failed reports whether authentication contradicts the sender: DMARC failed,
// or another check failed and nothing is aligned. Absent results are no
// failures.
func failed(f Facts) bool {
	a := f.Authentication
	return a.DMARC == signal.AuthFail || !a.Aligned && (a.SPF == signal.AuthFail || a.DKIM == signal.AuthFail)
}

// named reports whether the owner put the sender on a list.
func named(f Facts, list []string) bool { return !unproven(f) && listed(f.Headers.From, list) }

// genuine returns the level of the cohort that a message would have if its sender were
// genuine: an owner who lowers a cohort lowers its unproven messages too.
func genuine(f Facts) Level {
	f.Authentication = signal.Authentication{Aligned: true, ListAligned: true}
	return levelOf(f, cohortOf(f).cohort)
}

// claimed returns the lowest level among the cohorts that a message would have
// if its sender were genuine.
func claimed(f Facts) Level {
	f.Authentication = signal.Authentication{Aligned: true, ListAligned: true}
	lowest := L6
	for _, row := range cohorts() {
		if row.holds(f) {
			lowest = min(lowest, levelOf(f, row.cohort))
		}
	}
	return max(L0, lowest)
}

// listed reports whether a list contains one of the addresses, its domain, or a
// parent domain.
func listed(addresses, list []string) bool {
	return slices.ContainsFunc(addresses, func(addr string) bool {
		domain := addr[strings.LastIndexByte(addr, '@')+1:]
		return slices.ContainsFunc(list, func(on string) bool {
			on = strings.ToLower(on)
			return on != "" && (addr == on || domain == on || strings.HasSuffix(domain, "."+on))
		})
	})
}

func every(all []string, holds func(string) bool) bool {
	return !slices.ContainsFunc(all, func(s string) bool { return !holds(s) })
}

// cohortOf returns the first row that holds.
func cohortOf(f Facts) cohortRow {
	rows := cohorts()
	return rows[slices.IndexFunc(rows, func(r cohortRow) bool { return r.holds(f) })]
}

func (s *state) chooseCohort() {
	row := cohortOf(s.facts)
	s.decision.Cohort = row.cohort
	s.step("cohort", "", string(row.cohort), row.match)
}

func has(f Facts, names ...string) bool {
	return slices.ContainsFunc(f.Signals.Symbols, func(s signal.Symbol) bool { return slices.Contains(names, s.Name) })
}
