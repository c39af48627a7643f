package catalog

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Bounds of indexed texts and of a query.
const (
	maxFieldTerms  = 200
	maxSchemaDepth = 3
	maxQueryTerms  = 16
	maxQueryWords  = 200
	// minPrefix is the minimum length of a query term for prefix matches.
	minPrefix = 3
)

// The weights of the fields in which a term occurs. A term counts once per tool,
// in the field with the greatest weight, so that repetition gains nothing.
const (
	weightName        = 2.5
	weightTitle       = 2.2
	weightSource      = 2
	weightArgument    = 1
	weightDescription = 2
	weightArgumentDoc = 0.8
)

// The weights of the ways in which a query term matches a term of a tool.
const (
	matchExact   = 1
	matchPrefix  = 0.5
	matchTypo    = 0.7
	matchSynonym = 0.55
	matchFar     = 0.25
	matchPart    = 0.3
)

// bonusName is added to the score of a tool whose whole name a query matches, or
// a proportional part of it.
const bonusName = 0.3

// shareQualifier is the weight of a query term that qualifies another one, such
// as "new" or "yesterday".
const shareQualifier = 0.5

// Search returns the given tools that match a text, best first. Not all words of
// the text need to match. The rank is computed from BM25's inverse document
// frequency, the field, the kind of match, and whether the tool's class (read,
// write, destroy) is that of the text. A destructive tool comes first only if
// the text has a word for it or is its name.
func (c *Catalog) Search(among []*Tool, text string) []*Tool {
	return c.index().rank(among, text)
}

// rank returns the given tools that match a text, best first.
func (ix *index) rank(among []*Tool, text string) []*Tool {
	scores := ix.search(queryTerms(text))
	allowed := make(map[*Tool]bool, len(among))
	for _, t := range among {
		allowed[t] = true
	}
	plain, question := strings.ToLower(strings.TrimSpace(text)), classOfQuestion(text)
	for t := range allowed {
		if scores[t] > 0 {
			scores[t] *= classFactor(question, t.class())
		}
		// A tool whose name is the text comes first.
		if t.named(plain) {
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
		return cmp.Or(cmp.Compare(scores[b], scores[a]), compareKeys(a, b))
	})
	if question != classDestroy {
		destructiveLater(found, plain)
	}
	return found
}

// index is an immutable inverted index of tools by terms.
type index struct {
	size int
	// terms are sorted; postings are the postings of each term.
	terms    []string
	postings map[string][]posting
	// names holds the number of terms in the name of each tool.
	names map[*Tool]int
}

type posting struct {
	tool   *Tool
	weight float64
}

func newIndex(tools map[policy.Key]*Tool) *index {
	ix := &index{size: len(tools), postings: make(map[string][]posting), names: make(map[*Tool]int, len(tools))}
	for _, t := range tools {
		ix.names[t] = len(t.nameTerms())
		for term, weight := range t.terms() {
			ix.postings[term] = append(ix.postings[term], posting{t, weight})
		}
	}
	ix.terms = slices.Sorted(maps.Keys(ix.postings))
	return ix
}

// terms returns the terms of a tool, each with the weight of its best field.
func (t *Tool) terms() map[string]float64 {
	found := make(map[string]float64)
	add := func(weight float64, terms []string) {
		for _, term := range terms[:min(len(terms), maxFieldTerms)] {
			found[term] = max(found[term], weight)
		}
	}
	add(weightName, t.nameTerms())
	add(weightSource, stems(t.Key.Source+" "+t.Described.Name.Module))
	add(weightTitle, stems(t.Title))
	add(weightDescription, stems(t.Description))
	names, docs := schemaTexts(t.InputSchema)
	add(weightArgument, stems(names))
	add(weightArgumentDoc, stems(docs))
	return found
}

// nameTerms returns the terms of a tool's name, and of the name set by
// operators. An inferred full name has no other words.
func (t *Tool) nameTerms() []string {
	return stems(t.Key.Action + " " + t.Described.Name.Entity + " " + t.Described.Name.Action)
}

// schemaTexts returns the names and the descriptions of a schema's fields, to a
// depth of maxSchemaDepth.
func schemaTexts(schema json.RawMessage) (names, docs string) {
	var doc any
	if json.Unmarshal(schema, &doc) != nil {
		return "", ""
	}
	var foundNames, foundDocs []string
	var walk func(node any, depth int)
	walk = func(node any, depth int) {
		object, ok := node.(map[string]any)
		if !ok || depth > maxSchemaDepth {
			return
		}
		if text, ok := object["description"].(string); ok && depth > 0 {
			foundDocs = append(foundDocs, text)
		}
		properties, _ := object["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			foundNames = append(foundNames, name)
			walk(properties[name], depth+1)
		}
		walk(object["items"], depth+1)
	}
	walk(doc, 0)
	return strings.Join(foundNames, " "), strings.Join(foundDocs, " ")
}

// search scores tools by the terms of a query. Rare terms weigh more than common
// ones. A tool that matches all terms scores higher than one that matches some,
// and so does one whose name has no other terms.
func (ix *index) search(query []string) map[*Tool]float64 {
	scores, matched, asked := make(map[*Tool]float64), make(map[*Tool]float64), 0.0
	inName := make(map[*Tool]map[string]bool)
	for _, term := range query {
		share := 1.0
		if isQualifier(term) {
			share = shareQualifier
		}
		asked += share
		best := make(map[*Tool]float64)
		for candidate, quality := range ix.candidates(term) {
			for _, p := range ix.postings[candidate] {
				best[p.tool] = max(best[p.tool], quality*p.weight)
				if p.weight == weightName {
					if inName[p.tool] == nil {
						inName[p.tool] = make(map[string]bool)
					}
					inName[p.tool][candidate] = true
				}
			}
		}
		n := float64(len(best))
		rarity := math.Log(1 + (float64(ix.size)-n+0.5)/(n+0.5))
		for t, weight := range best {
			scores[t] += share * weight * rarity
			matched[t] += share
		}
	}
	for t := range scores {
		named := float64(len(inName[t])) / float64(max(1, ix.names[t]))
		scores[t] *= math.Sqrt(matched[t]/asked) * (1 + bonusName*named)
	}
	return scores
}

// candidates returns the terms of the index that match a query term, with the
// weight of each match. A term without a match is treated as misspelt.
func (ix *index) candidates(term string) map[string]float64 {
	found := make(map[string]float64)
	add := func(candidate string, quality float64) {
		if len(ix.postings[candidate]) > 0 {
			found[candidate] = max(found[candidate], quality)
		}
	}
	ix.match(term, 1, add)
	if len(found) > 0 {
		return found
	}
	for _, correction := range corrections(term, ix.terms, synonyms().words) {
		ix.match(correction, matchTypo, add)
	}
	return found
}

// match adds the terms that equal the given one, contain it as a word, begin
// with it, are its synonyms, or are associated with it.
func (ix *index) match(term string, factor float64, add func(candidate string, quality float64)) {
	add(term, matchExact*factor)
	if parts := strings.Split(term, "_"); len(parts) > 1 {
		for _, part := range parts {
			if !isFunctionWord(part) {
				add(part, matchPart*factor)
			}
		}
	}
	for _, synonym := range synonyms().of[term] {
		add(synonym, matchSynonym*factor)
	}
	for _, other := range synonyms().associated[term] {
		add(other, matchFar*factor)
	}
	if len(term) < minPrefix {
		return
	}
	from, _ := slices.BinarySearch(ix.terms, term)
	for _, candidate := range ix.terms[from:] {
		if !strings.HasPrefix(candidate, term) {
			break
		}
		if candidate != term {
			add(candidate, matchPrefix*factor*float64(len(term))/float64(len(candidate)))
		}
	}
}
