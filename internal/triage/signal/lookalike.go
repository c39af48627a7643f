package signal

import (
	"strings"

	"github.com/countersign-dev/countersign/internal/lookalike"
)

// minJoined is the least length at which a target counts as a part of another
// domain without a hyphen.
const minJoined = 5

// established reports whether a registrable domain is itself a common target of
// imitation or known to the owner.
func (f *finder) established(domain string) bool {
	return f.ownDomain(domain) || f.about.Contacts.has(domain) || f.lex.brands.known(domain, f.lex) ||
		f.lex.freemail[domain] || f.lex.social[domain] || f.lex.tracker[domain] || f.lex.shortener[domain]
}

// imitates returns the domain that host imitates. clearly reports whether it
// can be misread for that domain; otherwise it only has the name among other
// words, as domains of fans, shops and guides have too.
func (f *finder) imitates(host string) (domain string, clearly bool) {
	domain = lookalike.Registrable(host)
	if domain == "" || lookalike.Numeric(host) || f.established(domain) {
		return "", false
	}
	label := lookalike.Shown(lookalike.LabelOf(domain))
	for _, t := range f.targets() {
		if one, ok := t.Imitated(label); ok && !f.lex.brands.innocent[label] && f.typed(one, label, domain) {
			return one.Domain, true
		}
	}
	for _, t := range f.targets() {
		if one, ok := f.token(t, label); ok {
			return one.Domain, false
		}
	}
	return f.prefixed(strings.TrimSuffix(strings.TrimSuffix(host, domain), ".")), false
}

// typed reports whether a label that resembles a target's is meant to be
// mistaken for it. Many words are one letter away from a mail provider: they
// only count for a sender and under the same top-level domain.
func (f *finder) typed(one lookalike.Target, label, domain string) bool {
	return !f.lex.freemail[one.Domain] || lookalike.Canonical(label) == lookalike.Canonical(one.Label) ||
		domain == f.domain && lookalike.TopLevel(domain) == lookalike.TopLevel(one.Domain)
}

// targets returns the possible targets of imitation: the owner's domains, those
// of correspondents, and brands.
func (f *finder) targets() []*lookalike.Targets {
	if f.imitable == nil {
		own := &lookalike.Targets{}
		for _, domain := range f.about.Domains {
			domain = lookalike.Registrable(domain)
			own.Add(lookalike.LabelOf(domain), domain, false)
		}
		f.imitable = []*lookalike.Targets{own, &f.lex.brands.targets}
		if f.about.Contacts != nil {
			f.imitable = append(f.imitable, &f.about.Contacts.targets)
		}
	}
	return f.imitable
}

// token finds a target among the parts of a label between hyphens, or joined to
// words of deceptive domains. Boundaries matter: firstservice contains irs and
// does not imitate it.
func (f *finder) token(t *lookalike.Targets, label string) (lookalike.Target, bool) {
	hyphen := strings.Contains(label, "-")
	_, lured := f.lured(label)
	for part := range strings.SplitSeq(label, "-") {
		one, ok := t.Token(part)
		switch {
		case !ok:
		case hyphen && (lured || !one.Common && (t == &f.lex.brands.targets || len(part) >= minJoined)):
			return one, true
		case !hyphen && t == &f.lex.brands.targets && !one.Common:
			return one, true
		}
		if one, ok := f.joinedToken(t, part); ok {
			return one, true
		}
		if one, ok := t.Imitated(part); hyphen && ok && len(part) > lookalike.MinNear && !f.lex.brands.innocent[part] {
			return one, true
		}
	}
	return lookalike.Target{}, false
}

// joinedToken finds a target at the beginning or the end of a word whose rest
// consists of words of deceptive domains, as in netflixbilling.
func (f *finder) joinedToken(t *lookalike.Targets, word string) (lookalike.Target, bool) {
	for i := lookalike.MinToken; i+lookalike.MinToken <= len(word) && len(word) <= lookalike.MaxLabel; i++ {
		if one, ok := t.Exact(word[:i]); ok && i >= minJoined && !one.Common {
			if n, _ := f.split(word[i:]); n > 0 {
				return one, true
			}
		}
		if one, ok := t.Exact(word[i:]); ok && len(word)-i >= minJoined && !one.Common {
			if n, _ := f.split(word[:i]); n > 0 {
				return one, true
			}
		}
	}
	return lookalike.Target{}, false
}

// prefixed finds an imitated domain, or the name of a brand next to a word of
// deceptive domains, in the labels before a registrable domain.
func (f *finder) prefixed(labels string) string {
	if labels == "" {
		return ""
	}
	parts := strings.FieldsFunc(lookalike.Shown(labels), func(r rune) bool { return r == '.' || r == '-' })
	for i, part := range parts {
		for _, t := range f.targets() {
			one, ok := t.Token(part)
			if !ok {
				one, ok = t.Imitated(part)
				ok = ok && len(part) > lookalike.MinNear && !f.lex.brands.innocent[part]
			}
			if !ok {
				continue
			}
			ownTop := i+1 < len(parts) && parts[i+1] == lookalike.TopLevel(one.Domain)
			isLure := func(j int) bool { return j >= 0 && j < len(parts) && f.lex.lure[parts[j]] }
			if ownTop || t == &f.lex.brands.targets && !one.Common && (isLure(i-1) || isLure(i+1)) {
				return one.Domain
			}
		}
	}
	return ""
}

// lured reports whether a label consists of at least two words of deceptive
// domains, one of them characteristic.
func (f *finder) lured(label string) (words int, strong bool) {
	for part := range strings.SplitSeq(label, "-") {
		n, s := f.split(strings.Trim(part, "0123456789"))
		words, strong = words+n, strong || s
	}
	return words, strong
}

// split counts the words of deceptive domains that make up a part of a label,
// or returns 0.
func (f *finder) split(part string) (words int, strong bool) {
	if len(part) > lookalike.MaxLabel {
		return 0, false
	}
	type best struct {
		words  int
		strong bool
	}
	var ways [lookalike.MaxLabel + 1]best // for each end: the fewest words that reach it
	for end := 1; end <= len(part); end++ {
		for start := max(0, end-14); start < end; start++ {
			if start > 0 && ways[start].words == 0 {
				continue
			}
			telling, ok := f.lex.lure[part[start:end]]
			if n := ways[start].words + 1; ok && (ways[end].words == 0 || n < ways[end].words) {
				ways[end] = best{n, ways[start].strong || telling}
			}
		}
	}
	return ways[len(part)].words, ways[len(part)].strong
}

// lureDomain reports whether a registrable domain consists of words of
// deceptive domains.
func (f *finder) lureDomain(domain string) bool {
	if domain == "" || f.established(domain) {
		return false
	}
	words, strong := f.lured(lookalike.LabelOf(domain))
	return words >= 2 && strong
}
