package extract

import (
	"regexp"
	"strings"

	"github.com/countersign-dev/countersign/internal/triage/span"
)

var (
	planeForm = regexp.MustCompile(`(?i)\b(?:flight|flug|vol|vuelo|volo)(?:\s+(?:number|nr\.?|no\.?))?\s*[:#]?\s*([A-Z][A-Z0-9]\s?\d{1,4}|[0-9][A-Z]\s?\d{1,4})\b`)
	trainForm = regexp.MustCompile(`(?i)\b(?:train|zug|tren|treno)(?:\s+(?:number|nr\.?|no\.?))?\s*[:#]?\s*([A-Z]{1,4}\s?\d{1,5})\b`)
	routeForm = regexp.MustCompile(`(?i)\b(?:train|zug|tren|bus|flight|flug|vol|vuelo)\s+(?:from|von|de)\s+([^\n,:]{2,40}?)\s+(?:to|nach|à|a)\s+([^\n,:.]{2,40})`)
	airport   = regexp.MustCompile(`\(([A-Z]{3})\)`)
	// reservedForm is the number of a reservation behind its label.
	reservedForm = regexp.MustCompile(`(?i)(?:` + strings.Join(reserved, "|") + `)\s*[:：#]?\s*([A-Z0-9][A-Z0-9-]{3,19})\b`)
)

// reserved are the labels of the number of a reservation.
var reserved = []string{
	"booking reference", "booking number", "booking code", "reservation number", "reservation code", "confirmation number", "confirmation code", "ticket reference", "record locator",
	"buchungscode", "buchungsnummer", "reservierungsnummer", "auftragsnummer", "référence de réservation", "numéro de réservation", "localizador", "número de reserva", "予約番号",
}

// reservation returns the number of a reservation.
func (f *finder) reservation() Field {
	if !f.contains(reserved) {
		return Field{Name: "reservation"}
	}
	lines := f.lines
	for i, l := range lines {
		if m := reservedForm.FindStringSubmatchIndex(l.text); m != nil {
			return value{l.text[m[2]:m[3]], l.at + m[2]}.field("reservation")
		}
		// A label whose value is on the next line.
		if i+1 < len(lines) && len(l.text) < 40 {
			next := strings.TrimSpace(lines[i+1].text)
			if m := reservedForm.FindStringSubmatchIndex(strings.TrimSpace(l.text) + " " + next); m != nil && !strings.Contains(next, " ") {
				return value{lines[i+1].text, lines[i+1].at}.trim(separators).field("reservation")
			}
		}
	}
	if m := reservedForm.FindStringSubmatchIndex(clip(f.m.Subject, maxLine)); m != nil {
		return Field{Name: "reservation", Value: f.m.Subject[m[2]:m[3]], Part: Subject, Span: span.Span{From: m[2], To: m[3]}}
	}
	return Field{Name: "reservation"}
}

// mode returns the means of a journey that a text is about, or "".
func (f *finder) mode() string {
	switch {
	case planeForm.MatchString(f.low) || f.contains([]string{"your flight", "ihr flug", "votre vol", "tu vuelo", "su vuelo"}):
		return "flight"
	case f.first("check-in", "check in", "checkin", "anreise", "チェックイン").text != "":
		return "hotel"
	case trainForm.MatchString(f.low) || f.contains([]string{"your train", "train tickets", "night train", "billete de tren", "ihre fahrkarte", "train from"}):
		return "train"
	case f.contains([]string{"hotel", "hôtel", "ホテル", "auberge"}):
		return "hotel"
	}
	return ""
}

// travel adds the journey or the stay in the text of a booking.
func (f *finder) travel() {
	number := f.reservation()
	if number.Value == "" {
		return
	}
	mode := f.mode()
	if mode == "" || f.freemail() || f.bulk() {
		return
	}
	date := func(labels ...string) span.Date {
		for _, label := range labels {
			for _, v := range f.labelled(label) {
				if d, ok := f.date(v); ok {
					return d
				}
			}
		}
		return span.Date{}
	}
	found := Finding{Kind: Travel, Fields: []Field{{Name: "mode", Value: mode, Part: Body}, number}}
	if mode == "hotel" {
		arrival := date("check-in", "check in", "checkin", "anreise", "arrivée", "arrival", "entrada", "llegada", "チェックイン")
		departure := date("check-out", "check out", "checkout", "abreise", "départ", "departure", "salida", "チェックアウト")
		if arrival.At.IsZero() {
			return
		}
		to := f.merchant()
		to.Name = "to"
		found.At, found.Ends = arrival.At, departure.At
		found.Fields = append(found.Fields, to, dateField("arrival", arrival), dateField("departure", departure))
		f.add(found)
		return
	}
	departure := date("departure", "departs", "departing", "abflug", "abfahrt", "départ", "salida", "partenza", "出発")
	arrival := date("arrival", "arrives", "arriving", "ankunft", "arrivée", "llegada", "arrivo", "到着")
	if departure.At.IsZero() {
		return
	}
	from, to := f.place("from", "von", "de", "origen", "da"), f.place("to", "nach", "à", "destino", "a")
	if from.text == "" {
		from, to = f.route()
	}
	found.At, found.Ends = departure.At, arrival.At
	found.Fields = append(found.Fields, f.number(mode).field("number"), from.field("from"), to.field("to"), dateField("departure", departure), dateField("arrival", arrival))
	f.add(found)
}

// place returns a place behind a label: the code of its airport, or its name.
func (f *finder) place(labels ...string) value {
	for _, label := range labels {
		for _, v := range f.labelled(label) {
			if len(v.text) > 60 {
				continue
			}
			// The separators at its end may be a bracket.
			whole := f.m.Body[v.at:min(len(f.m.Body), v.at+len(v.text)+1)]
			if m := airport.FindStringSubmatchIndex(whole); m != nil {
				return value{whole[m[2]:m[3]], v.at + m[2]}
			}
			return v
		}
	}
	return value{}
}

// route returns the places of a line such as "Train from A to B".
func (f *finder) route() (from, to value) {
	for _, l := range f.lines {
		if m := routeForm.FindStringSubmatchIndex(l.text); m != nil {
			return value{l.text[m[2]:m[3]], l.at + m[2]}, value{l.text[m[4]:m[5]], l.at + m[4]}.trim(" ")
		}
	}
	return value{}, value{}
}

// number returns the number of a plane or a train.
func (f *finder) number(mode string) value {
	form := planeForm
	if mode == "train" {
		form = trainForm
	}
	for i, l := range f.lines {
		if m := form.FindStringSubmatchIndex(l.text); m != nil {
			return value{l.text[m[2]:m[3]], l.at + m[2]}
		}
		if i+1 < len(f.lines) && len(l.text) < 20 {
			next := f.lines[i+1]
			if m := form.FindStringSubmatchIndex(l.text + " " + next.text); m != nil && m[2] > len(l.text) {
				return value{next.text[m[2]-len(l.text)-1 : m[3]-len(l.text)-1], next.at + m[2] - len(l.text) - 1}
			}
		}
	}
	return value{}
}
