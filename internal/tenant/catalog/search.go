package catalog

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strings"
	"unicode"
)

// The bounds of what is searched and of what is searched for.
const (
	maxDescriptionTerms = 200
	maxQueryTerms       = 16
	// minPrefix is how much of a word must be given for what begins with it.
	minPrefix = 3
)

// The weights of the places where a word is found. A word counts once for a
// tool, where it weighs most, so that a source gains nothing by repeating it.
const (
	weightName        = 8
	weightTitle       = 4
	weightArgument    = 2
	weightDescription = 1
)

// Search returns those of some tools of the snapshot that a text fits, the
// best first. A text of several words need not fit with all of them.
func (c *Catalog) Search(among []*Tool, text string) []*Tool {
	query := terms(text)
	query = query[:min(len(query), maxQueryTerms)]
	scores := c.index().search(query)
	allowed := make(map[*Tool]bool, len(among))
	for _, t := range among {
		allowed[t] = true
	}
	plain := strings.ToLower(strings.TrimSpace(text))
	for t := range allowed {
		// What is called by its name comes first.
		if plain == strings.ToLower(t.Key.String()) || plain == strings.ToLower(t.Key.Action) || plain == t.FullName.String() {
			scores[t] += math.MaxInt32
		}
	}
	var found []*Tool
	for t, score := range scores {
		if allowed[t] && score > 0 {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b *Tool) int {
		return cmp.Or(cmp.Compare(scores[b], scores[a]), strings.Compare(a.Key.String(), b.Key.String()))
	})
	return found
}

// index finds tools by words. It never changes.
type index struct {
	size int
	// words are in order; at holds where each is found.
	words []string
	at    map[string][]posting
}

type posting struct {
	tool   *Tool
	weight float64
}

func newIndex(tools map[string][]*Tool) *index {
	ix := &index{at: make(map[string][]posting)}
	for _, same := range tools {
		for _, t := range same {
			ix.size++
			for word, weight := range t.weights() {
				ix.at[word] = append(ix.at[word], posting{t, weight})
			}
		}
	}
	for word := range ix.at {
		ix.words = append(ix.words, word)
	}
	slices.Sort(ix.words)
	return ix
}

// weights are the words of a tool, with what each weighs most.
func (t *Tool) weights() map[string]float64 {
	found := make(map[string]float64)
	add := func(weight float64, words []string) {
		for _, w := range words {
			found[w] = max(found[w], weight)
		}
	}
	add(weightName, terms(t.Key.Source+" "+t.Key.Action+" "+t.FullName.String()))
	add(weightTitle, terms(t.Title))
	add(weightArgument, terms(strings.Join(arguments(t.InputSchema), " ")))
	described := terms(t.Description)
	add(weightDescription, described[:min(len(described), maxDescriptionTerms)])
	return found
}

// arguments are the names at the top of a schema.
func arguments(schema json.RawMessage) []string {
	var doc struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &doc) != nil {
		return nil
	}
	names := make([]string, 0, len(doc.Properties))
	for name := range doc.Properties {
		names = append(names, name)
	}
	return names
}

// search weighs tools by the words of a query. A word that few tools have says
// more than one that many have, and a tool that has all of them more than one
// that has some.
func (ix *index) search(query []string) map[*Tool]float64 {
	scores, matched := make(map[*Tool]float64), make(map[*Tool]int)
	for _, q := range query {
		best := make(map[*Tool]float64)
		from, _ := slices.BinarySearch(ix.words, q)
		for _, word := range ix.words[from:] {
			if !strings.HasPrefix(word, q) || word != q && len(q) < minPrefix {
				break
			}
			// A part of a word counts for as much as it is of it, and never for
			// as much as the word.
			part := 1.0
			if word != q {
				part = 0.8 * float64(len(q)) / float64(len(word))
			}
			for _, p := range ix.at[word] {
				best[p.tool] = max(best[p.tool], part*p.weight)
			}
		}
		rarity := math.Log(1 + float64(ix.size)/float64(max(len(best), 1)))
		for t, weight := range best {
			scores[t] += weight * rarity
			matched[t]++
		}
	}
	for t := range scores {
		scores[t] *= float64(matched[t]) / float64(len(query))
	}
	return scores
}

// terms are the words of a text for searching, each once: in small letters,
// without the s of a plural, taken apart before capitals. Characters that do
// not show divide nothing.
func terms(text string) []string {
	var found []string
	seen := make(map[string]bool)
	var at []rune
	end := func() {
		w := string(at)
		at = at[:0]
		if len(w) > minPrefix && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") {
			w = w[:len(w)-1]
		}
		if w != "" && !seen[w] {
			seen[w] = true
			found = append(found, w)
		}
	}
	runes := []rune(text)
	for i, r := range runes {
		switch {
		case unicode.Is(unicode.Cf, r):
			continue
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r):
			end()
			continue
		case unicode.IsUpper(r) && i > 0 && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsUpper(runes[i-1]) && unicode.IsLower(runes[i+1])):
			end()
		}
		at = append(at, unicode.ToLower(r))
	}
	end()
	return found
}
