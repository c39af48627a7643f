package signal

import "strings"

// kinds says what the message is.
func (f *finder) kinds() {
	if f.m.Calendar != "" {
		f.add(Calendar, f.m.Calendar)
	}
	if f.lex.social[f.domain] {
		f.add(Social, f.domain)
	}
	if f.found.has(unsubscribe) {
		f.add(UnsubscribeText, f.found[unsubscribe].evidence)
	}
	if code, near := f.code(); code != "" {
		f.oneTimeCode = code
		f.add(OneTimeCode, near)
	}
	if f.has(OneTimeCode) {
		return
	}
	begin := f.phrasesOf(f.m.Subject + "\n\n" + beginning(f.m.Body))
	if begin.has(security) && f.aligned() && f.sum(Risk) < suspiciousFrom {
		f.add(SecurityAlert, begin[security].evidence)
	}
	automatic := f.sum(Bulk) >= 1 || strings.TrimSpace(f.m.Body) == "" || f.machine()
	if begin.has(receipt) && automatic {
		f.add(Receipt, begin[receipt].evidence)
	}
	if begin.has(shipping) && automatic {
		f.add(Shipping, begin[shipping].evidence)
	}
	if f.has(ListUnsubscribe, UnsubscribeText) && !f.has(Receipt, Shipping, SecurityAlert, Social, Calendar) && f.fields.listPost == "" {
		f.add(Newsletter, f.fields.unsubscribe)
	}
}

// machine reports whether the local part of the sender is one that programs
// write from.
func (f *finder) machine() bool {
	switch local, _, _ := strings.Cut(localOf(f.from.Addr), "+"); local {
	case "billing", "orders", "order", "receipts", "receipt", "invoice", "invoices", "shipping", "notifications", "notification",
		"notify", "alerts", "alert", "service", "services", "support", "info", "news", "auto-confirm", "shipment-tracking", "tracking",
		"delivery", "payments", "payment", "bestellung", "rechnung", "versand", "facturation", "commande", "pedidos", "hello", "team", "store", "shop", "sales":
		return true
	}
	return false
}

// beginning returns the first lines of a text: what a message is stands there,
// and what it mentions stands further down.
func beginning(text string) string {
	const length = 800
	if len(text) <= length {
		return text
	}
	return text[:length]
}
