package classify

import (
	_ "embed" // the groups of words
	"slices"
	"strings"
)

//go:embed groups.txt
var groupsText string

// maxGroups limits the groups, which are bits of a number.
const maxGroups = 64

// vocabulary finds groups of words in texts.
type vocabulary struct {
	scale Scale
	// groupsOf maps the hash of a word or phrase to the set of its groups.
	groupsOf map[uint64]uint64
	// names are the groups in the order of their bits.
	names []string
	// begins holds the hashes of first words of phrases.
	begins map[uint64]bool
}

func newVocabulary(scale Scale) vocabulary {
	v := vocabulary{scale: scale, groupsOf: map[uint64]uint64{}, begins: map[uint64]bool{}}
	for line := range strings.Lines(groupsText) {
		name, phrases, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		at := slices.Index(v.names, name)
		if at < 0 {
			at = len(v.names)
			v.names = append(v.names, name)
		}
		bit := uint64(1) << at
		for phrase := range strings.SplitSeq(phrases, ",") {
			words := v.words(phrase, 3)
			if len(words) == 0 {
				continue
			}
			v.groupsOf[phraseHash(words)] |= bit
			if len(words) > 1 {
				v.begins[words[0].hash] = true
			}
		}
	}
	return v
}

func phraseHash(words []word) uint64 {
	h := words[0].hash
	for _, w := range words[1:] {
		h = pair(h, w.hash)
	}
	return h
}

// count returns the number of occurrences of each group in the words.
func (v vocabulary) count(words []word) [maxGroups]int {
	var counts [maxGroups]int
	for i := range words {
		v.countAt(words[i:], &counts)
	}
	return counts
}

// countAt counts the groups of the phrases at the beginning of the words.
func (v vocabulary) countAt(words []word, counts *[maxGroups]int) {
	longest := 1
	if v.begins[words[0].hash] {
		longest = min(3, len(words))
	}
	for n := 1; n <= longest; n++ {
		set := v.groupsOf[phraseHash(words[:n])]
		for bit := 0; set != 0; bit++ {
			if set&1 != 0 {
				counts[bit]++
			}
			set >>= 1
		}
	}
}

// together are the groups of which every two that occur in a message make a
// feature: a time limit with a loss is another thing than each alone.
func together() []string {
	return []string{"urgency", "harm", "today", "deadline", "ask", "inform", "market", "private", "wait", "lose", "propose", "amend"}
}

// pairs adds a feature for every two groups that occur together.
func (v vocabulary) pairs(c *collector, subject, body []word) {
	s, b := v.count(subject), v.count(body)
	var at []int
	for _, name := range together() {
		if bit := slices.Index(v.names, name); bit >= 0 && s[bit]+b[bit] > 0 {
			at = append(at, bit)
		}
	}
	for i, first := range at {
		for _, second := range at[:i] {
			c.add(spaceFact, mix(uint64(first)<<40|uint64(second)<<32|1))
		}
	}
}

// groups adds a feature for the number of occurrences of each group.
func (v vocabulary) groups(c *collector, space uint64, words []word, place uint64) {
	counts := v.count(words)
	for bit, n := range counts[:len(v.names)] {
		for level := range steps(n, 0, 1, 3, 7) {
			c.add(space, mix(uint64(bit)<<16|uint64(level)<<8|place))
		}
	}
}
