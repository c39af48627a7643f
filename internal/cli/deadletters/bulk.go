package deadletters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/fault"
)

const (
	// lotSize is how many dead letters are changed at once.
	lotSize = 500
	// lead is how far a paced replay schedules ahead. What lies beyond stays
	// among the dead letters, so that stopping the command stops the rest.
	lead = 3 * time.Second
	// progressEvery is the least time between two lines about the progress.
	progressEvery = 2 * time.Second
)

// letterChange is a change of dead letters in lots.
type letterChange struct {
	app    *command.App
	verb   string
	named  []envelope.ActionID
	filter client.LetterFilter
	apply  bool
	// typed says that the ids were typed in, so that something is wrong if none
	// of them is a dead letter. A file may be run through again.
	typed bool
	// rate is how many become due in a second; zero is all at once.
	rate float64
	// do asks for one lot. all, which may be nil, does it also to what do
	// leaves out.
	do, all func(context.Context, client.Lot) (client.LotDone, error)
}

// letterReport is what a change of dead letters came to, for scripts.
type letterReport struct {
	Command string `json:"command"`
	Applied bool   `json:"applied"`
	// Count is how many it was done to or, of a dry run, would be; Total how
	// many fitted at the beginning, and Left how many of them are left.
	Count int `json:"count"`
	Total int `json:"total"`
	Left  int `json:"left"`
	// LeftOut counts those of unknown outcome that were left out.
	LeftOut int `json:"left_out"`
	// NotDead are those that were named and are no dead letters.
	NotDead []envelope.ActionID `json:"not_dead"`
	// Counts tells Total and LeftOut by tool and reason.
	Counts []client.Tally `json:"counts"`
	// AsOf is when all this was found; letters made later were left alone.
	AsOf    time.Time `json:"as_of"`
	Stopped bool      `json:"stopped"`
}

// run looks what is there and, if the change is to be applied, makes it. It
// ends with one document, or in words.
func (ch *letterChange) run(ctx context.Context) error {
	found, err := ch.survey(ctx)
	if err != nil {
		return err
	}
	if ch.typed && found.Total+found.LeftOut == 0 {
		return fault.New(fault.NotFound, "none of these is a dead letter that fits")
	}
	if ch.apply && found.Total > 0 {
		err = ch.work(ctx, &found)
	}
	if shown := ch.show(found, err); shown != nil {
		return shown
	}
	return err
}

// survey makes a dry run, and keeps to what it found: of the ids, those that
// are dead letters; of a filter, those made until now.
func (ch *letterChange) survey(ctx context.Context) (letterReport, error) {
	out := letterReport{Command: ch.verb, Applied: ch.apply, NotDead: []envelope.ActionID{}, Counts: []client.Tally{}}
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

// sort finds out which of the ids that were named are dead letters that it can
// be done to, keeps those, and reports those that are none.
func (ch *letterChange) sort(ctx context.Context, out *letterReport) error {
	var fit []envelope.ActionID
	for lot := range slices.Chunk(ch.named, envelope.MaxItems) {
		leftOut := out.LeftOut
		dead, err := ch.look(ctx, out, lot)
		if err != nil {
			return err
		}
		fit = append(fit, dead...)
		if out.LeftOut > leftOut {
			all, err := ch.all(ctx, client.Lot{IDs: lot, Filter: &ch.filter, Limit: len(lot), DryRun: true})
			if err != nil {
				return err
			}
			dead = all.ActionIDs
		}
		is := make(map[envelope.ActionID]bool, len(dead))
		for _, id := range dead {
			is[id] = true
		}
		for _, id := range lot {
			if !is[id] {
				out.NotDead = append(out.NotDead, id)
			}
		}
	}
	ch.named = append([]envelope.ActionID{}, fit...)
	return nil
}

// look makes a dry run, adds what it counts to a report, and returns which of
// the ids that were named it would be done to.
func (ch *letterChange) look(ctx context.Context, out *letterReport, lot []envelope.ActionID) ([]envelope.ActionID, error) {
	done, err := ch.do(ctx, client.Lot{IDs: lot, Filter: &ch.filter, Limit: max(1, len(lot)), DryRun: true})
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

// added adds tallies to others.
func added(sum, more []client.Tally) []client.Tally {
	for _, t := range more {
		i := slices.IndexFunc(sum, func(s client.Tally) bool { return s.Source == t.Source && s.Tool == t.Tool && s.Reason == t.Reason })
		if i < 0 {
			sum = append(sum, t)
		} else {
			sum[i].Letters += t.Letters
		}
	}
	return sum
}

// work makes the change, lot by lot. When ctx ends, the lot in flight is
// finished and no other begun.
func (ch *letterChange) work(ctx context.Context, out *letterReport) error {
	began := time.Now()
	shown := began
	rest := ch.named
	for {
		lot := client.Lot{Filter: &ch.filter, Limit: ch.lot()}
		if ch.named != nil {
			n := min(lot.Limit, len(rest))
			lot.IDs, rest = rest[:n], rest[n:]
		}
		done, err := ch.do(context.WithoutCancel(ctx), lot)
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
		if err := rests(ctx, time.Duration(done.AheadMS)*time.Millisecond-lead); err != nil {
			out.Stopped = true
			return err
		}
	}
}

// lot is how many are done at once: of a paced change, what fits into the lead
// with room to spare.
func (ch *letterChange) lot() int {
	if ch.rate == 0 {
		return lotSize
	}
	return max(1, min(lotSize, int(ch.rate*(lead/2).Seconds())))
}

// rests waits, if there is something to wait for. The error is that of a ctx
// that has ended.
func rests(ctx context.Context, d time.Duration) error {
	if d <= 0 || ctx.Err() != nil {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// progress says how far a change has got, how fast it is and how long it will
// take.
func progress(verb string, n, total int, took time.Duration, rate float64) string {
	speed := float64(n) / max(took.Seconds(), 0.001)
	if rate > 0 {
		speed = min(speed, rate) // at first it schedules ahead
	}
	left := time.Duration(float64(total-n) / speed * float64(time.Second)).Round(time.Second)
	return fmt.Sprintf("%s: %d of %d, %.3g/s, about %v to go", verb, n, total, speed, left)
}

// show tells what came of a change that may have ended with an error.
func (ch *letterChange) show(out letterReport, err error) error {
	a := ch.app
	if a.JSON {
		if err != nil && !errors.Is(err, context.Canceled) {
			return nil // the error is the document
		}
		return a.WriteJSON(out)
	}
	if out.LeftOut > 0 {
		a.Note("%d of unknown outcome left out: they may have happened, and replaying could double them. --allow-doubling takes them too.", out.LeftOut)
	}
	if len(out.NotDead) > 0 {
		a.Note("%d are no dead letters that fit:", len(out.NotDead))
		for _, id := range out.NotDead {
			a.Note("  %s", id)
		}
	}
	switch {
	case err != nil:
		a.Note("%s: %d of %d done. To take up the rest, run the command again with --until %s.", ch.verb, out.Count, out.Total, ch.filter.Until.UTC().Format(time.RFC3339Nano))
		return nil
	case out.Total == 0:
		a.Note("There are no such dead letters.")
		return nil
	case !ch.apply:
		if err := showTallies(a, out.Counts); err != nil {
			return err
		}
		a.Note("\nNothing was changed. To %s these %d, add --apply. To see them: countersign dlq list.", ch.verb, out.Total)
		return nil
	}
	if gone := out.Total - out.Count; gone > 0 {
		a.Note("%d were no dead letters any more.", gone)
	}
	_, err = fmt.Fprintf(a.Out, "%d %sed\n", out.Count, ch.verb)
	return err
}

func showTallies(a *command.App, counts []client.Tally) error {
	rows := make([][]string, len(counts))
	for i, t := range counts {
		rows[i] = []string{fmt.Sprint(t.Letters), t.Source + ":" + t.Tool, t.Reason}
	}
	return command.Table(a.Out, []string{"LETTERS", "TOOL", "REASON"}, rows)
}
