package extract

import (
	"regexp"
	"strings"

	"github.com/countersign-dev/countersign/internal/triage/span"
)

var (
	// bought are phrases of a purchase, a payment or an invoice.
	bought = []string{
		"receipt", "your order", "order confirm", "order placed", "thank you for your order", "thanks for your order", "thank you for your purchase", "thanks for your purchase", "we got your order",
		"payment received", "we received your payment", "you sent a payment", "confirms your payment", "payment confirmation", "your invoice", "our invoice", "invoice number", "your booking", "your donation", "order number",
		"ihre bestellung", "bestellbestätigung", "ihren einkauf", "ihre rechnung", "rechnungsnummer", "rechnung re", "abschlagsrechnung", "kassenbon", "quittung", "zahlungsbestätigung", "ihre zahlung", "auftragsbestätigung",
		"votre commande", "votre reçu", "votre achat", "votre facture", "votre paiement", "su pedido", "tu pedido", "su compra", "tu compra", "factura", "recibo", "confirmación de pedido",
		"ricevut", "il tuo ordine", "注文番号", "ご注文", "領収書", "お支払い", "ご購入",
	}
	// offered are phrases of offers and reminders, whose total nobody paid.
	offered = []string{
		"in your cart", "your basket", "complete your order", "warenkorb", "jetzt bestellen", "jetzt kaufen", "votre panier", "tu carrito", "black friday", "price list", "preisliste", "bieten wir ihnen", "unser angebot", "quotation", "pre-order",
		"could not charge", "payment failed", "nicht abgebucht", "you won", "lottery", "beneficiary", "inheritance", "verify your wallet", "chip in", "セール",
	}
	// totals are the labels of the sum that was paid or is due, the best first.
	totals = []string{
		"grand total", "order total", "total paid", "amount paid", "total charged", "amount charged", "amount due", "total due", "total amount", "donation amount", "total price", "total ttc", "total general",
		"gesamtbetrag", "rechnungsbetrag", "gesamtsumme", "zu zahlender betrag", "endbetrag", "gesamt", "zahlbetrag", "montant total", "total à payer", "net à payer", "importe total", "total a pagar", "totale",
		"合計金額", "お支払い金額", "ご請求金額", "ご注文合計", "合計", "summe", "total",
	}
	paidForm   = regexp.MustCompile(`(?i)\b(?:payment of|you paid|wir haben|paiement de|pago de)\s+`)
	numberMark = `(?:\s*(?:number|nummer|no\.?|nr\.?|id|n°|nº|#|de pedido|de commande)\s*)*\s*[:：#]?\s*`
	orderForm  = regexp.MustCompile(`(?i)(?:\border|\bbestellung|\bbestell|\bauftrags?|\brechnungs?|\binvoice|\breceipt|\btransaction|\bcommande|\bfacture|\bpedido|\bfactura|\bbooking|\bconfirmation|注文番号)` + numberMark + `([A-Z0-9][A-Z0-9/_-]{1,24})`)
	// callForm is the telephone number in a fraud about a refund.
	callForm = regexp.MustCompile(`(?i)(?:\bcall|\bcontact|\bhelpdesk|\bhelp ?line|\bsupport)\b[^\n]{0,40}\+?1?[ -]?\(?8\d\d\)?[ -]`)
)

// longBody is the length of a text that is no receipt unless it has a number.
const longBody = 8 << 10

// receipt adds the receipt in the text of a shop.
func (f *finder) receipt() {
	low := strings.TrimSpace(strings.ToLower(f.m.Subject))
	if f.freemail() || strings.HasPrefix(low, "re:") || strings.HasPrefix(low, "aw:") || !f.contains(bought) || f.contains(offered) || callForm.MatchString(f.low) {
		return
	}
	paid, at := f.total()
	if paid.decimal == "" {
		return
	}
	order := f.order()
	if order.Value == "" && (f.bulk() || len(f.m.Body) > longBody) {
		return
	}
	date, _ := f.date(f.first("order date", "payment date", "invoice date", "date", "bestelldatum", "rechnungsdatum", "datum", "date de commande", "fecha", "注文日", "お支払日"))
	found := Finding{Kind: Receipt, At: date.At, Fields: []Field{
		f.merchant(), {Name: "amount", Value: paid.decimal, Part: Body, Span: at}, {Name: "currency", Value: paid.currency, Part: Body, Span: at}, dateField("date", date), order,
	}}
	f.bought(found)
}

// bought adds a receipt, with the day of the mail if it names none.
func (f *finder) bought(found Finding) {
	if found.Get("date") == "" && !f.sent().IsZero() {
		found.At = f.sent()
		found.Fields = append(found.Fields, Field{Name: "date", Value: f.sent().Format("2006-01-02"), Part: Header})
	}
	f.add(found)
}

// merchant is the name of the sender.
func (f *finder) merchant() Field {
	if f.sender.Name != "" {
		return Field{Name: "merchant", Value: f.sender.Name, Part: Header}
	}
	return Field{Name: "merchant", Value: f.domain, Part: Header}
}

// total returns the sum behind the best label, and its place.
func (f *finder) total() (amount, span.Span) {
	for _, label := range totals {
		for _, v := range f.labelled(label) {
			if a, length := amountAt(v.text); length > 0 {
				return a, value{v.text[:length], v.at}.span()
			}
		}
	}
	for _, l := range f.lines {
		if m := paidForm.FindStringIndex(l.text); m != nil {
			if a, length := amountAt(l.text[m[1]:]); length > 0 {
				return a, value{l.text[m[1] : m[1]+length], l.at + m[1]}.span()
			}
		}
	}
	return amount{}, span.Span{}
}

// order returns the number of an order or an invoice: one with a digit.
func (f *finder) order() Field {
	for _, l := range append(slicesOfLabels(f), f.lines...) {
		for _, m := range orderForm.FindAllStringSubmatchIndex(l.text, 3) {
			if v := (value{l.text[m[2]:m[3]], l.at + m[2]}).trim("-_/"); numbered(v.text) {
				return v.field("order")
			}
		}
	}
	for _, m := range orderForm.FindAllStringSubmatch(clip(f.m.Subject, maxLine), 3) {
		if text := strings.Trim(m[1], "-_/"); numbered(text) {
			return Field{Name: "order", Value: text, Part: Subject}
		}
	}
	return Field{}
}

// slicesOfLabels returns lines made of a label and its value on the next line.
func slicesOfLabels(f *finder) (all []line) {
	for i, l := range f.lines[:max(0, len(f.lines)-1)] {
		low := strings.ToLower(strings.TrimSpace(l.text))
		if next := f.lines[i+1]; next.at == l.at+len(l.text)+1 && (low == "order id" || low == "order number" || low == "bestellnummer" || low == "invoice number") {
			all = append(all, line{l.text + " " + next.text, l.at})
		}
	}
	return all
}

// numbered reports whether a text may be a number of an order: it has two digits, and
// is no year alone.
func numbered(text string) bool {
	digits := 0
	for _, r := range text {
		if r >= '0' && r <= '9' {
			digits++
		}
	}
	year := len(text) == 4 && digits == 4 && (strings.HasPrefix(text, "20") || strings.HasPrefix(text, "19"))
	return digits >= 1 && len(text) >= 3 && !year
}
