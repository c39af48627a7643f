package signal

import (
	"cmp"
	"embed"
	"fmt"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/internal/lookalike"
)

// list is a list of phrases.
type list int

const (
	urgency list = iota
	credential
	payment
	bank
	giftCard
	advanceFee
	extortion
	secrecy
	office
	internal
	oneTimeCode
	receipt
	shipping
	security
	unsubscribe
	deadline
	instruction
	hint
	keep
	change
	brandName  // the names of brands
	brandClaim // the name of a brand next to a word of its services
	listCount
)

// phraseFiles are the lists of phrases that have a file.
func phraseFiles() map[list]string {
	return map[list]string{
		urgency: "urgency", credential: "credential", payment: "payment", bank: "bank", giftCard: "giftcard",
		advanceFee: "advancefee", extortion: "extortion", secrecy: "secrecy", office: "office", internal: "internal",
		oneTimeCode: "code", receipt: "receipt", shipping: "shipping", security: "security", unsubscribe: "unsubscribe",
		deadline: "deadline", instruction: "instruction", hint: "hint", keep: "keep", change: "change",
	}
}

//go:embed words/*.txt
var wordFiles embed.FS

// lexicon is the content of all lists.
type lexicon struct {
	phrases phrases
	// Domains of public mail providers, social networks and so on.
	freemail, social, tld, shortener, tracker map[string]bool
	// service holds words that, next to a brand's name, claim to speak for the
	// brand.
	service map[string]bool
	// lure holds the words of deceptive domains; true marks those of which at
	// least one is required.
	lure   map[string]bool
	brands *brands
}

// loaded is the lexicon. A test checks that the lists are valid.
var loaded = sync.OnceValue(func() *lexicon {
	l, _ := load()
	return l
})

func load() (*lexicon, error) {
	l := &lexicon{phrases: phrases{words: make(map[string]uint32)}, lure: make(map[string]bool)}
	var first error
	keep := func(err error) {
		first = cmp.Or(first, err)
	}
	for which := range listCount {
		if name, ok := phraseFiles()[which]; ok {
			keep(l.phrases.addPhrases(which, lines(name)))
		}
	}
	l.freemail, l.social, l.tld = members(lookalike.Providers()), set("social"), set("tld")
	l.shortener, l.tracker, l.service = set("shortener"), set("tracker"), set("service")
	for word := range set("lure") {
		plain, strong := strings.CutPrefix(word, "+")
		l.lure[plain] = strong
	}
	l.brands = newBrands(lookalike.Brands())
	for _, b := range l.brands.all {
		keep(l.phrases.addPhrases(brandName, []string{b.words()}))
		keep(l.phrases.addPhrases(brandClaim, []string{b.words() + " *1 " + strings.Join(sorted(l.service), "|")}))
	}
	l.brands.first = l.phrases.lists - 2*len(l.brands.all) + 1
	return l, first
}

// lines returns the entries of a list.
func lines(name string) []string {
	raw, err := wordFiles.ReadFile("words/" + name + ".txt")
	if err != nil {
		return []string{fmt.Sprintf("*%s*", name)} // not a phrase, so that the test of the lists fails
	}
	var all []string
	for line := range strings.Lines(string(raw)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// set returns the words of a list.
func set(name string) map[string]bool { return members(lines(name)) }

// members returns the words of lines.
func members(lines []string) map[string]bool {
	words := make(map[string]bool)
	for _, line := range lines {
		for word := range strings.FieldsSeq(line) {
			words[word] = true
		}
	}
	return words
}
