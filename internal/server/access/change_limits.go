package access

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

func (c *comparison) compareLimits() {
	was, is := &c.before.Limits, &c.after.Limits
	if a, b := postgres.OrZero(was.Settings), postgres.OrZero(is.Settings); !same(a, b) {
		c.add(everyTool, loosensTenant(a, b), "the settings of the tenant")
	}
	compare(was.Buckets, is.Buckets, func(b limits.Bucket) string { return b.Name }, func(old, now *limits.Bucket) {
		c.add(everyTool, now != nil && loosensBucket(was.Buckets, old, *now), "bucket "+either(old, now).Name)
	})
	compare(was.QuietHours, is.QuietHours, func(h limits.QuietHours) string { return string(h.Scope) + " " + h.Subject }, func(was, is *limits.QuietHours) {
		// Hours that were there before may have ended later on some days.
		c.add(everyTool, was != nil, of("the quiet hours", either(was, is).Scope))
	})
	compare(c.before.Pauses, c.after.Pauses, func(p wire.Pause) uuid.UUID { return p.ID }, func(was, is *wire.Pause) {
		lifted := is == nil && was.NeedsPolicyWrite
		c.add(pausedTools(either(was, is)), lifted, of("the pause", either(was, is).Scope))
	})
	c.compareEmployees()
}

// pausedTools returns the tools that a pause concerns.
func pausedTools(p wire.Pause) policy.Key {
	key, err := policy.ParseKey(p.Subject)
	switch {
	case p.Scope == pause.Source:
		return policy.Key{Source: p.Subject, Action: "*"}
	case p.Scope == pause.Tool && err == nil:
		return key
	}
	return everyTool
}

// loosensTenant reports whether a change of a tenant's settings allows more.
// Settings without an order count as loosening: the time zone moves calendars,
// and the number format decides which do-not-contact entries match.
func loosensTenant(was, is limits.Tenant) bool {
	more := func(was, is *int, normal int) bool { return above(orDefault(is, normal), orDefault(was, normal)) }
	if was.PlusAddressing && !is.PlusAddressing || more(was.SessionPending, is.SessionPending, limits.DefaultSessionPending) ||
		more(was.SessionMinute, is.SessionMinute, limits.DefaultSessionMinute) {
		return true
	}
	is.PlusAddressing, is.SessionPending, is.SessionMinute = was.PlusAddressing, was.SessionPending, was.SessionMinute
	return !same(was, is)
}

func orDefault(n *int, normal int) int {
	if n == nil {
		return normal
	}
	return *n
}

// above reports whether a bound is higher than another; zero is no bound.
func above(is, was int) bool { return was != 0 && (is == 0 || is > was) }

// loosensBucket reports whether a bucket lets more through than before. A
// proposal chooses its bucket, so that a new bucket loosens unless another one
// lets as much through already.
func loosensBucket(all []limits.Bucket, was *limits.Bucket, is limits.Bucket) bool {
	if was != nil {
		return looserBucket(*was, is)
	}
	return !slices.ContainsFunc(all, func(b limits.Bucket) bool { return !looserBucket(b, is) })
}

// looserBucket reports whether a bucket may let something through that another
// one would hold.
func looserBucket(was, is limits.Bucket) bool {
	return above(is.Concurrency, was.Concurrency) || looserRate(was.Rate, is.Rate) || looserCalendar(was.Calendar, is.Calendar)
}

func looserRate(was, is *limits.Rate) bool {
	switch {
	case was == nil:
		return false
	case is == nil:
		return true
	}
	faster := float64(is.Limit)/is.Per.Seconds() > float64(was.Limit)/was.Per.Seconds()
	return faster || cmp.Or(is.Burst, 1) > cmp.Or(was.Burst, 1)
}

func looserCalendar(was, is *limits.Calendar) bool {
	switch {
	case was == nil:
		return false
	case is == nil:
		return true
	}
	return is.Every != was.Every || is.Timezone != was.Timezone || is.Limit > was.Limit
}

// CompareContacts returns the change between the do-not-contact entries before
// and after a change, each with its end; nil means never.
func CompareContacts(before, after map[contact.Contact]*time.Time) []Change {
	for c, was := range before {
		is, holds := after[c]
		if !holds || is != nil && (was == nil || is.Before(*was)) {
			return []Change{{What: "the do-not-contact list", Tools: everyTool, Loosens: true}}
		}
	}
	return nil
}

// compareEmployees compares the settings of every employee with an entry, and
// those of all others.
func (c *comparison) compareEmployees() {
	was, is := employeesByID(c.before.Limits.Employees), employeesByID(c.after.Limits.Employees)
	var found []envelope.EmployeeID
	for id, e := range was {
		if now, ok := is[id]; !ok || !same(e, now) {
			found = append(found, id)
		}
	}
	for id := range is {
		if _, ok := was[id]; !ok {
			found = append(found, id)
		}
	}
	slices.SortFunc(found, func(a, b envelope.EmployeeID) int { return slices.Compare(a[:], b[:]) })
	for _, id := range found {
		c.add(everyTool, c.loosensEmployee(entryOf(was, id), entryOf(is, id)), of("trust or scopes", "employee "+limits.EmployeeText(id)))
	}
}

func employeesByID(all []limits.Employee) map[envelope.EmployeeID]limits.Employee {
	byID := make(map[envelope.EmployeeID]limits.Employee, len(all))
	for _, e := range all {
		byID[e.ID] = e
	}
	return byID
}

// entryOf returns the entry that applies to an employee: its own, or that of
// all others; nil if there is neither.
func entryOf(all map[envelope.EmployeeID]limits.Employee, id envelope.EmployeeID) *limits.Employee {
	if e, ok := all[id]; ok {
		return &e
	}
	if e, ok := all[envelope.EmployeeID{}]; ok {
		return &e
	}
	return nil
}

// loosensEmployee compares entries; nil is no entry, which restricts nothing.
func (c *comparison) loosensEmployee(was, is *limits.Employee) bool {
	switch {
	case c.rulesLookAt("known") && (was == nil || is == nil || was.ID != is.ID):
		return true
	case was == nil:
		return c.rulesLookAt("trust") || c.rulesLookAt("scopes")
	case is == nil:
		return true
	}
	return is.Trust.Above(was.Trust) || is.Trust != was.Trust && c.rulesLookAt("trust") ||
		len(policy.MissingScopes(was.Scopes, is.Scopes)) > 0 || !same(was.Scopes, is.Scopes) && c.rulesLookAt("scopes")
}
