package config

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// prefix is how the names of our variables begin.
const prefix = "COUNTERSIGN_"

// serviceLink matches the variables that Kubernetes sets in every container for
// a Service whose name begins with countersign.
var serviceLink = regexp.MustCompile(`_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)?)$`)

// unknown returns an error for every variable that begins like ours and is
// none of ours, most likely a misspelt one.
func unknown(values map[string]string) []error {
	known := names()
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		ours := strings.HasPrefix(name, prefix) && !strings.HasPrefix(name, prefix+"TEST_")
		if !ours || slices.Contains(known, name) || serviceLink.MatchString(strings.TrimPrefix(name, strings.TrimSuffix(prefix, "_"))) {
			continue
		}
		nearest := slices.MinFunc(known, func(a, b string) int { return distance(name, a) - distance(name, b) })
		wrong = append(wrong, fmt.Errorf("  %s is unknown; the nearest name is %s", name, nearest))
	}
	return wrong
}

// names returns the variables of all commands, since one environment may be
// shared by several of them, and those of the command line and the scripts.
func names() []string {
	all := []string{"URL", "TOKEN", "CONFIG", "CLIENT_ID", "ISSUER", "PG_BIN"}
	for i := range all {
		all[i] = prefix + all[i]
	}
	for _, c := range []Command{&API{}, &Worker{}} {
		for _, v := range c.variables() {
			all = append(all, v.name)
		}
	}
	return all
}

// distance returns how many letters must be inserted, deleted or replaced to
// make one text of another (the Levenshtein distance).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
