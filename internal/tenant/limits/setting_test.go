package limits_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/document"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/quiethours"
)

// fullDocument returns a document with every kind of setting.
func fullDocument() limits.Document {
	return limits.Document{
		Settings: &limits.Tenant{Timezone: "Europe/Berlin", PhoneRegion: "DE", PlusAddressing: true, SessionPending: some(25), SessionMinute: some(0)},
		Buckets: []limits.Bucket{
			{Name: "default", Concurrency: 9},
			{Name: "email.daily", Calendar: &limits.Calendar{Limit: 500, Every: limits.PeriodDay}, Rate: perMinute(30, 5)},
		},
		QuietHours: []limits.QuietHours{
			{Scope: limits.QuietBucket, Subject: "email.daily", Hours: nightly(60)},
			{Scope: limits.QuietRecipient, Subject: "phone:+4930123456", Hours: nightly(60)},
			{Scope: limits.QuietTenant, Hours: nightly(300)},
		},
		Employees: []limits.Employee{{Trust: policy.TrustLow, Scopes: []string{}}, {ID: employeeA(), Name: "Ana", Trust: policy.TrustHigh, Scopes: []string{"contacts:*"}}},
		Tools:     []limits.ToolRule{{Source: "mail", Name: "send", Recipients: some([]string{"/to/*"}), Scopes: []string{"mail:send"}, Retry: wire.Retry{MaxAttempts: 3, Base: envelope.Duration(2 * time.Second), Cap: envelope.Duration(time.Minute), Jitter: some(0.2)}}},
	}
}

func employeeA() envelope.EmployeeID {
	var id envelope.EmployeeID
	_ = id.UnmarshalText([]byte("019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b"))
	return id
}

func (h fixture) apply(doc limits.Document, dry bool) []string {
	h.t.Helper()
	var changes []document.Change
	h.must(func(ctx context.Context, tx pgx.Tx) (err error) {
		changes, err = limits.Apply(ctx, tx, h.tenant, doc, "ada", dry)
		return err
	})
	all := []string{}
	for _, c := range changes {
		all = append(all, strings.TrimSpace(string(c.Kind)+" "+c.Section+" "+c.Name))
	}
	return all
}

func TestDocumentIsAppliedAtomically(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	empty := h.document()
	doc := fullDocument()

	planned := h.apply(doc, true)
	if diff := cmp.Diff(empty, h.document()); diff != "" || len(h.events()) > 0 {
		t.Errorf("a dry run changed something (-before +after):\n%s", diff)
	}
	done := h.apply(doc, false)

	want := []string{
		"changed buckets default", "added buckets email.daily", "added employees 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b", "added employees default",
		"added quiet_hours bucket email.daily", "added quiet_hours recipient phone:+4930123456", "added quiet_hours tenant", "changed settings", "added tools mail:send",
	}
	if diff := cmp.Diff(want, planned); diff != "" {
		t.Errorf("planned (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(planned, done); diff != "" {
		t.Errorf("done is not planned (-planned +done):\n%s", diff)
	}
	if diff := cmp.Diff(doc, h.document()); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
	if got := len(h.events()); got != len(want) {
		t.Errorf("%d events, want one of each change", got)
	}
	for _, line := range h.apply(h.document(), false) {
		if !strings.HasPrefix(line, "unchanged ") {
			t.Errorf("what was read, put back, is %q", line)
		}
	}
	if got := len(h.events()); got != len(want) {
		t.Error("an event was written for what changed nothing")
	}
}

func TestDocumentKeepsAndRemovesEntries(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.apply(fullDocument(), false)

	if got := h.apply(limits.Document{}, false); len(got) > 0 {
		t.Errorf("an empty document is %q", got)
	}
	got := h.apply(limits.Document{Buckets: []limits.Bucket{}, QuietHours: []limits.QuietHours{}, Employees: []limits.Employee{}, Tools: []limits.ToolRule{}}, false)

	want := []string{
		"changed buckets default", "removed buckets email.daily", "removed employees 019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b", "removed employees default",
		"removed quiet_hours bucket email.daily", "removed quiet_hours recipient phone:+4930123456", "removed quiet_hours tenant", "removed tools mail:send",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("emptied (-want +got):\n%s", diff)
	}
	doc := h.document()
	if len(doc.Buckets) != 1 || doc.Settings.Timezone != "Europe/Berlin" || len(doc.Tools) > 0 {
		t.Errorf("what is left: %+v", doc)
	}
}

func TestMissingSettingsAreDefaults(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.apply(fullDocument(), false)

	if got := h.apply(limits.Document{Settings: &limits.Tenant{Timezone: "UTC"}}, false); len(got) != 1 || got[0] != "changed settings" {
		t.Errorf("changes = %q, want that of the settings", got)
	}

	want := limits.Tenant{Timezone: "UTC", SessionPending: some(limits.DefaultSessionPending), SessionMinute: some(limits.DefaultSessionMinute)}
	if diff := cmp.Diff(want, *h.document().Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestInvalidSettingsChangeNothing(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	h.apply(fullDocument(), false)
	before, events := h.document(), len(h.events())
	long := strings.Repeat("x", 501)
	employee := employeeA().String()
	put := func(b limits.Bucket) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error { return limits.PutBucket(ctx, tx, h.tenant, b, "ada") }
	}
	quiet := func(scope limits.QuietScope, subject string, q quiethours.Hours) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			return limits.PutQuietHours(ctx, tx, h.tenant, limits.QuietHours{Scope: scope, Subject: subject, Hours: q}, "ada")
		}
	}
	setPause := func(scope string, subject, reason string) func(context.Context, pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			_, err := pause.Set(ctx, tx, h.tenant, pause.Order{Target: pause.Target{Scope: scope, Subject: subject}, Reason: reason, By: "ada"})
			return err
		}
	}
	rule := func(r limits.ToolRule) func(context.Context, pgx.Tx) error {
		r.Source, r.Name = "mail", "send"
		return func(ctx context.Context, tx pgx.Tx) error { return limits.PutToolRule(ctx, tx, h.tenant, r, "ada") }
	}
	hour := envelope.Duration(time.Hour)

	for name, tt := range map[string]struct {
		do   func(context.Context, pgx.Tx) error
		want []string
	}{
		"bucket's name":       {put(limits.Bucket{Name: "Email Daily"}), []string{"/name"}},
		"a rate of zero":      {put(limits.Bucket{Name: "b", Rate: &limits.Rate{Per: hour}}), []string{"/rate/limit"}},
		"a rate below":        {put(limits.Bucket{Name: "b", Rate: &limits.Rate{Limit: -1, Per: hour}}), []string{"/rate/limit"}},
		"a rate above":        {put(limits.Bucket{Name: "b", Rate: &limits.Rate{Limit: 1_000_001, Per: 24 * hour}}), []string{"/rate/limit"}},
		"no interval":         {put(limits.Bucket{Name: "b", Rate: &limits.Rate{Limit: 1}}), []string{"/rate/per"}},
		"a long interval":     {put(limits.Bucket{Name: "b", Rate: &limits.Rate{Limit: 1, Per: 367 * 24 * hour}}), []string{"/rate/per"}},
		"a short interval":    {put(limits.Bucket{Name: "b", Rate: &limits.Rate{Limit: 1, Per: 1000}}), []string{"/rate/per"}},
		"too fast":            {put(limits.Bucket{Name: "b", Rate: &limits.Rate{Limit: 1000, Per: envelope.Duration(time.Millisecond)}}), []string{"/rate"}},
		"a burst above":       {put(limits.Bucket{Name: "b", Rate: &limits.Rate{Limit: 1, Per: hour, Burst: 2}}), []string{"/rate/burst"}},
		"a burst below":       {put(limits.Bucket{Name: "b", Rate: &limits.Rate{Limit: 1, Per: hour, Burst: -2}}), []string{"/rate/burst"}},
		"a calendar of zero":  {put(limits.Bucket{Name: "b", Calendar: &limits.Calendar{Every: limits.PeriodDay}}), []string{"/calendar/limit"}},
		"a calendar of years": {put(limits.Bucket{Name: "b", Calendar: &limits.Calendar{Limit: 1, Every: "year"}}), []string{"/calendar/every"}},
		"an unknown zone":     {put(limits.Bucket{Name: "b", Calendar: &limits.Calendar{Limit: 1, Every: limits.PeriodDay, Timezone: "Mars/Base"}}), []string{"/calendar/timezone"}},
		"a local zone":        {put(limits.Bucket{Name: "b", Calendar: &limits.Calendar{Limit: 1, Every: limits.PeriodDay, Timezone: "Local"}}), []string{"/calendar/timezone"}},
		"at once":             {put(limits.Bucket{Name: "b", Concurrency: -1}), []string{"/concurrency"}},
		"several":             {put(limits.Bucket{Name: "b", Concurrency: 100_001, Rate: &limits.Rate{}}), []string{"/rate/limit", "/rate/per", "/concurrency"}},

		"a scope that is none":      {quiet("week", "", nightly(1)), []string{"/scope"}},
		"the tenant with a subject": {quiet(limits.QuietTenant, "x", nightly(1)), []string{"/subject"}},
		"an employee that is none":  {quiet(limits.QuietEmployee, "Ana", nightly(1)), []string{"/subject"}},
		"nobody's quiet hours":      {quiet(limits.QuietEmployee, "", nightly(1)), []string{"/subject"}},
		"a bucket that is none":     {quiet(limits.QuietBucket, "none", nightly(1)), []string{"/subject"}},
		"a recipient without kind":  {quiet(limits.QuietRecipient, "ana@example.org", nightly(1)), []string{"/subject"}},
		"a recipient that is none":  {quiet(limits.QuietRecipient, "email:ana", nightly(1)), []string{"/subject"}},
		"a zone of quiet hours":     {quiet(limits.QuietTenant, "", quiethours.Hours{Timezone: "x", Windows: nightly(1).Windows}), []string{"/timezone"}},
		"no window":                 {quiet(limits.QuietTenant, "", quiethours.Hours{Timezone: "UTC"}), []string{"/windows"}},
		"ends before it starts":     {quiet(limits.QuietTenant, "", quiethours.Hours{Timezone: "UTC", Windows: []quiethours.Window{{From: "20:00", Until: "08:00"}}}), []string{"/windows/0/until"}},
		"no day":                    {quiet(limits.QuietTenant, "", quiethours.Hours{Timezone: "UTC", Windows: []quiethours.Window{{Days: []string{"someday"}, From: "20:00", Until: "21:00"}}}), []string{"/windows/0/days/0"}},
		"a spread":                  {quiet(limits.QuietTenant, "", nightly(-1)), []string{"/spread"}},

		"a trust": {func(ctx context.Context, tx pgx.Tx) error {
			return limits.PutEmployee(ctx, tx, h.tenant, limits.Employee{Trust: "much"}, "ada")
		}, []string{"/trust"}},
		"scopes": {func(ctx context.Context, tx pgx.Tx) error {
			return limits.PutEmployee(ctx, tx, h.tenant, limits.Employee{Trust: policy.TrustLow, Scopes: []string{"a", "a", "B", "a:*:c", ""}}, "ada")
		}, []string{"/scopes/1", "/scopes/2", "/scopes/3", "/scopes/4"}},
		"a name": {func(ctx context.Context, tx pgx.Tx) error {
			return limits.PutEmployee(ctx, tx, h.tenant, limits.Employee{Trust: policy.TrustLow, Name: "a\x00"}, "ada")
		}, []string{"/name"}},

		"the tenant's zone": {func(ctx context.Context, tx pgx.Tx) error {
			return limits.PutTenant(ctx, tx, h.tenant, limits.Tenant{Timezone: "Mars/Base"}, "ada")
		}, []string{"/timezone"}},
		"the tenant's region": {func(ctx context.Context, tx pgx.Tx) error {
			return limits.PutTenant(ctx, tx, h.tenant, limits.Tenant{Timezone: "UTC", PhoneRegion: "de"}, "ada")
		}, []string{"/phone_region"}},
		"a session's limits": {func(ctx context.Context, tx pgx.Tx) error {
			return limits.PutTenant(ctx, tx, h.tenant, limits.Tenant{Timezone: "UTC", SessionPending: some(-1), SessionMinute: some(1_000_001)}, "ada")
		}, []string{"/session_pending_max", "/session_minute_max"}},

		"patterns":       {rule(limits.ToolRule{Recipients: some([]string{"/to", "to", "/to", "/a*b"})}), []string{"/recipients/1", "/recipients/2", "/recipients/3"}},
		"attempts":       {rule(limits.ToolRule{Retry: wire.Retry{MaxAttempts: 101}}), []string{"/retry/max_attempts"}},
		"a base":         {rule(limits.ToolRule{Retry: wire.Retry{Base: 25 * hour}}), []string{"/retry/base"}},
		"a cap":          {rule(limits.ToolRule{Retry: wire.Retry{Cap: 169 * hour}}), []string{"/retry/cap"}},
		"cap below base": {rule(limits.ToolRule{Retry: wire.Retry{Base: 2 * hour, Cap: hour}}), []string{"/retry/cap"}},
		"jitter":         {rule(limits.ToolRule{Retry: wire.Retry{Jitter: some(1.1)}}), []string{"/retry/jitter"}},
		"no such tool": {func(ctx context.Context, tx pgx.Tx) error {
			return limits.PutToolRule(ctx, tx, h.tenant, limits.ToolRule{Source: "mail", Name: "none"}, "ada")
		}, []string{"/tool"}},

		"no reason":            {setPause(pause.Tenant, "", " "), []string{"/reason"}},
		"a long reason":        {setPause(pause.Tenant, "", long), []string{"/reason"}},
		"everything":           {setPause(pause.Everything, "", "x"), []string{"/scope"}},
		"a scope of a pause":   {setPause("week", "", "x"), []string{"/scope"}},
		"a tenant's subject":   {setPause(pause.Tenant, "x", "x"), []string{"/subject"}},
		"no source":            {setPause(pause.Source, "none", "x"), []string{"/subject"}},
		"no bucket":            {setPause(pause.Bucket, "none", "x"), []string{"/subject"}},
		"no tool":              {setPause(pause.Tool, "mail:none", "x"), []string{"/subject"}},
		"a tool without colon": {setPause(pause.Tool, "mail", "x"), []string{"/subject"}},
		"no employee":          {setPause(pause.Employee, "x", "x"), []string{"/subject"}},

		"contacts": {func(ctx context.Context, tx pgx.Tx) error {
			_, err := contact.PutEntries(ctx, tx, h.tenant, []contact.Entry{{Value: "a@b.org"}, {Kind: "post", Value: "x"}, {Kind: contact.Email, Value: "x"}, {}, {Value: "c@d.org", Reason: long}}, "ada")
			return err
		}, []string{"/entries/1/kind", "/entries/2/value", "/entries/3/value", "/entries/4/reason"}},
		"a late part of a document": {func(ctx context.Context, tx pgx.Tx) error {
			doc := limits.Document{Buckets: []limits.Bucket{{Name: "new"}}, Tools: []limits.ToolRule{{Source: "mail", Name: "none"}}}
			_, err := limits.Apply(ctx, tx, h.tenant, doc, "ada", false)
			return err
		}, []string{"/tools/0/tool"}},
		"twice in a document": {func(ctx context.Context, tx pgx.Tx) error {
			doc := limits.Document{Employees: []limits.Employee{{Trust: policy.TrustLow}, {Trust: policy.TrustHigh}}, QuietHours: []limits.QuietHours{
				{Scope: limits.QuietEmployee, Subject: employee, Hours: nightly(1)}, {Scope: limits.QuietEmployee, Subject: strings.ToUpper(employee), Hours: nightly(2)},
			}}
			_, err := limits.Apply(ctx, tx, h.tenant, doc, "ada", false)
			return err
		}, []string{"/quiet_hours/1", "/employees/1"}},
	} {
		err := h.try(tt.do)
		if diff := cmp.Diff(tt.want, pointers(err)); diff != "" || !errors.Is(err, fault.Invalid) {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}

	if diff := cmp.Diff(before, h.document()); diff != "" || len(h.events()) != events {
		t.Errorf("bad input changed something (-before +after):\n%s", diff)
	}
	if h.set().AnyPause() || h.set().HasDoNotContact() {
		t.Error("bad input left a pause or an entry")
	}
}

func TestRowsOfOtherTenantsAreInaccessible(t *testing.T) {
	t.Parallel()
	one := newFixture(t)
	two := one.otherTenant()
	one.apply(fullDocument(), false)
	before := one.document()

	// As one tenant, with the other's id.
	for name, do := range map[string]func(ctx context.Context, tx pgx.Tx) error{
		"PutBucket": func(ctx context.Context, tx pgx.Tx) error {
			return limits.PutBucket(ctx, tx, one.tenant, limits.Bucket{Name: "x"}, "eve")
		},
		"PutEmployee": func(ctx context.Context, tx pgx.Tx) error {
			return limits.PutEmployee(ctx, tx, one.tenant, limits.Employee{Trust: policy.TrustHigh}, "eve")
		},
		"SetPause": func(ctx context.Context, tx pgx.Tx) error {
			_, err := pause.Set(ctx, tx, one.tenant, pause.Order{Target: pause.Target{Scope: pause.Tenant}, Kill: true, Reason: "x", By: "eve"})
			return err
		},
		"PauseAll": func(ctx context.Context, tx pgx.Tx) error {
			_, err := pause.SetEverything(ctx, tx, true, "x", "eve")
			return err
		},
		"PutEntries": func(ctx context.Context, tx pgx.Tx) error {
			_, err := contact.PutEntries(ctx, tx, one.tenant, []contact.Entry{{Value: "a@b.org"}}, "eve")
			return err
		},
		"Apply": func(ctx context.Context, tx pgx.Tx) error {
			_, err := limits.Apply(ctx, tx, one.tenant, limits.Document{Buckets: []limits.Bucket{}}, "eve", false)
			return err
		},
		"LiftAll": func(ctx context.Context, tx pgx.Tx) error { return pause.LiftEverything(ctx, tx, "", "eve") },
	} {
		if err := two.try(do); err == nil {
			t.Errorf("%s reached another tenant", name)
		}
	}

	if diff := cmp.Diff(before, one.document()); diff != "" {
		t.Errorf("another tenant changed it (-before +after):\n%s", diff)
	}
}
