package wire

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
)

// Bucket is a limit that actions share. Nil is no limit.
type Bucket struct {
	Name     string    `json:"name,omitzero"`
	Rate     *Rate     `json:"rate,omitempty"`
	Calendar *Calendar `json:"calendar,omitempty"`
	// Concurrency bounds the open calls; nil is any number. The server rejects
	// zero, which would stop the bucket; use a pause for that.
	Concurrency *int `json:"concurrency,omitempty"`
}

// Rate is a number of actions per interval, evenly spaced.
type Rate struct {
	Limit int               `json:"limit"`
	Per   envelope.Duration `json:"per"`
	// Burst is the number of calls that may be made together after an idle time;
	// zero means 1.
	Burst int `json:"burst,omitzero"`
}

// Calendar is a number of actions in each hour, day, week or month on the wall clock,
// which starts at the hour, at midnight, on Monday, or on the first.
type Calendar struct {
	Limit int `json:"limit"`
	// Every is hour, day, week or month.
	Every string `json:"every"`
	// Timezone is an IANA name; empty is the tenant's.
	Timezone string `json:"timezone,omitzero"`
}

// BucketState is a bucket, and how much of its limits is used.
type BucketState struct {
	Bucket
	BucketUse

	ETag string `json:"etag,omitzero"`
}

// BucketUse is the current use of a bucket's limits.
type BucketUse struct {
	// RetiredAt is the time since which new actions are rejected.
	RetiredAt *time.Time `json:"retired_at"`
	// Permits is the number of actions that may run now; nil without a rate or a
	// calendar.
	Permits *int64 `json:"permits"`
	// CalendarUsed is the number of actions in this period; nil without a
	// calendar.
	CalendarUsed *int64 `json:"calendar_used"`
	// InUse is the number of open calls, counted only under a limit.
	InUse int64 `json:"in_use"`
	// OpensAt is the time of the next permit; nil for now.
	OpensAt *time.Time `json:"opens_at"`
	// ClosedUntil is the end of a closure, by the answer of a provider or by a
	// person, and ClosedBy the reason in one word.
	ClosedUntil *time.Time `json:"closed_until"`
	ClosedBy    string     `json:"closed_by,omitzero"`
	// Paused reports whether the bucket, the tenant or everything is paused.
	Paused bool `json:"paused"`
	// Due and Waiting count actions, up to 100,000.
	Due     int64 `json:"due"`
	Waiting int64 `json:"waiting"`
}

// QuietHours are weekly windows in which nothing of a scope is sent.
type QuietHours struct {
	// Scope is tenant, employee, bucket or recipient.
	Scope string `json:"scope,omitzero"`
	// Subject is the employee's id, the bucket's name, or the recipient as
	// kind:value; empty for the tenant.
	Subject string `json:"subject,omitzero"`
	// Timezone is an IANA name such as Europe/Berlin.
	Timezone string   `json:"timezone"`
	Windows  []Window `json:"windows"`
	// Spread is the time after the end over which the waiting actions are sent;
	// nil is five minutes.
	Spread *envelope.Duration `json:"spread,omitempty"`
	ETag   string             `json:"etag,omitzero"`
}

// Window is a window of quiet hours.
type Window struct {
	// Days are those on which the window begins: mon to sun. None is every day.
	Days []string `json:"days,omitempty"`
	// From is the start of the window, HH:MM on the wall clock.
	From string `json:"from"`
	// Until is the end of the window: HH:MM on the same day, 24:00 for the day's
	// end, or HH:MM+1 on the next day. A window is at most 24 hours long.
	Until string `json:"until"`
}

// QuietPreview is the effect of quiet hours over two weeks.
type QuietPreview struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// Intervals are the quiet times, in order, on the clock of the zone.
	Intervals []QuietInterval `json:"intervals"`
	// ClockChanges are the changes between winter and summer time.
	ClockChanges []ClockChange `json:"clock_changes"`
	// Waiting is the number of scheduled actions in the intervals, up to 10,000;
	// nil unless the scope is the tenant or a bucket.
	Waiting *int64 `json:"waiting"`
}

// QuietInterval is a time in which nothing is sent.
type QuietInterval struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
}

// ClockChange is a change of a zone's offset from UTC.
type ClockChange struct {
	// At is the instant of the change, with the new offset.
	At time.Time `json:"at"`
	// BySeconds is positive if the clock skips time, and negative if it repeats
	// it.
	BySeconds int64 `json:"by_seconds"`
}

// Contact is an entry of the do-not-contact list.
type Contact struct {
	// Kind is email, domain, phone or handle; the server recognises an empty
	// one.
	Kind   string `json:"kind,omitzero"`
	Value  string `json:"value"`
	Reason string `json:"reason,omitzero"`
	Source string `json:"source,omitzero"`
	// ExpiresAt is the end of the entry; nil is never.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	// CreatedAt and CreatedBy are not sent.
	CreatedAt time.Time      `json:"created_at,omitzero"`
	CreatedBy envelope.Actor `json:"created_by,omitzero"`
}

// Contacts are entries to add or remove.
type Contacts struct {
	Entries []Contact `json:"entries"`
	// Note is the reason of a removal, for the audit log.
	Note string `json:"note,omitzero"`
}

// ContactText is a recipient to look up in the do-not-contact list.
type ContactText struct {
	Value string `json:"value"`
}

// ContactCheck is the result of a lookup in the do-not-contact list.
type ContactCheck struct {
	// Listed reports whether an action with the recipient would be skipped.
	Listed bool `json:"listed"`
	// Readings are the contacts that the text may mean, in normal form.
	Readings []ContactReading `json:"readings"`
}

// ContactReading is a contact in normal form.
type ContactReading struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
	// Listed reports whether an active entry matches, and Reason is the reason of
	// the entry.
	Listed bool   `json:"listed"`
	Reason string `json:"reason,omitzero"`
}

// ContactCount counts the effects of a change of the do-not-contact list.
type ContactCount struct {
	Added   int `json:"added"`
	Changed int `json:"changed"`
	Removed int `json:"removed"`
}

// Employee is the identity that agents act for.
type Employee struct {
	// ID is a UUID, or default for all without an entry.
	ID   string `json:"employee_id,omitzero"`
	Name string `json:"name,omitzero"`
	// Trust is the highest risk that runs without a person: none, low, medium
	// or high.
	Trust string `json:"trust"`
	// Scopes are the employee's, such as contacts:*.
	Scopes []string `json:"scopes,omitempty"`
	ETag   string   `json:"etag,omitzero"`
}

// Target is the subject of a pause.
type Target struct {
	// Scope is everything, tenant, employee, source, bucket, tool or automation.
	Scope string `json:"scope"`
	// Subject is the employee's id, the source's id, the bucket's name,
	// source:tool, or the automation: triage, triage/account, or an
	// automation_id; empty for everything and the tenant.
	Subject string `json:"subject,omitzero"`
}

// PauseInput pauses or kills a target, or sets an automation travelling.
type PauseInput struct {
	Target

	Kill       bool   `json:"kill"`
	Travelling bool   `json:"travelling,omitzero"`
	Reason     string `json:"reason"`
}

// PauseForecast counts the actions of a target: a pause holds the pending and the
// undecided ones, a kill ends them, and those in flight go on.
type PauseForecast struct {
	// Pending counts actions that wait and that no worker has, Undecided those
	// that wait for people, and InFlight those that a worker has.
	Pending   int64 `json:"pending"`
	Undecided int64 `json:"undecided"`
	InFlight  int64 `json:"in_flight"`
	// AtLeast reports whether the numbers may be higher, because not all actions
	// were read.
	AtLeast bool `json:"at_least"`
}

// Pause is a target that is, or was, paused. While it is, nothing that it covers
// is sent.
type Pause struct {
	ID uuid.UUID `json:"pause_id"`
	Target

	// Kill also ends pending actions.
	Kill bool `json:"kill"`
	// Travelling holds only actions that no person approved.
	Travelling bool `json:"travelling"`
	// Reason and By are those of the pause or, if it became one, of the kill.
	Reason string         `json:"reason"`
	By     envelope.Actor `json:"by"`
	At     time.Time      `json:"at"`
	// KilledAt bounds a kill: it ends actions proposed before. Cancelled counts
	// them, and SweptAt is the time at which that was complete.
	KilledAt  *time.Time `json:"killed_at"`
	Cancelled int        `json:"cancelled"`
	SweptAt   *time.Time `json:"swept_at"`
	// LiftedAt is its end, and WokenAt the time at which waiting actions were due
	// again.
	LiftedAt *time.Time     `json:"lifted_at"`
	LiftedBy envelope.Actor `json:"lifted_by,omitzero"`
	WokenAt  *time.Time     `json:"woken_at"`
	// NeedsPolicyWrite reports whether lifting it needs policy:write.
	NeedsPolicyWrite bool `json:"needs_policy_write"`
}

// Breaker is the state of a source's circuit breaker.
type Breaker struct {
	Source string `json:"source"`
	// State is closed, open or half_open.
	State     string    `json:"state"`
	Cause     string    `json:"cause"`
	Since     time.Time `json:"since"`
	OpenUntil time.Time `json:"open_until"`
	Openings  int       `json:"openings"`
	Worker    string    `json:"worker"`
}

// Settings are the settings of a whole tenant.
type Settings struct {
	// Timezone is an IANA name. Calendar buckets without a zone of their own begin
	// at its midnight.
	Timezone string `json:"timezone"`
	// PhoneRegion is the country, in two letters, whose phone numbers are written
	// without a country code; empty for none.
	PhoneRegion string `json:"phone_region"`
	// PlusAddressing takes ana+news@ for ana@ on the do-not-contact list.
	PlusAddressing bool `json:"plus_addressing"`
	// SessionPending bounds the pending actions of a session, and SessionMinute
	// those that it may propose in a minute that begins with the first; zero is
	// any number, nil the default.
	SessionPending *int `json:"session_pending_max,omitempty"`
	SessionMinute  *int `json:"session_minute_max,omitempty"`
	// ETag identifies the settings as they were read, for a change that is based
	// on them. It is from the header of the answer.
	ETag string `json:"-"`
}

// The kinds of setting changes.
const (
	ChangeAdded     = "added"
	ChangeChanged   = "changed"
	ChangeRemoved   = "removed"
	ChangeUnchanged = "unchanged"
)

// SettingChange is the difference that a document makes to one setting.
type SettingChange struct {
	// Kind is added, changed, removed or unchanged.
	Kind    string `json:"change"`
	Section string `json:"section"`
	// Name is the setting within the section.
	Name string `json:"name,omitzero"`
	// Was and Is are the setting before and after, or nil.
	Was json.RawMessage `json:"was,omitempty"`
	Is  json.RawMessage `json:"is,omitempty"`
}

// SettingChanges are the differences that a document makes.
type SettingChanges struct {
	DryRun  bool            `json:"dry_run"`
	Changes []SettingChange `json:"changes"`
	// ETag is the document's, from the header of the answer.
	ETag string `json:"-"`
}

// Retention is the retention of one kind of data.
type Retention struct {
	// Kind is actions or events.
	Kind string `json:"kind,omitzero"`
	// Period is a number of days.
	Period envelope.Duration `json:"period"`
	// Action is delete or report.
	Action string `json:"action"`
	// Older counts the older entries found by the last daily check, up to
	// 10,000; CheckedAt is its time, or nil.
	Older     int64      `json:"older,omitzero"`
	CheckedAt *time.Time `json:"checked_at,omitempty"`
	// Note is the reason, in a request.
	Note string `json:"note,omitzero"`
	ETag string `json:"etag,omitzero"`
}

// AgentNote is a text that an agent kept with the tool notes.
type AgentNote struct {
	ID uuid.UUID `json:"note_id"`
	// Source is the source whose tool was called.
	Source string `json:"source"`
	// Key is the idempotency key of the call, the same for every attempt of an
	// action. The action has the note's id as its provider_id.
	Key       string    `json:"key"`
	Text      string    `json:"text"`
	CreatedAt time.Time `json:"created_at"`
}
