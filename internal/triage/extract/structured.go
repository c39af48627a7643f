package extract

import (
	"cmp"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/invitation"
	"github.com/countersign-dev/countersign/internal/mail/message/markup"
	"github.com/countersign-dev/countersign/internal/triage/span"
)

// calendars adds the events and tasks of the calendars in a mail.
func (f *finder) calendars() {
	for _, text := range f.m.Calendars {
		for _, e := range invitation.Events(text, f.zone()) {
			f.event(e)
		}
	}
}

// event adds an event or a task of a calendar.
func (f *finder) event(e invitation.Event) {
	field := func(name, value string) Field { return Field{Name: name, Value: value, Part: Calendar} }
	moment := func(name string, t time.Time) Field {
		if t.IsZero() {
			return Field{Name: name}
		}
		return field(name, span.Date{At: t, WholeDay: e.WholeDay}.Text())
	}
	status := ""
	if e.Cancelled {
		status = Cancelled
	}
	common := []Field{field("zone", e.Zone), field("organizer", e.Organizer), field("location", e.Location), field("method", e.Method), field("sequence", e.Sequence), field("status", status)}
	switch low := strings.ToLower(e.Summary); {
	case e.Task && !e.Due.IsZero():
		f.add(Finding{Kind: Task, At: e.Due, Key: e.UID, Fields: append([]Field{field("summary", e.Summary), moment("due", e.Due)}, common...)})
	case e.Task || e.Start.IsZero():
	case e.Method != "REQUEST" && !e.Cancelled && (planeForm.MatchString(e.Summary) || trainForm.MatchString(e.Summary)):
		mode, form := "flight", planeForm
		if !planeForm.MatchString(e.Summary) {
			mode, form = "train", trainForm
		}
		f.add(Finding{Kind: Travel, At: e.Start, Ends: e.End, Key: e.UID, Fields: []Field{
			field("mode", mode), field("number", form.FindStringSubmatch(e.Summary)[1]), f.reservation(), moment("departure", e.Start), moment("arrival", e.End),
		}})
	case e.Method != "REQUEST" && !e.Cancelled && (strings.HasPrefix(low, "hotel:") || strings.HasPrefix(low, "stay:")):
		_, name, _ := strings.Cut(e.Summary, ":")
		f.add(Finding{Kind: Travel, At: e.Start, Ends: e.End, Key: e.UID, Fields: []Field{
			field("mode", "hotel"), field("to", strings.TrimSpace(name)), f.reservation(), moment("arrival", e.Start), moment("departure", e.End),
		}})
	default:
		f.add(Finding{Kind: Meeting, At: e.Start, Ends: endOr(e.End, e.Start, e.WholeDay), Key: e.UID, Fields: append([]Field{
			field("summary", e.Summary), moment("start", e.Start), moment("end", e.End),
		}, common...)})
	}
}

// data adds the items of schema.org in a mail.
func (f *finder) data() {
	for i := range f.m.Data {
		d := item{&f.m.Data[i], f.zone()}
		if status := strings.ToLower(d.Text("reservationStatus", "orderStatus")); strings.Contains(status, "cancel") {
			continue
		}
		switch {
		case d.Is("Order", "Invoice"):
			f.purchase(d)
		case d.Is("FlightReservation"):
			f.plane(d)
		case d.Is("TrainReservation", "BusReservation"):
			f.train(d)
		case d.Is("LodgingReservation"):
			f.lodging(d)
		case d.Is("EventReservation"):
			f.ticket(d)
		}
	}
}

// item is an item of structured data, with the zone of its times without one.
type item struct {
	*markup.Item
	zone *time.Location
}

// field returns a field of a value in an item.
func (d item) field(name, value string) Field {
	return Field{Name: name, Value: value, Part: Part(d.Format)}
}

// moment returns the field of a time, and the time: zero if it is not valid.
func (d item) moment(name, text string) (Field, time.Time) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, text, d.zone); err == nil && t.Year() >= 1970 && t.Year() <= 2199 {
			return d.field(name, t.Format(time.RFC3339)), t
		}
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, d.zone); err == nil && t.Year() >= 1970 && t.Year() <= 2199 {
		return d.field(name, text), t
	}
	return Field{Name: name}, time.Time{}
}

// purchase adds the receipt of an order or an invoice.
func (f *finder) purchase(d item) {
	price := d.Item.Item("totalPaymentDue")
	if price.Text("price") == "" {
		price = d.Item.Item("priceSpecification")
	}
	sum := cmp.Or(d.Text("price", "total"), price.Text("price", "value"))
	code := currency(cmp.Or(d.Text("priceCurrency"), price.Text("priceCurrency", "currency")))
	number := decimal(sum, false)
	if strings.Count(sum, ".") == 1 && !strings.Contains(sum, ",") {
		number = strings.TrimPrefix(sum, "+") // a point is that of the decimals
	}
	if number == "" || strings.Trim(number, "0123456789.") != "" || len(code) != 3 || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return
	}
	merchant := d.field("merchant", cmp.Or(d.Item.Item("merchant").Text("name"), d.Item.Item("seller").Text("name"), d.Item.Item("provider").Text("name"), d.Text("merchant", "seller")))
	if merchant.Value == "" {
		merchant = f.merchant()
	}
	date, at := d.moment("date", d.Text("orderDate", "paymentDate"))
	f.bought(Finding{Kind: Receipt, At: at, Fields: []Field{
		merchant, d.field("amount", number), d.field("currency", code), date, d.field("order", d.Text("orderNumber", "confirmationNumber")),
	}})
}

func (f *finder) plane(d item) {
	plane := d.Item.Item("reservationFor")
	number, code := plane.Text("flightNumber"), plane.Item("airline").Text("iataCode")
	if !strings.HasPrefix(number, code) {
		number = code + number
	}
	place := func(of string) string { return cmp.Or(plane.Item(of).Text("iataCode"), plane.Item(of).Text("name")) }
	f.journey(d, "flight", number, place("departureAirport"), place("arrivalAirport"))
}

func (f *finder) train(d item) {
	trip := d.Item.Item("reservationFor")
	mode, from, to := "train", trip.Item("departureStation"), trip.Item("arrivalStation")
	if d.Is("BusReservation") {
		mode, from, to = "bus", trip.Item("departureBusStop"), trip.Item("arrivalBusStop")
	}
	f.journey(d, mode, trip.Text("trainNumber", "busNumber"), from.Text("name"), to.Text("name"))
}

// journey adds a reservation from one place to another.
func (f *finder) journey(d item, mode, number, from, to string) {
	trip := d.Item.Item("reservationFor")
	departure, at := d.moment("departure", trip.Text("departureTime"))
	arrival, ends := d.moment("arrival", trip.Text("arrivalTime"))
	if at.IsZero() {
		return
	}
	f.add(Finding{Kind: Travel, At: at, Ends: ends, Fields: []Field{
		d.field("mode", mode), d.field("reservation", d.Text("reservationNumber", "reservationId")), d.field("number", number),
		d.field("from", from), d.field("to", to), departure, arrival,
	}})
}

func (f *finder) lodging(d item) {
	arrival, at := d.moment("arrival", d.Text("checkinTime", "checkinDate"))
	departure, ends := d.moment("departure", d.Text("checkoutTime", "checkoutDate"))
	if at.IsZero() {
		return
	}
	f.add(Finding{Kind: Travel, At: at, Ends: ends, Fields: []Field{
		d.field("mode", "hotel"), d.field("reservation", d.Text("reservationNumber", "reservationId")), d.field("to", d.Item.Item("reservationFor").Text("name")), arrival, departure,
	}})
}

func (f *finder) ticket(d item) {
	event := d.Item.Item("reservationFor")
	start, at := d.moment("start", event.Text("startDate"))
	end, ends := d.moment("end", event.Text("endDate"))
	if at.IsZero() {
		return
	}
	f.add(Finding{Kind: Meeting, At: at, Ends: endOr(ends, at, false), Fields: []Field{
		d.field("summary", event.Text("name")), start, end, d.field("location", event.Item("location").Text("name")), d.field("reservation", d.Text("reservationNumber")),
	}})
}
