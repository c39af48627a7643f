package audit

import (
	"context"
	"slices"
)

// coverage is the result of comparing a checkpoint with its events.
type coverage struct {
	Report
	// actual is a checkpoint computed from the current events.
	actual checkpoint
}

// events compares a checkpoint with its events. whole reports whether the
// checkpoint follows the last one; if not, earlier events than its first one are
// not checked.
func (v *verification) events(ctx context.Context, s *checkpoint, whole bool) (coverage, error) {
	after := v.last.until
	if !whole {
		after = before(s.from)
	}
	c, err := v.compare(ctx, s, after)
	missing := slices.ContainsFunc(c.Findings, func(f Finding) bool { return f.Kind == Missing })
	if err != nil || s.no <= v.pruned || !s.pruned && !missing {
		return c, err
	}
	// They may have been pruned between two statements.
	if v.pruned, err = prunedThrough(ctx, v.tx, v.tenant); err != nil || s.no > v.pruned {
		return c, err
	}
	s.pruned = true
	return v.compare(ctx, s, after)
}

// compare compares the leaves of a checkpoint with the events after a position.
func (v *verification) compare(ctx context.Context, s *checkpoint, after Position) (coverage, error) {
	c := coverage{Report: Report{Checkpoints: 1}}
	leaves, ok := leavesOf(s.leaves)
	gone := s.no <= v.pruned
	switch {
	case gone && !s.pruned:
		c.add(Finding{Kind: CheckpointChanged, Checkpoint: s.no, Message: "its pruned_at was removed"})
	case !gone && s.pruned:
		c.add(Finding{Kind: CheckpointChanged, Checkpoint: s.no, Message: "it is marked as pruned, and no event records the pruning"})
	}
	if gone {
		c.Pruned = int64(len(leaves))
	} else {
		c.Covered = int64(len(leaves))
	}
	if gone || !ok {
		leaves = nil
	}
	missing := func(l leaf) {
		c.add(Finding{Kind: Missing, Checkpoint: s.no, Position: l.position.String(), Event: l.position.Event, Message: "the event was covered and does not exist"})
	}
	err := eachRow(ctx, v.tx, v.tenant, after, s.until, func(r row) {
		is := leafOf(v.tenant, r)
		c.actual.cover(v.tenant, r)
		if !ok && !gone {
			return // without leaves the event cannot be checked
		}
		for len(leaves) > 0 && leaves[0].position.Compare(r.position) < 0 {
			missing(leaves[0])
			leaves = leaves[1:]
		}
		found := Finding{Checkpoint: s.no, Position: r.position.String(), Event: r.position.Event, At: r.at.UTC()}
		switch {
		case len(leaves) == 0 || leaves[0].position != r.position:
			found.Kind, found.Message = Added, "the event was added between events that were covered"
			if gone {
				found.Message = "the event exists, though retention deleted all events of this checkpoint"
			}
			c.add(found)
			return
		case leaves[0].hash != is.hash:
			found.Kind, found.Message = Changed, "the event differs from what was covered"
			c.add(found)
		}
		leaves = leaves[1:]
	})
	for _, l := range leaves {
		missing(l)
	}
	return c, err
}
