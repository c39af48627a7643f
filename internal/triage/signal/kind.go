package signal

import (
	"strings"

	"github.com/countersign-dev/countersign/internal/lookalike"
)

// beginning is the length of the beginning of a text, which describes its kind;
// passing mentions come later.
const beginning = 800

// kinds adds symbols for the kind of the message.
func (f *finder) kinds() {
	if f.m.Calendar != "" {
		f.add(Calendar, f.m.Calendar)
	}
	if f.lex.social[f.domain] {
		f.add(Social, f.domain)
	}
	if code, words := f.code(); code != "" {
		f.oneTimeCode = code
		f.add(OneTimeCode, words)
	}
	if f.has(OneTimeCode) {
		return
	}
	begins := func(l list) bool { return f.written.begins(l, len(f.subject)+beginning) }
	if begins(security) && f.aligned() && f.sum(Risk) < suspiciousFrom {
		f.add(SecurityAlert, f.written[security].evidence)
	}
	automatic := f.sum(Bulk) >= 1 || strings.TrimSpace(f.m.Body) == "" || f.machine()
	if begins(receipt) && automatic {
		f.add(Receipt, f.written[receipt].evidence)
	}
	if begins(shipping) && automatic {
		f.add(Shipping, f.written[shipping].evidence)
	}
	if f.has(ListUnsubscribe, UnsubscribeText) && !f.has(Receipt, Shipping, SecurityAlert, Social, Calendar) && f.fields.listPost == "" {
		f.add(Newsletter, f.fields.unsubscribe)
	}
}

// machine reports whether the local part of the sender is one of automated
// mail.
func (f *finder) machine() bool {
	switch local, _, _ := strings.Cut(lookalike.LocalOf(f.from.Addr), "+"); local {
	case "billing", "orders", "order", "receipts", "receipt", "invoice", "invoices", "shipping", "notifications", "notification",
		"notify", "alerts", "alert", "service", "services", "support", "info", "news", "auto-confirm", "shipment-tracking", "tracking",
		"delivery", "payments", "payment", "bestellung", "rechnung", "versand", "facturation", "commande", "pedidos", "hello", "team", "statements", "accounts", "accounting", "reservation", "reservations", "bookings", "commandes", "compta",
		"comptabilite", "buchhaltung", "rechnungen", "bestellungen", "kundenservice", "avisos", "facturacion", "reservas", "store", "shop", "sales":
		return true
	}
	return false
}
