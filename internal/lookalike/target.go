package lookalike

import "strings"

// Target is a domain that may be imitated.
type Target struct {
	Label, Domain string
	Common        bool
}

// Targets is an index over domains that may be imitated. The zero value is
// empty.
type Targets struct {
	byLabel     map[string]Target
	byCanonical map[string]Target
	// byDeletion maps each target's label with one letter deleted to the
	// target: two words of Damerau distance 1 share such a form, or one is such
	// a form of the other.
	byDeletion map[string][]Target
}

// MinNear is the least length at which one changed letter counts, MinToken that
// at which a whole label counts as a part of another domain, and MaxLabel the
// length up to which labels are compared.
const (
	MinNear  = 5
	MinToken = 3
	MaxLabel = 40
)

// Exact returns the target with a label.
func (t *Targets) Exact(label string) (Target, bool) {
	one, ok := t.byLabel[label]
	return one, ok
}

// Add adds a domain with its label. common reports whether the label is also a
// word or a person's name.
func (t *Targets) Add(label, domain string, common bool) {
	if t.byLabel == nil {
		t.byLabel, t.byCanonical, t.byDeletion = make(map[string]Target), make(map[string]Target), make(map[string][]Target)
	}
	one := Target{label, domain, common}
	t.byLabel[label] = one
	if len(label) >= 4 {
		t.byCanonical[Canonical(label)] = one
	}
	if len(label) < MinNear || len(label) > MaxLabel || common && len(label) <= MinNear {
		return
	}
	t.byDeletion[label] = append(t.byDeletion[label], one)
	var short [MaxLabel]byte
	for i := range min(len(label), MaxLabel) {
		without := string(deleted(&short, label, i))
		t.byDeletion[without] = append(t.byDeletion[without], one)
	}
}

// deleted writes a word without one of its letters.
func deleted(to *[MaxLabel]byte, word string, i int) []byte {
	n := copy(to[:], word[:i])
	return to[:n+copy(to[n:], word[i+1:])]
}

// Imitated returns the target that a word imitates.
func (t *Targets) Imitated(word string) (Target, bool) {
	if len(t.byLabel) == 0 || len(word) > MaxLabel {
		return Target{}, false
	}
	if one, ok := t.byCanonical[Canonical(word)]; ok && one.Label != word {
		return one, true
	}
	if len(word) < MinNear {
		return Target{}, false
	}
	if _, itself := t.byLabel[word]; itself {
		return Target{}, false
	}
	for _, one := range t.byDeletion[word] {
		if Near(word, one.Label) {
			return one, true
		}
	}
	var short [MaxLabel]byte
	for i := range len(word) {
		for _, one := range t.byDeletion[string(deleted(&short, word, i))] {
			if Near(word, one.Label) {
				return one, true
			}
		}
	}
	return Target{}, false
}

// Token returns the target whose whole label is a word.
func (t *Targets) Token(word string) (Target, bool) {
	one, ok := t.byLabel[word]
	return one, ok && len(word) >= MinToken && strings.Trim(word, "0123456789") != ""
}
