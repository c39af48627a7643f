package corpus

import (
	"hash/fnv"
	"slices"
)

// locked is the number of parts of a set, one of which is locked.
const locked = 3

// Locked reports whether an example is in the locked third of its set. The rule
// depends on the name of the set and the example's id alone, and never changes:
// training and tuning use the other examples, and the locked ones are looked at
// in recorded runs only. The project's training mail has no locked part, since
// no figure is measured on it.
func Locked(set, id string) bool {
	if !slices.Contains(Measured(), set) {
		return false
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte("locked third of " + set + "\x00" + id))
	sum := h.Sum64()
	return (sum^sum>>32)%locked == 0
}

// Measured returns the names of the sets on which figures are measured. Each
// has a locked third.
func Measured() []string {
	return []string{NameMessages, NamePhishing, NameRequests, NameSpamAssassin, NameFixture, NameLanguages, NameLures}
}

// Open returns the source without the locked examples.
func (s Source) Open() Source {
	return s.Subset(func(e Example) bool { return !Locked(s.Name, e.ID) })
}

// LockedPart returns the source with the locked examples alone.
func (s Source) LockedPart() Source {
	return s.Subset(func(e Example) bool { return Locked(s.Name, e.ID) })
}
