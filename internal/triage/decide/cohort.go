package decide

import (
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// Cohort is whom or what a message is from. It has a level.
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

// Headers are the header fields that count for a cohort.
type Headers struct {
	// From, To and Cc are addresses in lower case.
	From, To, Cc []string
	// ListUnsubscribe says that the field is there.
	ListUnsubscribe bool
}

// HeadersOf returns the header fields of a message that count.
func HeadersOf(m *message.Message) Headers {
	addresses := func(from []message.Address) []string {
		var all []string
		for _, a := range from {
			all = append(all, a.Addr)
		}
		return all
	}
	return Headers{
		From: addresses(m.From), To: addresses(m.To), Cc: addresses(m.Cc),
		ListUnsubscribe: slices.ContainsFunc(m.Fields, func(f message.Field) bool {
			return strings.EqualFold(f.Name, "List-Unsubscribe")
		}),
	}
}

// cohortRow is a row of the table of cohorts.
type cohortRow struct {
	cohort Cohort
	level  Level
	// match says in words what holds decides.
	match string
	holds func(Facts) bool
}

// cohorts returns the table in the order of precedence: the first row that holds
// is the cohort of a message.
func cohorts() []cohortRow {
	return []cohortRow{
		{VIP, L2, "the sender is on the list of VIPs, or the owner answers most of their messages", isVIP},
		{FirstContact, L1, "neither the sender nor the list was seen before, or the sender claims to be of the owner's organisation without an aligned pass", isFirstContact},
		{Newsletters, L5, "it has List-Unsubscribe, or its domain is on the list of newsletters", isNewsletter},
		{Social, L5, "its domain is one of a social network", isSocial},
		{Transactional, L4, "it is a receipt, a delivery, an account notice or a one-time code", isTransactional},
		{IntraOrg, L2, "every participant is of the owner's organisation", isIntraOrg},
		{CrossOrg, L1, "a participant is outside the owner's organisation", isCrossOrg},
		{Default, L2, "nothing else holds; no domain of the owner's organisation is known", func(Facts) bool { return true }},
	}
}

// DefaultLevel returns the level of a cohort whose owner has set none.
func DefaultLevel(c Cohort) Level {
	for _, row := range cohorts() {
		if row.cohort == c {
			return row.level
		}
	}
	return L0
}

// A sender is treated as a VIP from this share of answers on, of at least so many
// messages. Starting values.
const (
	vipReplyRate = 0.6
	vipReceived  = 5
)

func isVIP(f Facts) bool {
	replies := f.Sender.Received >= vipReceived && float64(f.Sender.Replied) >= vipReplyRate*float64(f.Sender.Received)
	return f.Sender.VIP || replies || listed(f.Headers.From, f.Settings.VIP)
}

func isFirstContact(f Facts) bool {
	return !f.Sender.Known() && !f.List.Known() || claimsOwn(f)
}

func isNewsletter(f Facts) bool {
	return f.Headers.ListUnsubscribe || listed(f.Headers.From, f.Settings.Newsletters)
}

func isSocial(f Facts) bool {
	return has(f, signal.Social) || listed(f.Headers.From, f.Settings.Social)
}

// isBulk reports whether a message is one of many alike, whoever sent it.
func isBulk(f Facts) bool { return isNewsletter(f) || isSocial(f) }

func isTransactional(f Facts) bool {
	return f.Signals.SecurityAlert || f.Signals.Code != "" || f.Prediction.Category == classify.Receipts ||
		has(f, signal.Receipt, signal.Shipping, signal.OneTimeCode, signal.SecurityAlert)
}

func isIntraOrg(f Facts) bool {
	return len(f.Settings.Domains) > 0 && len(f.Headers.From) > 0 && !outside(f)
}

func isCrossOrg(f Facts) bool { return len(f.Settings.Domains) > 0 && outside(f) }

// outside reports whether any participant is not of the owner's organisation.
func outside(f Facts) bool {
	own := func(addr string) bool { return isOwn(f, addr) }
	for _, all := range [][]string{f.Headers.From, f.Headers.To, f.Headers.Cc} {
		if !every(all, own) {
			return true
		}
	}
	return false
}

func isOwn(f Facts, addr string) bool {
	return slices.ContainsFunc(f.Settings.Addresses, func(own string) bool { return strings.EqualFold(own, addr) }) ||
		listed([]string{addr}, f.Settings.Domains)
}

// claimsOwn reports whether a message claims to be from the owner's organisation
// and nothing proves it.
func claimsOwn(f Facts) bool {
	return slices.ContainsFunc(f.Headers.From, func(addr string) bool { return isOwn(f, addr) }) && !aligned(f)
}

// aligned reports whether authentication proves the one sender.
func aligned(f Facts) bool {
	a := f.Authentication
	return len(f.Headers.From) == 1 && a.Aligned && a.DMARC != signal.AuthFail
}

// trusted reports whether history speaks for the sender: they or the list were
// seen before, the owner corrected nothing about either, and no authentication
// failed.
func trusted(f Facts) bool {
	a := f.Authentication
	failed := a.DMARC == signal.AuthFail || a.SPF == signal.AuthFail || a.DKIM == signal.AuthFail
	return (f.Sender.Known() || f.List.Known()) && f.Sender.Corrected == 0 && f.List.Corrected == 0 &&
		len(f.Headers.From) == 1 && !failed
}

// listed reports whether one of the addresses, its domain, or a domain above its
// domain is on a list.
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

func (s *state) chooseCohort() {
	for _, row := range cohorts() {
		if row.holds(s.facts) {
			s.decision.Cohort = row.cohort
			s.step("cohort", "", string(row.cohort), row.match)
			return
		}
	}
}

func has(f Facts, names ...string) bool {
	return slices.ContainsFunc(f.Signals.Symbols, func(s signal.Symbol) bool { return slices.Contains(names, s.Name) })
}
