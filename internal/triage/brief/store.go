package brief

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/followup"
)

// About is the account and the time that a brief is about.
type About struct {
	Tenant  envelope.TenantID
	Account uuid.UUID
	// Name is the account's name, and Own are its owner's addresses.
	Name string
	Own  []string
	Kind Kind
	// Since and Until are the time that it covers.
	Since, Until time.Time
	Settings     Settings
	// ShowMail shows senders, subjects and spans. Without it there are numbers alone.
	ShowMail bool
}

// maxItems bounds the items of each list of a brief.
const maxItems = 10

// undecided is the name of the bucket of messages without a decision.
const undecided = "undecided"

// Read makes a brief from stored data.
func Read(ctx context.Context, tx pgx.Tx, about About) (wire.TriageBrief, error) {
	b := wire.TriageBrief{
		Account: about.Name, Kind: string(about.Kind), Zone: about.Settings.Zone, Since: about.Since.UTC(), Until: about.Until.UTC(), ShowsMail: about.ShowMail,
		Attention: of[wire.TriageBriefMessage](nil), Moved: []wire.TriageBriefCount{},
	}
	if err := readMail(ctx, tx, about, &b); err != nil {
		return b, err
	}
	moved, err := dbsqlc.New().TriageBriefMoved(ctx, tx, &dbsqlc.TriageBriefMovedParams{TenantID: about.Tenant, AccountID: about.Account, Since: about.Since, Until: about.Until})
	if err != nil {
		return b, err
	}
	b.Moved = movedOf(moved)
	owed, err := followups(ctx, tx, about)
	if err != nil {
		return b, err
	}
	b.Owed, b.Awaited = side(owed, followup.Me, about.Until), side(owed, followup.Them, about.Until)
	if b.Found, err = readFound(ctx, tx, about); err != nil {
		return b, err
	}
	if b.Calendar, err = readCalendar(ctx, tx, about); err != nil {
		return b, err
	}
	if !about.ShowMail {
		withoutMail(&b)
	}
	return b, nil
}

// followups returns the open follow-ups of an account.
func followups(ctx context.Context, tx pgx.Tx, about About) ([]wire.TriageFollowUp, error) {
	return followup.List(ctx, tx, followup.Query{
		Tenant: about.Tenant, Account: about.Account, Name: about.Name, Own: about.Own, Zone: Location(about.Settings.Zone), Now: about.Until,
		ArchivingCloses: about.Settings.ArchivingCloses,
	})
}

// side returns the follow-ups of one side.
func side(all []wire.TriageFollowUp, by string, now time.Time) (list wire.TriageBriefFollowUps) {
	all = slices.DeleteFunc(slices.Clone(all), func(f wire.TriageFollowUp) bool { return f.OwedBy != by })
	for _, f := range all {
		if overdue(f, now) {
			list.Overdue++
		}
	}
	list.Total, list.Items = len(all), of(all).Items
	return list
}

// readMail reads the messages that came in.
func readMail(ctx context.Context, tx pgx.Tx, about About, b *wire.TriageBrief) error {
	counts, err := dbsqlc.New().TriageBriefBuckets(ctx, tx, &dbsqlc.TriageBriefBucketsParams{TenantID: about.Tenant, AccountID: about.Account, Since: about.Since, Until: about.Until})
	if err != nil {
		return err
	}
	for _, bucket := range []decide.Bucket{decide.Urgent, decide.Actionable, decide.Informational, decide.Archived, ""} {
		c := wire.TriageBriefCount{Name: string(bucket)}
		if bucket == "" {
			c.Name = undecided
		}
		for _, r := range counts {
			if r.Bucket != string(bucket) {
				continue
			}
			c.Count = int(r.Messages)
			if bucket.NeedsOwner() {
				b.Attention.Total += int(r.Messages)
			} else {
				b.Attention.Total += int(r.Questions)
			}
		}
		b.Total += c.Count
		if bucket != "" || c.Count > 0 {
			b.Buckets = append(b.Buckets, c)
		}
	}
	rows, err := dbsqlc.New().TriageBriefAttention(ctx, tx, &dbsqlc.TriageBriefAttentionParams{
		TenantID: about.Tenant, AccountID: about.Account, Since: about.Since, Until: about.Until, Most: maxItems,
	})
	for _, r := range rows {
		b.Attention.Items = append(b.Attention.Items, wire.TriageBriefMessage{
			ID: r.MessageID, Bucket: r.Bucket, Question: r.Question, Sender: r.Sender, SenderName: r.SenderName, Subject: r.Subject, ReceivedAt: r.ReceivedAt.UTC(),
		})
	}
	return err
}

// movedOf names the moves of messages, in a fixed order.
func movedOf(rows []dbsqlc.TriageBriefMovedRow) []wire.TriageBriefCount {
	names := []struct {
		name string
		of   []string
	}{
		{"archived", []string{"archive", "all"}}, {"snoozed", []string{"snooze"}}, {"junk", []string{"quarantine", "junk"}}, {"trashed", []string{"trash"}}, {"gone", nil},
	}
	all := []wire.TriageBriefCount{}
	counted := make(map[string]int)
	for _, r := range rows {
		name := "gone"
		for _, n := range names {
			if slices.Contains(n.of, r.Moved) {
				name = n.name
			}
		}
		counted[name] += int(r.Messages)
	}
	for _, n := range names {
		if counted[n.name] > 0 {
			all = append(all, wire.TriageBriefCount{Name: n.name, Count: counted[n.name]})
		}
	}
	return all
}

// of returns the beginning of a list.
func of[T any](all []T) wire.TriageBriefList[T] {
	return wire.TriageBriefList[T]{Total: len(all), Items: append([]T{}, all[:min(len(all), maxItems)]...)}
}

// withoutMail takes senders, subjects, spans and events out of a brief, and keeps
// numbers and due dates.
func withoutMail(b *wire.TriageBrief) {
	b.Attention.Items, b.Found.Items = []wire.TriageBriefMessage{}, []wire.TriageBriefItem{}
	if b.Calendar != nil {
		b.Calendar.Events.Items = []wire.TriageBriefEvent{}
	}
	withoutNames(b.Owed.Items)
	withoutNames(b.Awaited.Items)
}

// withoutNames takes text of mail out of follow-ups.
func withoutNames(items []wire.TriageFollowUp) {
	for i := range items {
		items[i].With, items[i].WithName, items[i].Subject, items[i].DueText = "", "", "", ""
	}
}

// Of returns the account and the time of a brief that a person asks for. It covers the
// time since the last brief that was sent, or the last 24 hours. settings may be nil.
func Of(ctx context.Context, tx pgx.Tx, tenant envelope.TenantID, account uuid.UUID, settings *Settings, since, now time.Time) (About, error) {
	about := About{Tenant: tenant, Account: account, Since: since, Until: now}
	if settings != nil {
		about.Settings, about.ShowMail = *settings, settings.ShowMail
	} else {
		zone, err := dbsqlc.New().TriageZone(ctx, tx, tenant)
		if err != nil {
			return about, err
		}
		about.Settings.Zone = zone
	}
	if about.Since.IsZero() {
		about.Since = now.Add(-24 * time.Hour)
	}
	if about.Kind = Morning; now.In(Location(about.Settings.Zone)).Hour() >= 12 {
		about.Kind = Evening
	}
	return about, nil
}
