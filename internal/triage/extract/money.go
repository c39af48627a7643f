package extract

import (
	"regexp"
	"strings"
)

// amount is a sum of money: an exact decimal number and an ISO 4217 code.
type amount struct{ decimal, currency string }

var (
	currencyForm = `(?:US\$|CA\$|C\$|AU\$|A\$|NZ\$|R\$|HK\$|CN¥|[$€£¥￥₹₩₺₴]|(?:USD|EUR|GBP|CHF|JPY|CNY|RMB|INR|SEK|NOK|DKK|PLN|CZK|HUF|CAD|AUD|NZD|BRL|MXN|KRW|TRY|ZAR|SGD|HKD|Euros?|EURO|euros?)\b|円|元|zł|Kč|Fr\.|Rs\.)`
	numberForm   = `\d{1,3}(?:[ \x{a0}\x{202f}.,'’]\d{2,3})+(?:[.,]\d{1,2})?|\d{1,12}(?:[.,]\d{1,2})?`
	amountForm   = regexp.MustCompile(`^(` + currencyForm + `)?[ \x{a0}\x{202f}]?(` + numberForm + `)(?:[.,][–—-]{1,2})?[ \x{a0}\x{202f}]?(` + currencyForm + `)?`)
)

// currencies are the codes of symbols and words.
var currencies = map[string]string{
	"$": "USD", "US$": "USD", "CA$": "CAD", "C$": "CAD", "A$": "AUD", "AU$": "AUD", "NZ$": "NZD", "R$": "BRL", "HK$": "HKD", "€": "EUR", "EURO": "EUR", "EUROS": "EUR",
	"£": "GBP", "¥": "JPY", "￥": "JPY", "円": "JPY", "CN¥": "CNY", "元": "CNY", "RMB": "CNY", "₹": "INR", "RS.": "INR", "₩": "KRW", "₺": "TRY", "₴": "UAH", "ZŁ": "PLN",
	"KČ": "CZK", "FR.": "CHF",
}

func currency(text string) string {
	text = strings.ToUpper(text)
	if code, ok := currencies[text]; ok {
		return code
	}
	return text
}

// amountAt returns the amount at the beginning of a text, and its length. A number
// without a currency is none, nor is one with two that differ.
func amountAt(text string) (a amount, length int) {
	m := amountForm.FindStringSubmatchIndex(text)
	if m == nil {
		return a, 0
	}
	group := func(i int) string {
		if m[2*i] < 0 {
			return ""
		}
		return text[m[2*i]:m[2*i+1]]
	}
	before, after := currency(group(1)), currency(group(3))
	switch {
	case before == "" && after == "":
		return a, 0
	case after == "" || before == after:
		a.currency = before
	case before == "" || before == "USD" && strings.HasSuffix(after, "D"):
		a.currency = after
	default:
		return a, 0
	}
	rest := text[m[5]:]
	if rest != "" && (rest[0] >= '0' && rest[0] <= '9' || len(rest) > 1 && strings.ContainsRune(".,", rune(rest[0])) && rest[1] >= '0' && rest[1] <= '9') {
		return a, 0
	}
	a.decimal = decimal(group(2), a.currency == "INR")
	if a.decimal == "" {
		return a, 0
	}
	return a, m[1]
}

// decimal returns a number with a point before its decimals and no other separator,
// or "" if its groups are not those of a number. Three digits behind the only
// separator are thousands. In India other groups have two digits.
func decimal(text string, pairs bool) string {
	text = strings.NewReplacer(" ", "'", "\u00a0", "'", "\u202f", "'", "’", "'").Replace(text)
	last := strings.LastIndexAny(text, ".,")
	whole, cents := text, ""
	if last >= 0 && len(text)-last-1 <= 2 && !strings.Contains(text[:last], text[last:last+1]) {
		whole, cents = text[:last], text[last+1:]
	}
	groups := strings.FieldsFunc(whole, func(r rune) bool { return strings.ContainsRune(".,'", r) })
	seen := ""
	for _, r := range whole {
		if strings.ContainsRune(".,'", r) && !strings.ContainsRune(seen, r) {
			seen += string(r)
		}
	}
	for _, g := range groups[min(1, len(groups)):] {
		if len(g) != 3 && !pairs {
			return ""
		}
	}
	if len(seen) > 1 || len(groups) == 0 || len(groups) > 1 && len(groups[len(groups)-1]) != 3 {
		return ""
	}
	whole = strings.TrimLeft(strings.Join(groups, ""), "0")
	if whole == "" {
		whole = "0"
	}
	if cents != "" {
		return whole + "." + cents
	}
	return whole
}
