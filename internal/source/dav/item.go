package dav

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/emersion/go-ical"
	"github.com/emersion/go-vcard"
)

const product = "-//Countersign//dav//EN"

var errTimes = errors.New("dav: invalid times")

// reminderArgs are the arguments of ToolReminder.
type reminderArgs struct {
	Calendar    string `json:"calendar"`
	As          string `json:"as"`
	Summary     string `json:"summary"`
	Start       string `json:"start"`
	End         string `json:"end"`
	Description string `json:"description"`
	Location    string `json:"location"`
	Alarm       *int   `json:"alarm_minutes"`
}

// encode returns an event, or a task that is due at its end, in iCalendar.
func (a reminderArgs) encode(uid string, now time.Time) ([]byte, error) {
	start, wholeDay, err := parseTime(a.Start)
	if err != nil {
		return nil, err
	}
	end, endDay, err := parseTime(a.End)
	if err != nil || wholeDay != endDay || end.Before(start) {
		return nil, errTimes
	}
	name, endName := ical.CompEvent, ical.PropDateTimeEnd
	if a.As == "task" {
		name, endName = ical.CompToDo, ical.PropDue
	}
	c := ical.NewComponent(name)
	c.Props.SetText(ical.PropUID, uid)
	c.Props.SetDateTime(ical.PropDateTimeStamp, now.UTC())
	switch {
	case !wholeDay:
		c.Props.SetDateTime(ical.PropDateTimeStart, start.UTC())
		c.Props.SetDateTime(endName, end.UTC())
	case name == ical.CompEvent:
		c.Props.SetDate(ical.PropDateTimeStart, start)
		c.Props.SetDate(endName, end.AddDate(0, 0, 1)) // the end is exclusive
	case start.Equal(end):
		c.Props.SetDate(endName, end) // a start must be before the time when a task is due
	default:
		c.Props.SetDate(ical.PropDateTimeStart, start)
		c.Props.SetDate(endName, end)
	}
	if !wholeDay && start.Equal(end) {
		if name == ical.CompToDo {
			c.Props.Del(ical.PropDateTimeStart)
		} else {
			c.Props.Del(endName) // an event without an end takes no time
		}
	}
	for prop, text := range map[string]string{ical.PropSummary: a.Summary, ical.PropDescription: a.Description, ical.PropLocation: a.Location} {
		if text != "" {
			c.Props.SetText(prop, text)
		}
	}
	if a.Alarm != nil {
		alarm := ical.NewComponent(ical.CompAlarm)
		alarm.Props.SetText(ical.PropAction, "DISPLAY")
		alarm.Props.SetText(ical.PropDescription, a.Summary)
		trigger := ical.NewProp(ical.PropTrigger)
		trigger.SetDuration(-time.Duration(*a.Alarm) * time.Minute)
		if c.Props.Get(ical.PropDateTimeStart) == nil {
			trigger.Params.Set("RELATED", "END")
		}
		alarm.Props.Set(trigger)
		c.Children = append(c.Children, alarm)
	}
	calendar := ical.NewCalendar()
	calendar.Props.SetText(ical.PropVersion, "2.0")
	calendar.Props.SetText(ical.PropProductID, product)
	calendar.Children = append(calendar.Children, c)
	var text bytes.Buffer
	err = ical.NewEncoder(&text).Encode(calendar)
	return text.Bytes(), err
}

// parseTime parses a time of RFC 3339 or a date.
func parseTime(text string) (at time.Time, wholeDay bool, err error) {
	if at, err = time.Parse(time.DateOnly, text); err == nil {
		return at, true, nil
	}
	at, err = time.Parse(time.RFC3339, text)
	return at, false, err
}

// contactArgs are the arguments of ToolContact.
type contactArgs struct {
	AddressBook   string   `json:"address_book"`
	FormattedName string   `json:"formatted_name"`
	Emails        []string `json:"emails"`
	Phones        []string `json:"phones"`
	Organization  string   `json:"organization"`
	Title         string   `json:"title"`
	Note          string   `json:"note"`
}

// encode returns a vCard of version 3.0, which every CardDAV server takes.
func (a contactArgs) encode(uid string, now time.Time) ([]byte, error) {
	card := vcard.Card{}
	card.SetValue(vcard.FieldVersion, "3.0")
	card.SetValue(vcard.FieldProductID, product)
	card.SetValue(vcard.FieldUID, uid)
	card.SetRevision(now.UTC())
	card.SetValue(vcard.FieldFormattedName, a.FormattedName)
	given, family, _ := cutLast(strings.ReplaceAll(a.FormattedName, ";", " "))
	card.SetName(&vcard.Name{GivenName: given, FamilyName: family})
	for _, address := range a.Emails {
		card.AddValue(vcard.FieldEmail, address)
	}
	for _, number := range a.Phones {
		card.AddValue(vcard.FieldTelephone, number)
	}
	for field, text := range map[string]string{vcard.FieldOrganization: strings.ReplaceAll(a.Organization, ";", " "), vcard.FieldTitle: a.Title, vcard.FieldNote: a.Note} {
		if text != "" {
			card.SetValue(field, text)
		}
	}
	var text bytes.Buffer
	err := vcard.NewEncoder(&text).Encode(card)
	return text.Bytes(), err
}

// cutLast cuts a name before its last word.
func cutLast(name string) (before, last string, found bool) {
	i := strings.LastIndexByte(strings.TrimSpace(name), ' ')
	if i < 0 {
		return name, "", false
	}
	return name[:i], name[i+1:], true
}
