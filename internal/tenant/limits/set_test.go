package limits_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
)

func newEmployee() envelope.EmployeeID { return envelope.EmployeeID(uuid.Must(uuid.NewV7())) }

func TestNilSet(t *testing.T) {
	t.Parallel()
	h := newFixture(t)

	for name, set := range map[string]*limits.Set{"nil": nil, "of a new tenant": h.set()} {
		if _, ok := set.Bucket("email.daily"); ok {
			t.Errorf("%s: it has a bucket that nobody made", name)
		}
		if _, ok := set.Employee(newEmployee()); ok {
			t.Errorf("%s: it has an employee", name)
		}
		if _, ok := set.Paused(newEmployee(), policy.Key{Source: "mail", Action: "send"}, false); ok || set.AnyPause() {
			t.Errorf("%s: something is paused", name)
		}
		if got := set.Quiet(newEmployee(), "default", []contact.Contact{{Kind: contact.Email, Value: "a@b.org"}}, time.Now()); got != nil {
			t.Errorf("%s: Quiet = %v, want none", name, got)
		}
		if set.NeedsRecipients() || set.HasDoNotContact() {
			t.Errorf("%s: it matters whom an envelope goes to", name)
		}
	}
	if got := h.set().BucketNames(); !slices.Equal(got, []string{"default"}) {
		t.Errorf("BucketNames of a new tenant = %q, want default", got)
	}
}

func TestSetBuckets(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.must(func(ctx context.Context, tx pgx.Tx) error {
		for _, name := range []string{"zeta", "alpha", "gone"} {
			if err := limits.PutBucket(ctx, tx, h.tenant, limits.Bucket{Name: name}, "ada"); err != nil {
				return err
			}
		}
		return limits.RetireBucket(ctx, tx, h.tenant, "gone", "ada")
	})
	var goneID int64
	h.as(postgres.Admin(), func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT bucket_id FROM buckets WHERE tenant_id = $1 AND name = 'gone'", h.tenant.String()).Scan(&goneID)
	})

	set := h.set()

	if diff := cmp.Diff([]string{"alpha", "default", "zeta"}, set.BucketNames()); diff != "" {
		t.Errorf("BucketNames (-want +got):\n%s", diff)
	}
	if _, ok := set.Bucket("gone"); ok {
		t.Error("a retired bucket takes new envelopes")
	}
	if id, ok := set.Bucket("alpha"); !ok || set.NameOf(id) != "alpha" {
		t.Errorf("Bucket(alpha) = %d, %t, whose name is %q", id, ok, set.NameOf(id))
	}
	if got := set.NameOf(goneID); got != "gone" {
		t.Errorf("NameOf(a retired one) = %q, want gone", got)
	}
}

func TestSetEmployees(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	known := newEmployee()
	own := limits.Employee{ID: known, Name: "Ana", Trust: policy.TrustHigh, Scopes: []string{"contacts:*"}}
	other := limits.Employee{Trust: policy.TrustLow, Scopes: []string{}}
	h.must(func(ctx context.Context, tx pgx.Tx) error {
		if err := limits.PutEmployee(ctx, tx, h.tenant, own, "ada"); err != nil {
			return err
		}
		return limits.PutEmployee(ctx, tx, h.tenant, other, "ada")
	})

	set := h.set()

	h.must(func(ctx context.Context, tx pgx.Tx) error {
		named, err := limits.Employees(ctx, tx, h.tenant, known)
		if diff := cmp.Diff([]limits.Employee{own}, named); diff != "" {
			t.Errorf("Employees with an id (-want +got):\n%s", diff)
		}
		return err
	})
	for name, tt := range map[string]struct {
		id   envelope.EmployeeID
		want limits.Employee
	}{"known": {known, own}, "unknown": {newEmployee(), other}, "nobody": {envelope.EmployeeID{}, other}} {
		got, ok := set.Employee(tt.id)
		if diff := cmp.Diff(tt.want, got); !ok || diff != "" {
			t.Errorf("%s: %t (-want +got):\n%s", name, ok, diff)
		}
	}
}

func TestSetPauses(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	employee := newEmployee()
	setPause := func(of pause.Target, kill bool) {
		h.must(func(ctx context.Context, tx pgx.Tx) error {
			_, err := pause.Set(ctx, tx, h.tenant, pause.Order{Target: of, Kill: kill, Reason: "because", By: "ada"})
			return err
		})
	}
	send := policy.Key{Source: "mail", Action: "send"}
	setPause(pause.Target{Scope: pause.Tenant}, false)
	setPause(pause.Target{Scope: pause.Bucket, Subject: "default"}, false)
	if h.set().AnyPause() {
		t.Error("AnyPause = true, but only the claim's pauses stand")
	}
	setPause(pause.Target{Scope: pause.Source, Subject: "mail"}, false)

	if p, ok := h.set().Paused(employee, send, false); !ok || p.Scope != pause.Source || p.Kill {
		t.Errorf("Paused = %+v, %t, want that of the source", p, ok)
	}
	if _, ok := h.set().Paused(employee, policy.Key{Source: "other", Action: "send"}, false); ok {
		t.Error("another source is paused too")
	}
	setPause(pause.Target{Scope: pause.Employee, Subject: employee.String()}, true)
	if p, ok := h.set().Paused(employee, send, false); !ok || p.Scope != pause.Employee || !p.Kill || p.Reason != "because" || p.By != "ada" {
		t.Errorf("Paused = %+v, %t, want the kill of the employee", p, ok)
	}
	setPause(pause.Target{Scope: pause.Tool, Subject: "mail:send"}, true)
	if p, ok := h.set().Paused(newEmployee(), send, false); !ok || p.Scope != pause.Tool || !p.Kill {
		t.Errorf("Paused = %+v, %t, want the kill of the tool", p, ok)
	}
	h.must(func(ctx context.Context, tx pgx.Tx) error {
		for _, of := range []pause.Target{{Scope: pause.Tool, Subject: "mail:send"}, {Scope: pause.Source, Subject: "mail"}, {Scope: pause.Employee, Subject: employee.String()}} {
			if err := pause.Lift(ctx, tx, h.tenant, of, "", "ada"); err != nil {
				return err
			}
		}
		return nil
	})
	if h.set().AnyPause() {
		t.Error("AnyPause = true after all was lifted")
	}
}

// nightly returns quiet hours from 20:00 to 08:00 of the next day, UTC.
func nightly(spread int) quiethours.Hours {
	return quiethours.Hours{Timezone: "UTC", Windows: []quiethours.Window{{From: "20:00", Until: "08:00+1"}}, Spread: new(envelope.Duration(time.Duration(spread) * time.Second))}
}

func TestSetQuietHours(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	employee := newEmployee()
	night := time.Date(2026, 3, 3, 22, 0, 0, 0, time.UTC)
	end := time.Date(2026, 3, 4, 8, 0, 0, 0, time.UTC)
	put := func(scope limits.QuietScope, subject string, spread int) {
		h.must(func(ctx context.Context, tx pgx.Tx) error {
			return limits.PutQuietHours(ctx, tx, h.tenant, limits.QuietHours{Scope: scope, Subject: subject, Hours: nightly(spread)}, "ada")
		})
	}
	put(limits.QuietTenant, "", 1)
	put(limits.QuietEmployee, employee.String(), 2)
	put(limits.QuietBucket, "default", 3)
	put(limits.QuietRecipient, "email:Ana@Example.org", 4)
	put(limits.QuietRecipient, "domain:example.net", 5)

	set := h.set()

	if !set.NeedsRecipients() || set.HasDoNotContact() {
		t.Errorf("NeedsRecipients = %t, HasDoNotContact = %t, want true, false", set.NeedsRecipients(), set.HasDoNotContact())
	}
	fact := func(level string, spread int) quiethours.Active {
		return quiethours.Active{Until: end, Level: level, Spread: time.Duration(spread) * time.Second}
	}
	for name, tt := range map[string]struct {
		employee envelope.EmployeeID
		bucket   string
		to       string
		at       time.Time
		want     []quiethours.Active
	}{
		"all of them": {employee, "default", "ana@example.org", night, []quiethours.Active{fact("tenant", 1), fact("employee", 2), fact("bucket", 3), fact("recipient", 4)}},
		"a domain":    {newEmployee(), "other", "bo@mail.example.net", night, []quiethours.Active{fact("tenant", 1), fact("recipient", 5)}},
		"by day":      {employee, "default", "ana@example.org", end, nil},
	} {
		got := set.Quiet(tt.employee, tt.bucket, set.Contacts([]string{tt.to}), tt.at)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
