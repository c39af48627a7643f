package signal

import (
	"strings"
	"unicode/utf8"
)

const (
	// codeAfter is the largest distance between a code and the words for it.
	codeAfter  = 160
	codeBefore = 60
	minCode    = 4
	maxCode    = 8
	// maxPlaces limits the places at which a code is searched.
	maxPlaces = 50
)

// code returns the one-time code of the message, and the words next to it.
func (f *finder) code() (code, words string) {
	if !f.found.has(oneTimeCode) {
		return "", ""
	}
	text := composed(f.subject + "\n\n" + beginningOf(f.m.Text, opening))
	p := codePlace{text: text}
	f.lex.phrases.each(text, oneTimeCode, p.look)
	return p.code, p.words
}

// CodeIn returns the one-time code at the beginning of a text, or "", and the bytes
// that it was read from in the text in Unicode's form NFKC.
func CodeIn(text string) (code string, from, to int) {
	p := codePlace{text: composed(beginningOf(text, opening))}
	loaded().phrases.each(p.text, oneTimeCode, p.look)
	return p.code, p.from, p.to
}

// codePlace finds the code that best fits the words for it.
type codePlace struct {
	text, code, words string
	rank, looked      int
	from, to          int
}

// look ranks the candidates around the words from start to end.
func (p *codePlace) look(start, end int) {
	if p.looked++; p.looked > maxPlaces || excluded(p.text[max(0, start-24):start], p.text[start:end]) {
		return
	}
	from, to := max(0, start-codeBefore), min(len(p.text), end+codeAfter)
	for at := from; at < to; {
		if !codeByte(p.text[at]) || at > 0 && codeByte(p.text[at-1]) || at >= start && at < end {
			at++
			continue
		}
		token, next := candidate(p.text, at)
		if token != "" {
			p.offer(token, at, next, start, end)
		}
		at = max(next, at+1)
	}
}

// offer keeps a candidate if it ranks higher than the best so far.
func (p *codePlace) offer(token string, at, next, start, end int) {
	digits := strings.Trim(token, "0123456789") == ""
	rank := 1
	if digits {
		rank += 2
	}
	direct := at >= end && joined(p.text[end:at])
	alone := alone(p.text, at, next)
	switch {
	case direct:
		rank += 4
	case alone:
		rank += 3
	case at >= end:
		rank++
	}
	hasDigit := strings.ContainsAny(token, "0123456789")
	if !hasDigit && (!direct || strings.TrimSpace(p.text[end:at]) == "") || !digits && !direct && !alone {
		return
	}
	if forbidden(p.text, token, at, next, direct || alone) {
		return
	}
	if rank > p.rank {
		p.rank, p.code, p.words, p.from, p.to = rank, token, p.text[start:end], at, next
	}
}

// candidate parses a code: 4 to 8 digits or capital letters, in one piece, in
// equal groups (123-456, 12 34 56), or after a letter (G-123456).
func candidate(text string, at int) (token string, next int) {
	end := codeEnd(text, at)
	first := text[at:end]
	if len(first) == 1 && first != strings.ToLower(first) && end+1 < len(text) && text[end] == '-' {
		return candidate(text, end+1)
	}
	if whole, next := grouped(text, at, end); whole != "" {
		return whole, next
	}
	if codeForm(first) {
		return first, end
	}
	return "", end
}

func codeEnd(text string, at int) int {
	for at < len(text) && codeByte(text[at]) {
		at++
	}
	return at
}

// grouped parses groups of equal length with the same hyphen or space between
// them. Groups between spaces must be digits, since any words would match.
func grouped(text string, at, end int) (whole string, next int) {
	size := end - at
	if size < 2 || size > 4 || end >= len(text) || text[end] != '-' && text[end] != ' ' {
		return "", end
	}
	separator := text[end]
	whole, next = text[at:end], end
	for next+1 < len(text) && text[next] == separator && len(whole)+size <= maxCode {
		stop := codeEnd(text, next+1)
		group := text[next+1 : stop]
		if len(group) != size || separator == ' ' && !number(group) {
			break
		}
		whole, next = whole+group, stop
	}
	if len(whole) == size || separator == ' ' && !number(whole) || !codeForm(whole) {
		return "", end
	}
	return whole, next
}

// codeForm reports whether a word has the form of a code: digits, or capital
// letters with at least one digit.
func codeForm(word string) bool {
	if len(word) < minCode || len(word) > maxCode {
		return false
	}
	return strings.ToUpper(word) == word && strings.ContainsAny(word, "0123456789") || len(word) >= 6 && strings.ToUpper(word) == word && !number(word)
}

func number(word string) bool { return word != "" && strings.Trim(word, "0123456789") == "" }

func codeByte(c byte) bool { return isASCIILetter(c) || c >= '0' && c <= '9' }

// joined reports whether the text between the words and the code only connects
// them.
func joined(between string) bool {
	words := strings.Fields(strings.Map(func(r rune) rune {
		if strings.ContainsRune(":=-–—>*\"'“”«»([|。：", r) {
			return ' '
		}
		return r
	}, strings.ToLower(between)))
	if len(words) > 3 {
		return false
	}
	for _, w := range words {
		switch w {
		case "is", "ist", "lautet", "est", "es", "è", "le", "el", "il", "code", "below", "number", "this", "für", "for", "of", "the", "pin", "der":
		default:
			return false
		}
	}
	return true
}

// alone reports whether a code is on its own line.
func alone(text string, at, next int) bool {
	before, after := text[max(0, at-codeBefore):at], text[next:min(len(text), next+codeBefore)]
	before = before[strings.LastIndexByte(before, '\n')+1:]
	after, _, _ = strings.Cut(after, "\n")
	rest := before + after
	return strings.Trim(rest, " \t\r*_|>-.:") == ""
}

// forbidden reports whether a candidate is a price, a year, a date, a part of a
// telephone number, or the number of an order.
func forbidden(text, token string, at, next int, certain bool) bool {
	before, after := strings.TrimRight(text[max(0, at-12):at], " \t"), text[next:min(len(text), next+12)]
	last, _ := utf8.DecodeLastRuneInString(before)
	if strings.ContainsRune("$€£¥#+@/.,", last) || strings.HasSuffix(strings.ToLower(before), "usd") || strings.HasSuffix(strings.ToLower(before), "eur") {
		return true
	}
	trimmed := strings.TrimLeft(after, " ")
	for _, unit := range []string{"$", "€", "£", "%", "usd", "eur", "chf", "gbp", "minut", "hour", "day", "stunden", "tage", "heures", "horas", "px", "kb", "mb"} {
		if strings.HasPrefix(strings.ToLower(trimmed), unit) {
			return true
		}
	}
	if len(after) > 1 && strings.ContainsRune(".,:/-@", rune(after[0])) && codeByte(after[1]) {
		return true
	}
	if number(token) && (strings.HasSuffix(before, ")") || telephone(before, trimmed)) {
		return true
	}
	if len(token) == 4 && number(token) && (strings.HasPrefix(token, "19") || strings.HasPrefix(token, "20")) && !certain {
		return true
	}
	return ordered(text[max(0, at-40):at])
}

// telephone reports whether digits continue before or after a number.
func telephone(before, after string) bool {
	digit := func(c byte) bool { return c >= '0' && c <= '9' }
	trimmed := strings.TrimRight(before, "-. ")
	return trimmed != "" && digit(trimmed[len(trimmed)-1]) || after != "" && (digit(after[0]) || len(after) > 1 && after[0] == '-' && digit(after[1]))
}

// ordered reports whether the words before a number make it that of an order,
// an invoice or a place.
func ordered(before string) bool {
	words := strings.Fields(plainWords(before))
	for _, w := range words[max(0, len(words)-3):] {
		switch w {
		case "order", "invoice", "ticket", "case", "reference", "ref", "bestellung", "bestellnummer", "rechnung", "rechnungsnummer",
			"kundennummer", "auftrag", "commande", "facture", "pedido", "factura", "booking", "tracking", "tel", "phone", "telefon", "call",
			"fax", "zip", "suite", "plz", "ending", "copyright", "room", "flight", "id":
			return true
		}
	}
	return false
}

// excluded reports whether a code is of another kind: a promotion, a postal
// code, a source code.
func excluded(before, words string) bool {
	last := strings.Fields(plainWords(before))
	all := strings.Fields(plainWords(words))
	if len(last) > 0 {
		all = append(all, last[len(last)-1])
	}
	for _, w := range all {
		switch w {
		case "promo", "promotion", "promotional", "discount", "coupon", "voucher", "gift", "referral", "zip", "postal", "area", "country",
			"source", "qr", "bar", "dress", "error", "status", "exit", "product", "booking", "invite", "rabatt", "gutschein", "tracking", "swift", "sort":
			return true
		}
	}
	return false
}
