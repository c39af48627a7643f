// Package limits owns the settings that limit the calls, their times and their rate:
// buckets, quiet hours, rights of employees, rules of operators about tools, and
// a tenant's own settings. It checks them, stores them with an event of each
// change, reads them, and compiles those of one tenant into a Set for lookups
// without a database. It does not apply them: the preflight checks and the claim
// do.
package limits

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
)

// Set is the compiled settings of one tenant. It is immutable and safe for
// concurrent use; a nil Set is empty.
type Set struct {
	tenant       Tenant
	doNotContact bool
	buckets      map[string]int64
	bucketNames  []string
	names        map[int64]string
	employees    map[envelope.EmployeeID]Employee
	pauses       map[pause.Target]wire.Pause
	quiet        *quietSet
}

// quietSet holds quiet hours by scope and subject.
type quietSet struct {
	tenant     *quiethours.Schedule
	employees  map[envelope.EmployeeID]*quiethours.Schedule
	buckets    map[string]*quiethours.Schedule
	recipients map[contact.Contact]*quiethours.Schedule
}

// Bucket finds an active bucket by its name.
func (s *Set) Bucket(name string) (id int64, ok bool) {
	if s == nil {
		return 0, false
	}
	id, ok = s.buckets[name]
	return id, ok
}

// BucketNames returns the names of the active buckets, sorted. The caller must
// not modify the slice.
func (s *Set) BucketNames() []string {
	if s == nil {
		return nil
	}
	return s.bucketNames
}

// UnknownBucket returns the message for a name without an active bucket: with
// the nearest names, or all.
func (s *Set) UnknownBucket(name string) string {
	if near := fault.Nearest(name, s.BucketNames()); len(near) > 0 {
		return "no such bucket " + strconv.Quote(name) + fault.Suggestion(near)
	}
	return "no such bucket; there are " + strings.Join(s.BucketNames(), ", ")
}

// NameOf returns the name of a bucket, also of a retired one; "" if it does not
// belong to the tenant.
func (s *Set) NameOf(id int64) string {
	if s == nil {
		return ""
	}
	return s.names[id]
}

// Tenant returns the tenant's own settings.
func (s *Set) Tenant() Tenant {
	if s == nil {
		return Tenant{Timezone: "UTC"}
	}
	return s.tenant
}

// Session returns the limits of one session.
func (s *Set) Session() Session {
	if s == nil {
		return Session{}
	}
	t := s.tenant.settled()
	return Session{Pending: *t.SessionPending, Minute: *t.SessionMinute}
}

// Employee returns the entry of an employee, or else the default entry, also for
// the zero id. It returns false if there is neither.
func (s *Set) Employee(id envelope.EmployeeID) (Employee, bool) {
	if s == nil || len(s.employees) == 0 {
		return Employee{}, false
	}
	if e, ok := s.employees[id]; ok {
		return e, true
	}
	e, ok := s.employees[envelope.EmployeeID{}]
	return e, ok
}

// Paused returns the pause of an employee, a source, a tool or an automation that
// covers an envelope: a kill if there is one, else the one with the widest scope.
// Travelling covers only envelopes that no person approved.
func (s *Set) Paused(employee envelope.EmployeeID, key policy.Key, approved bool, automations ...string) (wire.Pause, bool) {
	if !s.AnyPause() {
		return wire.Pause{}, false
	}
	var first wire.Pause
	var found bool
	targets := []pause.Target{{Scope: pause.Source, Subject: key.Source}, {Scope: pause.Employee, Subject: employee.String()}, {Scope: pause.Tool, Subject: key.String()}}
	for _, a := range automations {
		targets = append(targets, pause.Target{Scope: pause.Automation, Subject: a})
	}
	for _, t := range targets {
		p, ok := s.pauses[t]
		if ok && p.Travelling && approved {
			continue
		}
		if ok && p.Kill {
			return p, true
		}
		if ok && !found {
			first, found = p, true
		}
	}
	return first, found
}

// AnyPause reports whether there is a pause of an employee, a source, a tool or an
// automation.
func (s *Set) AnyPause() bool { return s != nil && len(s.pauses) > 0 }

// TriagePause reports whether triage or one of its accounts is paused.
func (s *Set) TriagePause() bool {
	if !s.AnyPause() {
		return false
	}
	for t := range s.pauses {
		if t.Scope == pause.Automation && (t.Subject == pause.Triage || strings.HasPrefix(t.Subject, pause.TriageOf(""))) {
			return true
		}
	}
	return false
}

// Quiet returns a fact for each of the quiet hours that currently cover an
// envelope: those of the tenant, its employee, its bucket and its recipients.
// Spread is the period over which all delayed envelopes are sent; gate.Spread
// computes the delay of one.
func (s *Set) Quiet(employee envelope.EmployeeID, bucket string, to []contact.Contact, now time.Time) []quiethours.Active {
	if s == nil || s.quiet == nil {
		return nil
	}
	var facts []quiethours.Active
	ask := func(level QuietScope, schedule *quiethours.Schedule) {
		if schedule == nil {
			return
		}
		if until, quiet := schedule.QuietUntil(now); quiet {
			facts = append(facts, quiethours.Active{Until: until, Level: string(level), Spread: schedule.Spread()})
		}
	}
	ask(QuietTenant, s.quiet.tenant)
	ask(QuietEmployee, s.quiet.employees[employee])
	ask(QuietBucket, s.quiet.buckets[bucket])
	if len(s.quiet.recipients) > 0 {
		for _, c := range to {
			ask(QuietRecipient, s.quiet.recipients[c])
		}
	}
	return facts
}

// NeedsRecipients reports whether the recipients of an envelope matter: there is
// a do-not-contact list, or a recipient has quiet hours.
func (s *Set) NeedsRecipients() bool {
	return s != nil && (s.doNotContact || s.quiet != nil && len(s.quiet.recipients) > 0)
}

// HasDoNotContact reports whether the tenant's do-not-contact list has an entry.
func (s *Set) HasDoNotContact() bool { return s != nil && s.doNotContact }

// Contacts parses recipients by the tenant's options, and returns all contacts
// that they may represent, without duplicates.
func (s *Set) Contacts(recipients []string) []contact.Contact {
	opts := s.Tenant().ContactOptions()
	if len(recipients) == 1 {
		return contact.Recipients(recipients[0], opts)
	}
	var all []contact.Contact
	seen := make(map[contact.Contact]bool)
	for _, text := range recipients {
		for _, c := range contact.Recipients(text, opts) {
			if !seen[c] {
				seen[c] = true
				all = append(all, c)
			}
		}
	}
	return all
}

// QuietScope is the scope of quiet hours.
type QuietScope string

// The scopes of quiet hours.
const (
	QuietTenant    QuietScope = "tenant"
	QuietEmployee  QuietScope = "employee"
	QuietBucket    QuietScope = "bucket"
	QuietRecipient QuietScope = "recipient"
)

// QuietHours are weekly times at which nothing within a scope is sent.
type QuietHours struct {
	Scope QuietScope `json:"scope"`
	// Subject is the employee's id, the bucket's name, or the recipient as
	// kind:value; empty for the tenant.
	Subject string `json:"subject,omitzero"`
	quiethours.Hours
}

// Validate checks quiet hours. The error is an *envelope.InvalidError.
func (q QuietHours) Validate() error {
	var p check.Problems
	switch q.Scope {
	case QuietTenant:
		if q.Subject != "" {
			p.Add("/subject", envelope.RuleUnknownField, "must be left out: the tenant's quiet hours hold for all of it")
		}
	case QuietEmployee:
		if new(envelope.EmployeeID).UnmarshalText([]byte(q.Subject)) != nil {
			p.Add("/subject", envelope.RuleFormat, "must be the UUID of an employee")
		}
	case QuietBucket:
		if !check.Slug(q.Subject) {
			p.Add("/subject", envelope.RulePattern, "must be the name of a bucket")
		}
	case QuietRecipient:
		if _, err := parseRecipient(q.Subject, contact.Options{}); err != nil {
			p.Add("/subject", envelope.RuleFormat, "must be kind:value, the kind email, domain, phone or handle, such as email:ana@example.org or domain:example.org")
		}
	default:
		p.Add("/scope", envelope.RuleEnum, "must be tenant, employee, bucket or recipient")
	}
	_, err := q.Compile()
	if err := p.Below("", err); err != nil {
		return err
	}
	return p.Err()
}

// Stored returns the quiet hours with the stored forms of the subject and the
// spread.
func (q QuietHours) Stored(t Tenant) QuietHours {
	opts := t.ContactOptions()
	opts.PlusAddressing = false
	switch q.Scope {
	case QuietEmployee:
		q.Subject = strings.ToLower(q.Subject)
	case QuietRecipient:
		if c, err := parseRecipient(q.Subject, opts); err == nil {
			q.Subject = string(c.Kind) + ":" + c.Value
		}
	}
	q.Spread = cmp.Or(q.Spread, new(envelope.Duration(quiethours.DefaultSpread)))
	return q
}

// quietKey returns the key of quiet hours of the tenant: scope and subject.
func (t Tenant) quietKey(q QuietHours) string {
	q = q.Stored(t)
	return strings.TrimSuffix(string(q.Scope)+" "+q.Subject, " ")
}

// parseRecipient parses a recipient in the form kind:value.
func parseRecipient(text string, opts contact.Options) (contact.Contact, error) {
	kind, value, _ := strings.Cut(text, ":")
	return contact.ParseAs(contact.Kind(kind), value, opts)
}
