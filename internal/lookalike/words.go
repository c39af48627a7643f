package lookalike

import (
	"embed"
	"strings"
)

//go:embed *.txt
var files embed.FS

// Brands returns the lines of the list of brands: a name (_ for a space) and the
// brand's domains, the imitated one first. ~ before a name marks a word of the
// language or a person's name. Lines that begin with ! have labels that resemble
// a name and mean something else.
func Brands() []string { return lines("brands.txt") }

// Providers returns the domains of public mail providers.
func Providers() []string { return lines("freemail.txt") }

// lines returns the lines of a file without comments.
func lines(name string) []string {
	raw, _ := files.ReadFile(name) // a test counts the lines
	var all []string
	for line := range strings.Lines(string(raw)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}
