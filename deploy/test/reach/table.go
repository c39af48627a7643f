package reach

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/countersign-dev/countersign/deploy/test/rendered"
)

// A Row is a line of the document's table: an edge, and the components with or
// without which it exists.
type Row struct {
	Edge

	Needs []string
}

// holds reports whether a combination of the named parts has the row's edge.
func (r Row) holds(parts []string) bool {
	for _, need := range r.Needs {
		part, without := strings.CutPrefix(need, "-")
		if slices.Contains(parts, part) == without {
			return false
		}
	}
	return true
}

// heading is the section of the document that the table is in.
const heading = "## Who reaches whom"

// Table returns the rows of the document's table. Its columns are from, to,
// ports and needs; a row names several ports for several edges.
func Table(document string) ([]Row, error) {
	_, section, found := strings.Cut(document, "\n"+heading+"\n")
	if !found {
		return nil, fmt.Errorf("the document has no section %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var rows []Row
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		const columns = 4
		if !strings.HasPrefix(line, "|") || len(cells) != columns {
			continue
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(strings.ReplaceAll(cells[i], "`", ""))
		}
		if cells[0] == "from" || regexp.MustCompile(`^:?-+:?$`).MatchString(cells[0]) {
			continue
		}
		for _, text := range strings.Fields(strings.ReplaceAll(cells[2], ",", " ")) {
			port, err := parsePort(text)
			if err != nil {
				return nil, fmt.Errorf("%s: %q: %w", heading, strings.TrimSpace(line), err)
			}
			rows = append(rows, Row{Edge{cells[0], cells[1], port}, strings.Fields(cells[3])})
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("%s: %w", heading, errors.New("no table below it"))
	}
	return rows, nil
}

func parsePort(text string) (Port, error) {
	number, protocol, udp := strings.Cut(text, "/")
	n, err := strconv.Atoi(number)
	if err != nil || udp && protocol != "udp" {
		return Port{}, fmt.Errorf("port %q is neither a number nor NUMBER/udp", text)
	}
	if udp {
		return Port{n, corev1.ProtocolUDP}, nil
	}
	return Port{n, corev1.ProtocolTCP}, nil
}

// Differences returns where the policies of a set and the table disagree. Parts
// are the folders that the combination consists of.
func Differences(rows []Row, parts []string, t rendered.Typed) ([]string, error) {
	edges, err := Edges(t)
	if err != nil {
		return nil, err
	}
	documented := map[Edge]bool{}
	for _, r := range rows {
		if r.holds(parts) {
			documented[r.Edge] = true
		}
	}
	var differences []string
	for _, e := range edges {
		if !documented[e] {
			differences = append(differences, fmt.Sprintf("%s: the policies allow %s, which the table does not", t.Name, e))
		}
		delete(documented, e)
	}
	for e := range documented {
		differences = append(differences, fmt.Sprintf("%s: the table has %s, which the policies do not allow", t.Name, e))
	}
	slices.Sort(differences)
	return differences, nil
}
