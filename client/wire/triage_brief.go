package wire

import (
	"time"

	"github.com/google/uuid"
)

// TriageBrief is a brief about a mail account: numbers, and with its mail shown,
// senders and subjects. It has no text of a mail's body but the spans in Found and the
// due dates of follow-ups.
type TriageBrief struct {
	Account string `json:"account"`
	// Kind is morning or evening.
	Kind string `json:"kind"`
	// Zone is the IANA name of the zone of its times for people.
	Zone string `json:"zone"`
	// Since and Until are the time that it covers. Late is when it was due, for a brief
	// that was made late.
	Since time.Time  `json:"since"`
	Until time.Time  `json:"until"`
	Late  *time.Time `json:"late,omitempty"`
	// ShowsMail reports whether it has senders, subjects and spans.
	ShowsMail bool `json:"shows_mail"`
	// Total counts the messages that came in, Buckets the same by urgency, most urgent
	// first; the last one, undecided, is left out if it is empty.
	Total   int                `json:"total"`
	Buckets []TriageBriefCount `json:"buckets"`
	// Attention are the messages that need the owner, most urgent first, and those with
	// a question to them. Without mail they are counted alone.
	Attention TriageBriefList[TriageBriefMessage] `json:"attention"`
	// Calendar is the day's calendar, or null for an account without one.
	Calendar *TriageBriefCalendar `json:"calendar"`
	// Owed lists follow-ups of the owner, Awaited those of others.
	Owed    TriageBriefFollowUps `json:"owed"`
	Awaited TriageBriefFollowUps `json:"awaited"`
	// Found lists facts in the mail: receipts, meetings, tasks and travel. Without mail
	// they are counted alone.
	Found TriageBriefFound `json:"found"`
	// Moved counts the messages that left the inbox, by their fate.
	Moved []TriageBriefCount `json:"moved"`
}

// TriageBriefList is the beginning of a list, and the length of the whole one.
type TriageBriefList[T any] struct {
	Total int `json:"total"`
	Items []T `json:"items"`
}

// TriageBriefFollowUps is the beginning of a list of follow-ups.
type TriageBriefFollowUps struct {
	Total int              `json:"total"`
	Items []TriageFollowUp `json:"items"`
	// Overdue counts the follow-ups of the whole list whose due date is over.
	Overdue int `json:"overdue"`
}

// TriageBriefFound is the beginning of a list of facts.
type TriageBriefFound struct {
	Total int               `json:"total"`
	Items []TriageBriefItem `json:"items"`
	// Kinds counts the facts of the whole list by their kind.
	Kinds []TriageBriefCount `json:"kinds"`
}

// TriageBriefCount is a number of messages or facts.
type TriageBriefCount struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// TriageBriefMessage is a message that needs the owner, without its text.
type TriageBriefMessage struct {
	ID         uuid.UUID `json:"message_id"`
	Bucket     string    `json:"bucket"`
	Question   bool      `json:"question"`
	Sender     string    `json:"sender"`
	SenderName string    `json:"sender_name"`
	Subject    string    `json:"subject"`
	ReceivedAt time.Time `json:"received_at"`
}

// TriageBriefItem is a fact in a message: a receipt, a meeting, a task or a journey.
type TriageBriefItem struct {
	// Kind is the kind of it, such as receipt.
	Kind string `json:"kind"`
	// Text is one line of parts of the message, without its sentences.
	Text string `json:"text"`
	// At is its date, or null. WholeDay reports whether it has no time of day.
	At       *time.Time `json:"at"`
	WholeDay bool       `json:"whole_day"`
	// MessageID is the message that it stands in.
	MessageID uuid.UUID `json:"message_id"`
}

// TriageBriefCalendar is a day in a calendar.
type TriageBriefCalendar struct {
	// Source is the source of kind dav that was read. Problem is why it was not, or "".
	Source  string `json:"source"`
	Problem string `json:"problem,omitempty"`
	// Unread counts the events of the coming days that cannot be read.
	Unread int                               `json:"unread,omitempty"`
	Events TriageBriefList[TriageBriefEvent] `json:"events"`
}

// TriageBriefEvent is an event of a calendar. A brief without mail counts events alone.
type TriageBriefEvent struct {
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	WholeDay bool      `json:"whole_day"`
	Summary  string    `json:"summary"`
	Location string    `json:"location,omitempty"`
}

// TriageMeeting prepares the owner of a mail account for a meeting in the calendar, from
// the mail of the account of the last year.
type TriageMeeting struct {
	Account string `json:"account"`
	// Zone is the IANA name of the zone of its times for people.
	Zone string `json:"zone"`
	// ShowsMail reports whether it has the event's text, addresses, senders and subjects.
	ShowsMail bool             `json:"shows_mail"`
	Event     TriageBriefEvent `json:"event"`
	// People are those of the event but the owner, in its order.
	People TriageBriefList[TriageMeetingPerson] `json:"people"`
	// Threads are the threads with them, newest first.
	Threads TriageBriefList[TriageMeetingThread] `json:"threads"`
	// Owed lists the owner's follow-ups in mail with them, Awaited theirs.
	Owed    TriageBriefFollowUps `json:"owed"`
	Awaited TriageBriefFollowUps `json:"awaited"`
}

// TriageMeetingPerson is a person of a meeting, by address.
type TriageMeetingPerson struct {
	Address string `json:"address"`
	// Theirs counts the messages from the address, Mine those of the owner to it.
	Theirs int `json:"theirs"`
	Mine   int `json:"mine"`
	// Last is when the newest one arrived, or null.
	Last *time.Time `json:"last"`
}

// TriageMeetingThread is the newest message of a thread, without its text.
type TriageMeetingThread struct {
	ThreadID   uuid.UUID `json:"thread_id"`
	MessageID  uuid.UUID `json:"message_id"`
	Outgoing   bool      `json:"outgoing"`
	Sender     string    `json:"sender"`
	SenderName string    `json:"sender_name"`
	Subject    string    `json:"subject"`
	ReceivedAt time.Time `json:"received_at"`
}

// TriageFollowUp is something that is owed in a thread, since a message.
type TriageFollowUp struct {
	// MessageID names it: the message that it rests on.
	MessageID uuid.UUID `json:"message_id"`
	ThreadID  uuid.UUID `json:"thread_id"`
	Account   string    `json:"account"`
	// OwedBy is me for a follow-up of the owner, and them for one of others.
	OwedBy string `json:"owed_by"`
	// Because is the speech act of the message (request, propose, meet, commit), or
	// question for a question of the owner.
	Because string `json:"because"`
	// With is the address of the other side, WithName its name.
	With     string    `json:"with"`
	WithName string    `json:"with_name"`
	Subject  string    `json:"subject"`
	Since    time.Time `json:"since"`
	// Due is the first date in the message after it was received, or null. DueText is
	// the part of the message with it, and WholeDay reports whether it has no time.
	Due      *time.Time `json:"due"`
	DueText  string     `json:"due_text,omitempty"`
	WholeDay bool       `json:"whole_day,omitempty"`
	// LaterUntil is the time until which it is put off, or null. DoneAt is when a person
	// closed it, or null.
	LaterUntil *time.Time `json:"later_until"`
	DoneAt     *time.Time `json:"done_at"`
}

// TriageFollowUpChange is the body of a change of a follow-up: exactly one member.
type TriageFollowUpChange struct {
	// Done closes it, or opens it again.
	Done *bool `json:"done,omitempty"`
	// LaterUntil puts it off.
	LaterUntil *time.Time `json:"later_until,omitempty"`
}

// TriageBriefSettings are the settings of the briefs about an account.
type TriageBriefSettings struct {
	// Zone is the IANA name of the owner's zone.
	Zone string `json:"zone"`
	// Morning and Evening are times of day, as 07:30; "" is none.
	Morning string `json:"morning,omitempty"`
	Evening string `json:"evening,omitempty"`
	// ShowMail shows senders and subjects in briefs and alerts.
	ShowMail bool `json:"show_mail,omitempty"`
	// ArchivingCloses closes a follow-up whose message its owner archives or deletes.
	ArchivingCloses bool `json:"archiving_closes,omitempty"`
	// Calendar is the source of kind dav with the calendar; "" is none.
	Calendar string `json:"calendar,omitempty"`
	// Alerts sends urgent mail to the channels at once, at most five messages an hour
	// for each.
	Alerts bool `json:"alerts,omitempty"`
	// Channels are where briefs are sent.
	Channels []TriageBriefChannel `json:"channels,omitempty"`
}

// TriageBriefChannel is where briefs are sent: an address of the owner, or a source of
// kind slack.
type TriageBriefChannel struct {
	// To is one of the account's own addresses.
	To string `json:"to,omitempty"`
	// Source is the source of kind slack, and Channel a channel; without one, the
	// source's webhook.
	Source  string `json:"source,omitempty"`
	Channel string `json:"channel,omitempty"`
}
