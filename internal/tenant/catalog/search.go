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

// The bounds of what is indexed and of a query.
const (
	maxFieldTerms  = 200
	maxSchemaDepth = 3
	maxQueryTerms  = 16
	maxQueryWords  = 200
	// minPrefix is how many characters of a word a query must have to match the
	// words that begin with it.
	minPrefix = 3
)

// The weights of the fields in which a term is found. A term counts once for a
// tool, in the field that weighs most, so that a source gains nothing by
// repeating it.
const (
	weightName        = 2.5
	weightTitle       = 2.2
	weightSource      = 2
	weightArgument    = 1
	weightDescription = 2
	weightArgumentDoc = 0.8
)

// The weights of the ways in which a term of a query matches a term of a tool.
const (
	matchExact   = 1
	matchPrefix  = 0.5
	matchTypo    = 0.7
	matchSynonym = 0.55
	matchFar     = 0.25
	matchPart    = 0.3
)

// bonusName is what a tool gains whose whole name a query matches, in proportion
// for a part of it.
const bonusName = 0.3

// shareQualifier is the weight of a term of a query that qualifies another one,
// such as "new" or "yesterday".
const shareQualifier = 0.5

// Search returns those of the given tools of the catalog that match a text, the
// best first. A text of several words need not match with all of them. The rank
// is by BM25's inverse document frequency, the field, the kind of match, and
// whether the tool reads, writes or destroys as the text asks. A tool that
// destroys comes first only if the text has a word for it, or is its name.
func (c *Catalog) Search(among []*Tool, text string) []*Tool {
	return c.index().rank(among, text)
}

// rank returns those of some tools that match a text, the best first.
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

// index is an inverted index of tools by terms. It never changes.
type index struct {
	size int
	// terms are in order; postings are those of each term.
	terms    []string
	postings map[string][]posting
	// names holds how many terms the name of each tool has.
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

// terms are the terms of a tool, each with the weight of its best field.
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

// nameTerms returns the terms of a tool's name, and of the name that people gave
// it. What is inferred for its full name has no other words.
func (t *Tool) nameTerms() []string {
	return stems(t.Key.Action + " " + t.Described.Name.Entity + " " + t.Described.Name.Action)
}

// schemaTexts returns the names and the descriptions of a schema's fields, down
// to maxSchemaDepth.
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

// search scores tools by the terms of a query. A term that few tools have
// weighs more than one that many have, and a tool that matches all of them more
// than one that matches some, as does one whose name has nothing else.
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

// candidates returns the terms of the index that a term of a query matches, with
// the weight of the match. A misspelt term is one that matches nothing else.
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
	for _, correction := range corrections(term, ix.terms, synonyms.words) {
		ix.match(correction, matchTypo, add)
	}
	return found
}

// match adds the terms that are the given one or a word of it, begin with it, are
// its synonyms, or come with it.
func (ix *index) match(term string, factor float64, add func(candidate string, quality float64)) {
	add(term, matchExact*factor)
	if parts := strings.Split(term, "_"); len(parts) > 1 {
		for _, part := range parts {
			if !isFunctionWord(part) {
				add(part, matchPart*factor)
			}
		}
	}
	for _, synonym := range synonyms.of[term] {
		add(synonym, matchSynonym*factor)
	}
	for _, other := range synonyms.far[term] {
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
