package audit

import "context"

// covered is what became of the events that a checkpoint covers.
type coverage struct {
	found           []Finding
	omitted         int64
	covered, pruned int64
	// actual is a checkpoint of the events as they are.
	actual checkpoint
}

func (c *coverage) find(f Finding) {
	if len(c.found) == maxFindings {
		c.omitted++
		return
	}
	c.found = append(c.found, f)
}

// events compares a checkpoint with its events. whole says that the checkpoint before is
// the one before; without it, what lies before the first event is nobody's to
// judge.
func (v *verification) events(ctx context.Context, s *checkpoint, whole bool) (coverage, error) {
	after := v.last.until
	if !whole {
		after = before(s.from)
	}
	c, err := v.compare(ctx, s, after)
	if err != nil || s.no <= v.pruned || !s.pruned && !c.lacks() {
		return c, err
	}
	// They may have been pruned between two of our statements.
	if v.pruned, err = prunedThrough(ctx, v.tx, v.tenant); err != nil || s.no > v.pruned {
		return c, err
	}
	s.pruned = true
	return v.compare(ctx, s, after)
}

// lacks says that an event is missing.
func (c *coverage) lacks() bool {
	for _, f := range c.found {
		if f.Kind == Missing {
			return true
		}
	}
	return false
}

// compare walks along the leaves of a checkpoint and the events behind a place.
func (v *verification) compare(ctx context.Context, s *checkpoint, after Position) (coverage, error) {
	c := coverage{}
	leaves, ok := leavesOf(s.leaves)
	gone := s.no <= v.pruned
	switch {
	case gone && !s.pruned:
		c.find(Finding{Kind: CheckpointChanged, Checkpoint: s.no, Message: "its pruned_at was taken off"})
	case !gone && s.pruned:
		c.find(Finding{Kind: CheckpointChanged, Checkpoint: s.no, Message: "it is marked as pruned, and no event says so"})
	}
	if gone {
		c.pruned = int64(len(leaves))
	} else {
		c.covered = int64(len(leaves))
	}
	if gone || !ok {
		leaves = nil
	}
	missing := func(l leaf) {
		c.find(Finding{Kind: Missing, Checkpoint: s.no, Position: l.position.String(), Event: l.position.Event, Message: "the event was covered and is not there"})
	}
	err := eachRow(ctx, v.tx, v.tenant, after, s.until, func(r row) {
		is := leafOf(v.tenant, r)
		c.actual.cover(v.tenant, r)
		if !ok && !gone {
			return // without leaves nothing can be said about it
		}
		for len(leaves) > 0 && leaves[0].position.Compare(r.position) < 0 {
			missing(leaves[0])
			leaves = leaves[1:]
		}
		found := Finding{Checkpoint: s.no, Position: r.position.String(), Event: r.position.Event, At: r.at.UTC()}
		switch {
		case len(leaves) == 0 || leaves[0].position != r.position:
			found.Kind, found.Message = Added, "the event was not there when all before and behind it was covered"
			if gone {
				found.Message = "the event is there, though retention deleted all that was here"
			}
			c.find(found)
			return
		case leaves[0].hash != is.hash:
			found.Kind, found.Message = Changed, "the event is not what was covered"
			c.find(found)
		}
		leaves = leaves[1:]
	})
	for _, l := range leaves {
		missing(l)
	}
	return c, err
}
