package signal

import (
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/lookalike"
)

// brand is a name that deceptive mail uses.
type brand struct {
	name    string // words separated by spaces
	domains []string
	// common reports whether the name is also a word or a person's name.
	common bool
}

func (b *brand) words() string { return b.name }

// brands is an index over the brands.
type brands struct {
	all     []brand
	domains map[string]bool
	targets lookalike.Targets
	// innocent holds labels that resemble a name but mean something else.
	innocent map[string]bool
	// first is the number of the first phrase of the brands. Each brand has
	// two: its name, and its name next to a service.
	first int
}

func newBrands(lines []string) *brands {
	b := &brands{domains: make(map[string]bool), innocent: make(map[string]bool)}
	for _, line := range lines {
		words := strings.Fields(line)
		if strings.HasPrefix(line, "!") {
			for _, word := range words {
				b.innocent[strings.TrimPrefix(word, "!")] = true
			}
			continue
		}
		name, common := strings.CutPrefix(words[0], "~")
		one := brand{name: strings.ReplaceAll(strings.ReplaceAll(name, "_", " "), "-", " "), domains: words[1:], common: common}
		b.all = append(b.all, one)
		for _, domain := range one.domains {
			b.domains[domain] = true
		}
		if label := lookalike.LabelOf(one.domains[0]); strings.ReplaceAll(name, "_", "") == label {
			b.targets.Add(label, one.domains[0], common)
		}
	}
	return b
}

// of returns the brand of a phrase.
func (b *brands) of(number int) *brand {
	return &b.all[(number-b.first)/2]
}

// owns reports whether a registrable domain is the brand's: one of the list, or
// the brand's label under a country's top-level domain.
func (b *brand) owns(domain string, lex *lexicon) bool {
	for _, own := range b.domains {
		if domain == own || lookalike.LabelOf(domain) == lookalike.LabelOf(own) && len(lookalike.TopLevel(domain)) == 2 && !lex.tld[lookalike.TopLevel(domain)] {
			return true
		}
	}
	return false
}

// known reports whether a registrable domain belongs to any brand.
func (b *brands) known(domain string, lex *lexicon) bool {
	if b.domains[domain] {
		return true
	}
	t, ok := b.targets.Exact(lookalike.LabelOf(domain))
	return ok && !t.Common && len(lookalike.TopLevel(domain)) == 2 && !lex.tld[lookalike.TopLevel(domain)]
}

func sorted(words map[string]bool) []string { return slices.Sorted(maps.Keys(words)) }
