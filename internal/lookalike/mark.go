package lookalike

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/visible"
)

// Kind is the way in which a name misleads.
type Kind string

// The kinds.
const (
	// Hidden is a name with invisible characters.
	Hidden Kind = "hidden"
	// Claim is a name that stands behind another one, as in
	// "ana@example.org" <mal@example.net>.
	Claim Kind = "claim"
	// Letters is a name whose letters or digits look like those of a known name.
	Letters Kind = "letters"
	// Prefix is a host that begins with a known domain and belongs to another.
	Prefix Kind = "prefix"
	// Spelling is a domain that is one letter away from a known one.
	Spelling Kind = "spelling"
	// Scripts is a name that mixes alphabets.
	Scripts Kind = "scripts"
)

// Known is a name that people know.
type Known struct {
	// Name is a registrable domain or a mail address.
	Name string
	// Blocked reports whether it is on a do-not-contact list.
	Blocked bool
}

// Mark is the reason why a name in a call may be taken for another.
type Mark struct {
	Name Name
	Kind Kind
	// Like is the known name, empty for none. Public reports whether it is well known.
	Like            string
	Public, Blocked bool
	// Differs is the difference, in words.
	Differs string
}

// Warning returns the marks of arguments that need no name of a tenant, in a line, for
// readers who may not read contacts; "" without any. Of more marks than most it returns
// the number.
func Warning(args json.RawMessage, most int) string {
	var b strings.Builder
	count := 0
	for _, name := range Names(args) {
		if m, is := Check(name, nil); is {
			if count++; count <= most {
				m.Differs = cut(m.Differs)
				b.WriteString(" · ⚠ " + cut(m.Value()) + " " + m.Text(false))
			}
		}
	}
	if count > most {
		fmt.Fprintf(&b, " · ⚠ and %d more", count-most)
	}
	return b.String()
}

// maxWarned bounds a name in a Warning, in characters.
const maxWarned = 100

// cut returns the beginning of a text that is longer than maxWarned.
func cut(text string) string {
	if runes := []rune(text); len(runes) > maxWarned {
		return string(runes[:maxWarned]) + "…"
	}
	return text
}

// Value returns the name as it is written, with hidden characters escaped.
func (m Mark) Value() string { return visible.Text(m.Name.Written) }

// Text returns the reason in words; without the known name, unless it is public or
// all may be shown.
func (m Mark) Text(all bool) string {
	like, is := m.Like, "is known"
	switch {
	case m.Blocked:
		is = "is on the do-not-contact list"
	case m.Public:
		is = "is well known"
	}
	if !all && !m.Public {
		like = "an address"
	}
	switch m.Kind {
	case Hidden:
		return "has invisible characters: " + m.Differs
	case Claim:
		return "follows another address: " + m.Differs
	case Letters:
		return fmt.Sprintf("looks like %s, which %s; differs in %s", like, is, m.Differs)
	case Prefix:
		return fmt.Sprintf("begins with %s, which %s, and belongs to %s", like, is, m.Differs)
	case Spelling:
		return fmt.Sprintf("resembles %s, which %s; differs in %s", like, is, m.Differs)
	case Scripts:
		return "mixes alphabets: " + m.Differs
	}
	return ""
}

// Keys of names: two names that may be taken for each other share one.
const (
	exactKey   = "="
	lettersKey = "~"
	spelledKey = "-"
	addressKey = "@"
)

// Stored returns the names to remember of a name that a person approved, each with its
// keys: the address, and the registrable domain unless everybody knows it.
func (n Name) Stored() map[string][]string {
	if n.Bare || n.Beside || n.Host != plain(n.Host) || n.Local != plain(n.Local) {
		return nil
	}
	stored := make(map[string][]string)
	domain := Registrable(n.Host)
	if n.Local != "" {
		stored[n.Local+"@"+n.Host] = []string{exactKey + n.Local + "@" + n.Host, addressOf(n)}
	}
	if !wellKnown().established(domain) {
		stored[domain] = domainKeys(domain)
	}
	return stored
}

// Keys returns the keys of the known names that the name may be taken for.
func (n Name) Keys() []string {
	keys := domainKeys(Registrable(n.Host))
	if n.Local != "" {
		keys = append(keys, addressOf(n), exactKey+n.Local+"@"+n.Host)
	}
	for _, run := range prefixes(n.Host) {
		keys = append(keys, exactKey+run)
	}
	return keys
}

// Plain returns the address and the registrable domain with the Latin letters that
// theirs look like, for lists without keys; each is empty if these are the same.
func (n Name) Plain() (email, domain string) {
	host := plain(n.Host)
	if n.Local != "" && (host != n.Host || plain(n.Local) != n.Local) {
		email = plain(n.Local) + "@" + host
	}
	if host != n.Host {
		domain = Registrable(host)
	}
	return email, domain
}

func plain(text string) string { return Skeleton(text) }

func addressOf(n Name) string { return addressKey + Canonical(n.Local) + "@" + plain(n.Host) }

func domainKeys(domain string) []string {
	label := plain(LabelOf(domain))
	keys := []string{exactKey + domain, spelledKey + label, lettersKey + Canonical(label)}
	if len(label) < MinNear || len(label) > MaxLabel || strings.ContainsFunc(label, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return keys
	}
	var short [MaxLabel]byte
	for i := range len(label) {
		keys = append(keys, spelledKey+string(deleted(&short, label, i)))
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// prefixes returns the domains that the labels before the registrable domain of a host
// may be read as.
func prefixes(host string) []string {
	before := strings.TrimSuffix(strings.TrimSuffix(host, Registrable(host)), ".")
	labels := strings.Split(before, ".")
	var runs []string
	for i := 0; i+1 < len(labels) && i < 8; i++ {
		for j := i + 2; j <= min(i+3, len(labels)); j++ {
			runs = append(runs, strings.Join(labels[i:j], "."))
		}
	}
	return runs
}

// public holds the domains that everybody knows.
type public struct {
	domains  map[string]bool
	innocent map[string]bool
	provider map[string]bool
	targets  Targets
}

var wellKnown = sync.OnceValue(func() *public {
	p := &public{domains: make(map[string]bool), innocent: make(map[string]bool), provider: make(map[string]bool)}
	for _, line := range Brands() {
		words := strings.Fields(line)
		if strings.HasPrefix(line, "!") {
			for _, word := range words {
				p.innocent[strings.TrimPrefix(word, "!")] = true
			}
			continue
		}
		name, common := strings.CutPrefix(words[0], "~")
		for _, domain := range words[1:] {
			p.domains[domain] = true
		}
		if label := LabelOf(words[1]); strings.ReplaceAll(name, "_", "") == label {
			p.targets.Add(label, words[1], common)
		}
	}
	for _, domain := range Providers() {
		p.provider[domain], p.domains[domain] = true, true
	}
	return p
})

// established reports whether everybody knows a registrable domain.
func (p *public) established(domain string) bool { return p.domains[domain] }

// Check returns the mark of a name, given the known names that share a key with it.
func Check(n Name, known []Known) (Mark, bool) {
	m := Mark{Name: n}
	if shown, hidden := visible.Reveal(n.Written); hidden {
		m.Kind, m.Differs = Hidden, shown
		return m, true
	}
	if n.Claimed != "" {
		m.Kind, m.Differs = Claim, visible.Text(n.Claimed)
		return m, true
	}
	domain := Registrable(n.Host)
	is := func(name string) bool {
		return slices.ContainsFunc(known, func(k Known) bool { return k.Name == name })
	}
	knownDomain := is(domain)
	if m.like(domain, known, knownDomain) || m.address(known) || m.begins(domain, known) {
		return m, true
	}
	if foreign := mixed(n.Local, n.Host); foreign != "" {
		m.Kind, m.Differs = Scripts, foreign
		return m, true
	}
	return m, false
}

// like reports whether the domain is like a known one.
func (m *Mark) like(domain string, known []Known, itself bool) bool {
	if Numeric(domain) || wellKnown().established(domain) {
		return false
	}
	own := &Targets{}
	blocked := make(map[string]bool)
	for _, k := range known {
		if strings.Contains(k.Name, "@") || k.Name == domain {
			continue
		}
		blocked[k.Name] = k.Blocked
		own.Add(LabelOf(k.Name), k.Name, false)
		if LabelOf(domain) == LabelOf(k.Name) && (plain(domain) == k.Name || misspelledCom(domain, k.Name)) {
			return m.set(domain, k.Name, k.Blocked, false)
		}
	}
	label := LabelOf(domain)
	for _, t := range []*Targets{own, &wellKnown().targets} {
		one, ok := t.Imitated(label)
		everybody := t != own
		switch {
		case !ok || wellKnown().innocent[label] || odd(one.Label) > odd(label):
		case Canonical(label) == Canonical(one.Label) && (!itself || odd(label) > odd(one.Label)):
			return m.set(domain, one.Domain, blocked[one.Domain], everybody)
		case !itself && (!wellKnown().provider[one.Domain] || TopLevel(domain) == TopLevel(one.Domain)):
			return m.set(domain, one.Domain, blocked[one.Domain], everybody)
		}
	}
	return false
}

func (m *Mark) set(domain, like string, blocked, everybody bool) bool {
	m.Kind, m.Like, m.Blocked, m.Public = Spelling, like, blocked, everybody
	if Canonical(LabelOf(domain)) == Canonical(LabelOf(like)) && !misspelledCom(domain, like) {
		m.Kind = Letters
	}
	m.Differs = difference(domain, like)
	return true
}

// misspelledCom reports whether a domain is another's under a top-level domain that is
// read or typed for com.
func misspelledCom(domain, like string) bool {
	return TopLevel(like) == "com" && slices.Contains([]string{"co", "cm", "om", "con", "cam"}, TopLevel(domain)) &&
		strings.TrimSuffix(like, ".com") == strings.TrimSuffix(domain, "."+TopLevel(domain)) && len(LabelOf(like)) >= MinNear
}

// odd returns how unusual the letters of a label are: a name of plain letters does not
// imitate one of other letters.
func odd(label string) int {
	n := 0
	for _, r := range label {
		switch {
		case r >= utf8.RuneSelf:
			n += 10
		case unicode.IsDigit(r):
			n++
		}
	}
	return n
}

// address reports whether the address looks like a known one of the same host.
func (m *Mark) address(known []Known) bool {
	if m.Name.Local == "" {
		return false
	}
	whole := m.Name.Local + "@" + m.Name.Host
	for _, k := range known {
		local, host, is := strings.Cut(k.Name, "@")
		if is && k.Name != whole && host == plain(m.Name.Host) && Canonical(local) == Canonical(m.Name.Local) && odd(m.Name.Local) >= odd(local) {
			m.Kind, m.Like, m.Blocked, m.Differs = Letters, k.Name, k.Blocked, difference(whole, k.Name)
			return true
		}
	}
	return false
}

// begins reports whether the labels of the host begin with a known domain.
func (m *Mark) begins(domain string, known []Known) bool {
	for _, run := range prefixes(m.Name.Host) {
		i := slices.IndexFunc(known, func(k Known) bool { return k.Name == run })
		everybody := wellKnown().established(run)
		if i < 0 && !everybody {
			continue
		}
		m.Kind, m.Like, m.Public, m.Differs = Prefix, run, everybody, domain
		m.Blocked = i >= 0 && known[i].Blocked
		return true
	}
	return false
}

// mixed returns the letters of other alphabets in a part of a name that also has Latin
// ones.
func mixed(local, host string) string {
	for part := range strings.SplitSeq(local+"."+host, ".") {
		if MixesScripts(part) {
			return foreign(part)
		}
	}
	return ""
}

// foreign lists the letters of a text that are not ASCII, each with its alphabet.
func foreign(text string) string {
	var found []string
	for _, r := range text {
		if r < utf8.RuneSelf {
			continue
		}
		one := fmt.Sprintf("%c (%s)", r, scriptOf(r))
		if !slices.Contains(found, one) && len(found) < 5 {
			found = append(found, one)
		}
	}
	return strings.Join(found, ", ")
}

func scriptOf(r rune) string {
	for _, name := range []string{"Cyrillic", "Greek", "Armenian", "Cherokee", "Hebrew", "Latin"} {
		if unicode.Is(unicode.Scripts[name], r) {
			return name
		}
	}
	return fmt.Sprintf("U+%04X", r)
}

// difference returns the part in which a name differs from another one.
func difference(name, like string) string {
	a, b := []rune(name), []rune(like)
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if letters := foreign(string(a)); letters != "" {
		return letters
	}
	return cmp.Or(map[[2]bool]string{
		{true, false}: fmt.Sprintf("a missing “%s”", string(b)),
		{false, true}: fmt.Sprintf("an additional “%s”", string(a)),
	}[[2]bool{len(a) == 0, len(b) == 0}], fmt.Sprintf("“%s” for “%s”", string(a), string(b)))
}
