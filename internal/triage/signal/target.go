package signal

import "strings"

// target is a domain that may be imitated.
type target struct {
	label, domain string
	common        bool
}

// targets is an index over domains that may be imitated. The zero value is
// empty.
type targets struct {
	byLabel     map[string]target
	byCanonical map[string]target
	// byDeletion maps each target's label with one letter deleted to the
	// target: two words of Damerau distance 1 share such a form, or one is such
	// a form of the other.
	byDeletion map[string][]target
}

// minNear is the least length at which one changed letter counts, minToken that
// at which a whole label counts as a part of another domain, and minJoined that
// at which it counts without a hyphen.
const (
	minNear   = 5
	minToken  = 3
	minJoined = 5
	maxLabel  = 40
)

func (t *targets) add(label, domain string, common bool) {
	if t.byLabel == nil {
		t.byLabel, t.byCanonical, t.byDeletion = make(map[string]target), make(map[string]target), make(map[string][]target)
	}
	one := target{label, domain, common}
	t.byLabel[label] = one
	if len(label) >= 4 {
		t.byCanonical[canonical(label)] = one
	}
	if len(label) < minNear || len(label) > maxLabel || common && len(label) <= minNear {
		return
	}
	t.byDeletion[label] = append(t.byDeletion[label], one)
	var short [maxLabel]byte
	for i := range min(len(label), maxLabel) {
		without := string(deleted(&short, label, i))
		t.byDeletion[without] = append(t.byDeletion[without], one)
	}
}

// deleted writes a word without one of its letters.
func deleted(to *[maxLabel]byte, word string, i int) []byte {
	n := copy(to[:], word[:i])
	return to[:n+copy(to[n:], word[i+1:])]
}

// imitated returns the target that a word imitates.
func (t *targets) imitated(word string) (target, bool) {
	if len(t.byLabel) == 0 || len(word) > maxLabel {
		return target{}, false
	}
	if one, ok := t.byCanonical[canonical(word)]; ok && one.label != word {
		return one, true
	}
	if len(word) < minNear {
		return target{}, false
	}
	if _, itself := t.byLabel[word]; itself {
		return target{}, false
	}
	for _, one := range t.byDeletion[word] {
		if near(word, one.label) {
			return one, true
		}
	}
	var short [maxLabel]byte
	for i := range len(word) {
		for _, one := range t.byDeletion[string(deleted(&short, word, i))] {
			if near(word, one.label) {
				return one, true
			}
		}
	}
	return target{}, false
}

// token returns the target whose whole label is a word.
func (t *targets) token(word string) (target, bool) {
	one, ok := t.byLabel[word]
	return one, ok && len(word) >= minToken && strings.Trim(word, "0123456789") != ""
}
