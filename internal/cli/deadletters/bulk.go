package deadletters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const (
	// requestSize is how many dead letters are changed at once.
	requestSize = 500
	// lead is the time that a paced replay schedules ahead. The rest stays dead
	// letters, so that stopping the command stops it.
	lead = 3 * time.Second
	// progressEvery is the least time between two lines about the progress.
	progressEvery = 2 * time.Second
)

// bulkChange is a change of dead letters, in requests of a bounded size.
type bulkChange struct {
	app    *command.App
	verb   string
	named  []envelope.ActionID
	filter wire.DeadLetterFilter
	apply  bool
	// typed reports whether the ids were arguments, so that it is an error if
	// none of them is a dead letter. A file may be used again.
	typed bool
	// rate is how many become due in a second; zero is all at once.
	rate float64
	// do makes one request. all also takes those of unknown outcome.
	do func(ctx context.Context, in wire.BulkRequest, all bool) (wire.BulkResult, error)
}

// bulkReport is the result of a change of dead letters, for scripts.
type bulkReport struct {
	Command string `json:"command"`
	Applied bool   `json:"applied"`
	// Count is how many were changed or, in a dry run, would be; Total how many
	// were selected at the beginning, and Left how many of those are left.
	Count int `json:"count"`
	Total int `json:"total"`
	Left  int `json:"left"`
	// LeftOut counts those that were left out: of unknown outcome, or ended tries of
	// action tags.
	LeftOut int `json:"left_out"`
	// NotDead are the ids that are not dead letters.
	NotDead []envelope.ActionID `json:"not_dead"`
	// Counts has Total and LeftOut by tool and reason.
	Counts []wire.DeadLetterCount `json:"counts"`
	// AsOf is the time of the counts; later dead letters are not changed.
	AsOf    time.Time `json:"as_of"`
	Stopped bool      `json:"stopped"`
}

// run counts the selection and, with --apply, changes it. It ends with one
// document, or with a text.
func (ch *bulkChange) run(ctx context.Context) error {
	found, err := ch.survey(ctx)
	if err != nil {
		return err
	}
	if ch.typed && found.Total+found.LeftOut == 0 {
		return errors.New("none of these is a matching dead letter")
	}
	if ch.apply && found.Total > 0 {
		err = ch.work(ctx, &found)
	}
	if shown := ch.show(found, err); shown != nil {
		return shown
	}
	return err
}

// survey makes a dry run, and restricts the change to its matches: of the ids,
// those that are dead letters; of a filter, those until now.
func (ch *bulkChange) survey(ctx context.Context) (bulkReport, error) {
	out := bulkReport{Command: ch.verb, Applied: ch.apply, NotDead: []envelope.ActionID{}, Counts: []wire.DeadLetterCount{}}
	var err error
	if ch.named == nil {
		_, err = ch.look(ctx, &out, nil) // the counts alone matter
	} else {
		err = ch.sort(ctx, &out)
	}
	if out.Left = out.Total; !ch.apply {
		out.Count = out.Total
	}
	if ch.filter.Until.IsZero() || ch.filter.Until.After(out.AsOf) {
		ch.filter.Until = out.AsOf
	}
	return out, err
}

// sort keeps those of the ids that are dead letters and can be changed, and
// reports those that are not dead letters.
func (ch *bulkChange) sort(ctx context.Context, out *bulkReport) error {
	var fit []envelope.ActionID
	for in := range slices.Chunk(ch.named, envelope.MaxItems) {
		leftOut := out.LeftOut
		dead, err := ch.look(ctx, out, in)
		if err != nil {
			return err
		}
		fit = append(fit, dead...)
		if out.LeftOut > leftOut {
			all, err := ch.do(ctx, wire.BulkRequest{IDs: in, Filter: &ch.filter, Limit: len(in), DryRun: true}, true)
			if err != nil {
				return err
			}
			dead = all.ActionIDs
		}
		for _, id := range in {
			if !slices.Contains(dead, id) {
				out.NotDead = append(out.NotDead, id)
			}
		}
	}
	ch.named = append([]envelope.ActionID{}, fit...)
	return nil
}

// look makes a dry run, adds its counts to a report, and returns which of the
// ids it would change.
func (ch *bulkChange) look(ctx context.Context, out *bulkReport, in []envelope.ActionID) ([]envelope.ActionID, error) {
	done, err := ch.do(ctx, wire.BulkRequest{IDs: in, Filter: &ch.filter, Limit: max(1, len(in)), DryRun: true}, false)
	if err != nil {
		return nil, err
	}
	out.Total, out.LeftOut = out.Total+done.Left, out.LeftOut+done.LeftOut
	out.Counts = added(out.Counts, done.Counts)
	if out.AsOf.IsZero() {
		out.AsOf = done.AsOf
	}
	return done.ActionIDs, nil
}

// added adds counts to others.
func added(sum, more []wire.DeadLetterCount) []wire.DeadLetterCount {
	for _, t := range more {
		i := slices.IndexFunc(sum, func(s wire.DeadLetterCount) bool {
			return s.Tool == t.Tool && s.Reason == t.Reason
		})
		if i < 0 {
			sum = append(sum, t)
		} else {
			sum[i].Count += t.Count
		}
	}
	return sum
}

// work makes the change, request by request. When ctx ends, the current request
// is finished and no other is made.
func (ch *bulkChange) work(ctx context.Context, out *bulkReport) error {
	began := time.Now()
	shown := began
	rest := ch.named
	for {
		in := wire.BulkRequest{Filter: &ch.filter, Limit: ch.batch()}
		if ch.named != nil {
			n := min(in.Limit, len(rest))
			in.IDs, rest = rest[:n], rest[n:]
		}
		done, err := ch.do(context.WithoutCancel(ctx), in, false)
		if err != nil {
			return err
		}
		out.Count += len(done.ActionIDs)
		if out.Left = done.Left; ch.named != nil {
			out.Left = len(rest)
		}
		if out.Left == 0 || ch.named == nil && len(done.ActionIDs) == 0 {
			return nil
		}
		if now := time.Now(); now.Sub(shown) >= progressEvery || out.Count == len(done.ActionIDs) {
			shown = now
			ch.app.Note("%s", progress(ch.verb, out.Count, out.Total, now.Sub(began), ch.rate))
		}
		if err := sleep(ctx, time.Duration(done.AheadMS)*time.Millisecond-lead); err != nil {
			out.Stopped = true
			return err
		}
	}
}

// batch returns how many one request changes: of a paced change, what fits into
// the lead with space to spare.
func (ch *bulkChange) batch() int {
	if ch.rate == 0 {
		return requestSize
	}
	return max(1, min(requestSize, int(ch.rate*(lead/2).Seconds())))
}

// sleep waits unless d is zero or less. The error is that of a ctx that has
// ended.
func sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// progress describes the state of a change, its rate, and the time that is
// left.
func progress(verb string, n, total int, took time.Duration, rate float64) string {
	speed := float64(n) / max(took.Seconds(), 0.001)
	if rate > 0 {
		speed = min(speed, rate) // at first it schedules ahead
	}
	left := time.Duration(float64(total-n) / speed * float64(time.Second)).Round(time.Second)
	return fmt.Sprintf("%s: %d of %d, %.3g/s, about %v left", verb, n, total, speed, left)
}

// show shows the result of a change that may have ended with an error.
func (ch *bulkChange) show(out bulkReport, err error) error {
	a := ch.app
	if a.JSON {
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil // the error is the document
		}
		return a.WriteJSON(out)
	}
	if out.LeftOut > 0 {
		a.Note("%d of unknown outcome skipped, or ended tries of action tags: a replay could repeat the effect. --allow-duplicates includes the former.", out.LeftOut)
	}
	if len(out.NotDead) > 0 {
		a.Note("%d are not matching dead letters:", len(out.NotDead))
		for _, id := range out.NotDead {
			a.Note("  %s", id)
		}
	}
	switch {
	case err != nil:
		a.Note("%s: %d of %d done. To continue with the rest, run the command again with --until %s.", ch.verb, out.Count, out.Total, ch.filter.Until.UTC().Format(time.RFC3339Nano))
		return nil
	case out.Total == 0:
		a.Note("No matching dead letters.")
		return nil
	case !ch.apply:
		if err := showCounts(a, out.Counts); err != nil {
			return err
		}
		a.Note("\nNothing was changed. To %s these %d, add --apply. To see them: countersign dlq list.", ch.verb, out.Total)
		return nil
	}
	if gone := out.Total - out.Count; gone > 0 {
		a.Note("%d were no longer dead letters.", gone)
	}
	return a.Print("%d %sed\n", out.Count, ch.verb)
}

func showCounts(a *command.App, counts []wire.DeadLetterCount) error {
	return command.Table(a, counts, []string{"COUNT", "TOOL", "REASON"}, func(t wire.DeadLetterCount) []string {
		return []string{fmt.Sprint(t.Count), t.Tool, t.Reason}
	})
}
