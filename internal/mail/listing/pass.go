package listing

import (
	"encoding/json"
	"slices"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

// pass is one comparison of a folder with a cursor.
type pass struct {
	Folder
	since cursor
	limit int
	known func() ([]string, error)

	// accounted holds the sorted hashes of the names that need no report as
	// new. remembered reports whether it is complete, and asked whether
	// knownKeys is.
	accounted         []uint64
	remembered, asked bool
	knownKeys         []string

	// digest is over the present entries that are accounted for; present holds
	// their hashes.
	digest  Digest
	present []uint64
}

func (p *pass) run() (Difference, error) {
	if !p.remembered {
		same, err := p.unchanged()
		if err != nil {
			return Difference{}, err
		}
		if same {
			p.accounted = p.present
			return p.finish(Difference{})
		}
		if err := p.ask(); err != nil {
			return Difference{}, err
		}
	}
	var diff Difference
	for _, step := range []func(*Difference) error{p.findNew, p.findGone, p.findFlagged} {
		if err := step(&diff); err != nil {
			return Difference{}, err
		}
	}
	for _, e := range diff.New {
		p.digest.Add(e.Key, e.Flags)
		p.present = append(p.present, keyHash(e.Key))
	}
	slices.Sort(p.present)
	p.accounted = slices.Compact(p.present)
	return p.finish(diff)
}

// unchanged reports whether everything present was accounted for.
func (p *pass) unchanged() (bool, error) {
	err := p.List(func(e Entry) {
		p.digest.Add(e.Key, e.Flags)
		p.present = append(p.present, keyHash(e.Key))
	})
	if err != nil {
		return false, err
	}
	slices.Sort(p.present)
	if p.digest == p.since.Digest {
		return true, nil
	}
	p.digest, p.present = Digest{}, nil
	return false, nil
}

// ask adds the caller's keys to the accounted names if nothing is remembered.
func (p *pass) ask() error {
	if p.asked {
		return nil
	}
	keys, err := p.known()
	if err != nil {
		return err
	}
	p.knownKeys, p.asked = keys, true
	if p.remembered {
		return nil
	}
	for _, key := range keys {
		p.accounted = append(p.accounted, keyHash(key))
	}
	slices.Sort(p.accounted)
	p.remembered = true
	return nil
}

// findNew finds present entries that were not accounted for.
func (p *pass) findNew(diff *Difference) error {
	fresh := first{limit: p.limit, compare: Entry.compare}
	var failed error
	err := p.List(func(e Entry) {
		if !has(p.accounted, keyHash(e.Key)) {
			late, err := p.late(e)
			if err != nil {
				failed = err
			}
			if late {
				fresh.add(e)
				return
			}
		}
		p.account(e)
	})
	slices.Sort(p.present)
	diff.New, diff.More = fresh.sorted(), fresh.cut
	return firstError(err, failed)
}

func (p *pass) account(e Entry) {
	p.digest.Add(e.Key, e.Flags)
	p.present = append(p.present, keyHash(e.Key))
}

// late reports whether a message is newer than the end at which the cursor
// began.
func (p *pass) late(e Entry) (bool, error) {
	if p.since.After == 0 {
		return true, nil
	}
	at, err := p.Touched(e)
	return at >= p.since.After, err
}

// findGone finds accounted entries that are not present. A rename during a
// listing can hide a name, so a name is gone only if a second listing lacks it
// too.
func (p *pass) findGone(diff *Difference) error {
	if !slices.ContainsFunc(p.accounted, func(key uint64) bool { return !has(p.present, key) }) {
		return nil
	}
	if err := p.ask(); err != nil {
		return err
	}
	absent := map[string]bool{}
	for _, key := range p.knownKeys {
		if !has(p.present, keyHash(key)) {
			absent[key] = true
		}
	}
	for _, e := range diff.New { // known, but not remembered
		delete(absent, e.Key)
	}
	if len(absent) == 0 {
		return nil
	}
	err := p.List(func(e Entry) {
		if absent[e.Key] {
			delete(absent, e.Key)
			p.account(e)
		}
	})
	slices.Sort(p.present)
	for key := range absent {
		diff.Gone = append(diff.Gone, key)
	}
	slices.Sort(diff.Gone)
	return err
}

// findFlagged finds accounted entries whose flags may have changed.
func (p *pass) findFlagged(diff *Difference) error {
	if p.digest == p.since.Digest || len(p.accounted) == 0 {
		return nil
	}
	listed := map[string]int{}
	return p.List(func(e Entry) {
		if !p.digest.MayDiffer(&p.since.Digest, e.Key) || !has(p.accounted, keyHash(e.Key)) {
			return
		}
		// A rename during the listing can show a name twice; the later one is
		// newer.
		if at, twice := listed[e.Key]; twice {
			diff.Flagged[at] = e
			return
		}
		listed[e.Key] = len(diff.Flagged)
		diff.Flagged = append(diff.Flagged, e)
	})
}

func (p *pass) finish(diff Difference) (Difference, error) {
	next, err := json.Marshal(&cursor{Digest: p.digest, After: p.since.After})
	diff.Next = mailbox.Cursor(next)
	return diff, err
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func has(sorted []uint64, key uint64) bool {
	_, found := slices.BinarySearch(sorted, key)
	return found
}
