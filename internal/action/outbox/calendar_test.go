package outbox_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/limits"

	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
)

// counted makes a bucket count n in the period that began at a time.
func (fx fixture) counted(bucket int64, from string, n int) {
	fx.T.Helper()
	fx.Exec("UPDATE buckets SET calendar_from = $2::text::timestamptz, calendar_used = $3 WHERE bucket_id = $1", bucket, from, n)
}

// tokensAt returns the number of permits that a bucket would grant at a time.
func (fx fixture) tokensAt(bucket int64, at string) int64 {
	fx.T.Helper()
	return outboxtest.One[int64](fx.Fixture, `SELECT bucket_permits(b, $2::text::timestamptz, t.timezone) FROM buckets b JOIN tenants t USING (tenant_id) WHERE bucket_id = $1`, bucket, at)
}

func TestCalendarRestartsOnTheWallClock(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		every string
		zone  string
		// from is the start of the exhausted period, last is just before its end, and
		// opens is the start of the next one.
		from, last, opens string
	}{
		"a day in Berlin":                 {limits.PeriodDay, "Europe/Berlin", "2026-02-10 00:00+01", "2026-02-10 23:59:59+01", "2026-02-11 00:00+01"},
		"the day that is an hour shorter": {limits.PeriodDay, "Europe/Berlin", "2026-03-29 00:00+01", "2026-03-29 23:59:59+02", "2026-03-30 00:00+02"},
		"the day that is an hour longer":  {limits.PeriodDay, "Europe/Berlin", "2026-10-25 00:00+02", "2026-10-25 23:59:59+01", "2026-10-26 00:00+01"},
		"a day that begins at one":        {limits.PeriodDay, "America/Sao_Paulo", "2018-11-03 00:00-03", "2018-11-03 23:59:59-03", "2018-11-04 01:00-02"},
		"the day after that":              {limits.PeriodDay, "America/Sao_Paulo", "2018-11-04 01:00-02", "2018-11-04 23:59:59-02", "2018-11-05 00:00-02"},
		"a day with midnight twice":       {limits.PeriodDay, "America/Sao_Paulo", "2018-02-17 00:00-02", "2018-02-17 23:59:59-03", "2018-02-18 00:00-03"},
		"a day in Kolkata":                {limits.PeriodDay, "Asia/Kolkata", "2026-05-01 00:00+05:30", "2026-05-01 23:59:59+05:30", "2026-05-02 00:00+05:30"},
		"an hour in Kolkata":              {limits.PeriodHour, "Asia/Kolkata", "2026-05-01 07:00+05:30", "2026-05-01 07:59:59+05:30", "2026-05-01 08:00+05:30"},
		"half an hour more on Lord Howe":  {limits.PeriodHour, "Australia/Lord_Howe", "2026-04-05 01:00+11", "2026-04-05 01:59:59+10:30", "2026-04-05 02:00+10:30"},
		"the hour that there is twice":    {limits.PeriodHour, "Europe/Berlin", "2026-10-25 02:00+01", "2026-10-25 02:59:59+01", "2026-10-25 03:00+01"},
		"the hour before one that is not": {limits.PeriodHour, "Europe/Berlin", "2026-03-29 01:00+01", "2026-03-29 01:59:59+01", "2026-03-29 03:00+02"},
		"the day that Apia went without":  {limits.PeriodDay, "Pacific/Apia", "2011-12-29 00:00-10", "2011-12-29 23:59:59-10", "2011-12-31 00:00+14"},
		"a week begins on Monday":         {limits.PeriodWeek, "Europe/Berlin", "2026-03-23 00:00+01", "2026-03-29 23:59:59+02", "2026-03-30 00:00+02"},
		"a month of 28 days":              {limits.PeriodMonth, "Europe/Berlin", "2026-02-01 00:00+01", "2026-02-28 23:59:59+01", "2026-03-01 00:00+01"},
		"a month with another offset":     {limits.PeriodMonth, "Europe/Berlin", "2026-03-01 00:00+01", "2026-03-31 23:59:59+02", "2026-04-01 00:00+02"},
		"the last month of a year":        {limits.PeriodMonth, "Asia/Kolkata", "2026-12-01 00:00+05:30", "2026-12-31 23:59:59+05:30", "2027-01-01 00:00+05:30"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			b := fx.put(limits.Bucket{Calendar: &limits.Calendar{Limit: 4, Every: test.every, Timezone: test.zone}})
			fx.counted(b, test.from, 3)
			left := fx.tokensAt(b, test.last)
			fx.counted(b, test.from, 4)

			opens := outboxtest.One[time.Time](fx.Fixture, "SELECT opens_at FROM buckets WHERE bucket_id = $1", b)
			want := outboxtest.One[time.Time](fx.Fixture, "SELECT $1::text::timestamptz", test.opens)
			if !opens.Equal(want) {
				t.Errorf("it opens at %s, want %s", opens.UTC(), want.UTC())
			}
			if none, some := fx.tokensAt(b, test.last), fx.tokensAt(b, test.opens); left != 1 || none != 0 || some != 4 {
				t.Errorf("at the end of the period %d are left of 4 with 3 used, and %d with 4; then %d. Want 1, 0 and 4", left, none, some)
			}
		})
	}
}

func TestAClockThatWentBackCountsOn(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	b := fx.put(daily(5))
	fx.QueueIn(b, envelope.EffectRead, 20)
	first := len(fx.ask(b, 3))
	fx.Exec("UPDATE buckets SET calendar_from = calendar_from + interval '1 day' WHERE bucket_id = $1", b)

	second, third := len(fx.ask(b, 20)), len(fx.ask(b, 20))

	if first != 3 || second != 2 || third != 0 {
		t.Errorf("granted %d, %d and %d, want 5 in all though the clock shows the day before", first, second, third)
	}
}

func TestANewDayIsANewCalendar(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	b := fx.put(daily(5))
	fx.QueueIn(b, envelope.EffectRead, 20)
	first := len(fx.ask(b, 20))
	fx.Exec("UPDATE buckets SET calendar_from = calendar_from - interval '1 day' WHERE bucket_id = $1", b)
	waits := fx.due(b).DueIn

	second, third := len(fx.ask(b, 20)), len(fx.ask(b, 20))

	if first != 5 || waits > 0 || second != 5 || third != 0 {
		t.Errorf("granted %d, then a look waits %v, then %d and %d; want 5, nothing, 5 and none", first, waits, second, third)
	}
}

// TestATenantThatMovesKeepsItsCalendars has the tenant's zone change while a
// day is used up: it opens at the new zone's next midnight.
func TestATenantThatMovesKeepsItsCalendars(t *testing.T) {
	t.Parallel()
	for zone, test := range map[string]struct{ from, used, opens string }{
		"America/New_York": {"2026-06-10 00:00Z", "2026-06-10 02:00Z", "2026-06-10 04:00Z"},
		"Asia/Tokyo":       {"2026-06-10 00:00Z", "2026-06-10 10:00Z", "2026-06-10 15:00Z"},
		"Asia/Kolkata":     {"2026-06-10 00:00Z", "2026-06-10 10:00Z", "2026-06-10 18:30Z"},
	} {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			b := fx.put(limits.Bucket{Calendar: &limits.Calendar{Limit: 4, Every: limits.PeriodDay}})
			fx.counted(b, test.from, 4)

			fx.As(postgres.API(fx.Tenant), func(tx pgx.Tx) error {
				return limits.PutTenant(t.Context(), tx, fx.Tenant, limits.Tenant{Timezone: zone}, "ada")
			})

			opens := outboxtest.One[time.Time](fx.Fixture, "SELECT opens_at FROM buckets WHERE bucket_id = $1", b)
			want := outboxtest.One[time.Time](fx.Fixture, "SELECT $1::text::timestamptz", test.opens)
			if now, then := fx.tokensAt(b, test.used), fx.tokensAt(b, test.opens); !opens.Equal(want) || now != 0 || then != 4 {
				t.Errorf("it opens at %s with %d permits, and has %d before; want %s, 4 and none", opens.UTC(), then, now, want.UTC())
			}
		})
	}
}

// TestAnIntervalIsNeverRoundedDown covers rates whose interval is not a whole
// number: using the limit must take at least its period.
func TestAnIntervalIsNeverRoundedDown(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	for _, rate := range []limits.Rate{
		{Limit: 3, Per: envelope.Duration(time.Second)}, {Limit: 7, Per: envelope.Duration(time.Minute)}, {Limit: 9000, Per: envelope.Duration(time.Second)},
		{Limit: 10_000, Per: envelope.Duration(time.Second)}, {Limit: 999_983, Per: envelope.Duration(24 * time.Hour)}, {Limit: 1, Per: envelope.Duration(time.Millisecond)},
		{Limit: 60, Per: envelope.Duration(time.Minute)}, {Limit: 11, Per: envelope.Duration(366 * 24 * time.Hour)},
	} {
		if float64(rate.Limit)/time.Duration(rate.Per).Seconds() > 10_000 {
			continue
		}
		b := fx.put(limits.Bucket{Rate: &rate})

		every := outboxtest.One[int64](fx.Fixture, "SELECT (extract(epoch FROM bucket_interval(b)) * 1000000)::bigint FROM buckets b WHERE bucket_id = $1", b)

		whole := time.Duration(rate.Limit) * time.Duration(every) * time.Microsecond
		if per := time.Duration(rate.Per); whole < per || whole > per+2*time.Duration(rate.Limit)*time.Microsecond {
			t.Errorf("%d of an interval of %d µs take %v, want %v", rate.Limit, every, whole, per)
		}
	}
}
