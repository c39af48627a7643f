package classify

import (
	"fmt"
	"strings"

	"github.com/countersign-dev/countersign/internal/triage/corpus"
)

// Sheet describes the training of a model.
type Sheet struct {
	Digest  string        `json:"digest"`
	Version int           `json:"version"`
	Sources []SheetSource `json:"sources"`
	Heads   []SheetHead   `json:"heads"`
	Cuts    Cuts          `json:"cuts"`
	Config  Config        `json:"config"`
}

// SheetSource is a source of examples.
type SheetSource struct {
	Name     string `json:"name"`
	Licence  string `json:"licence"`
	Digest   string `json:"digest"`
	Examples int    `json:"examples"`
}

// SheetHead holds the measurements of a head on held-out examples, in five
// folds.
type SheetHead struct {
	Head        Head           `json:"head"`
	Examples    int            `json:"examples"`
	Classes     map[string]int `json:"classes"`
	Exact       float64        `json:"exact"`
	Temperature float64        `json:"temperature"`
	// Calibration is the expected calibration error over ten bins.
	Calibration float64 `json:"calibration_error"`
}

func (t *training) sheet(sources []corpus.Source, m *Model) Sheet {
	out := Sheet{Digest: m.digest, Version: version, Cuts: m.cuts, Config: t.config}
	used := make([]int, len(sources))
	for _, s := range t.samples {
		used[s.source]++
	}
	for i, s := range sources {
		if used[i] > 0 {
			out.Sources = append(out.Sources, SheetSource{s.Name, s.Licence, s.Digest, used[i]})
		}
	}
	for _, h := range heads() {
		out.Heads = append(out.Heads, t.results[h].sheet(h))
	}
	return out
}

func (r *result) sheet(h Head) SheetHead {
	out := SheetHead{Head: h, Examples: r.rows, Classes: r.classes, Temperature: r.temperature}
	var c Calibration
	var p [maxOutputs]float64
	for _, o := range r.outcomes {
		q := o.temper(r.temperature, p[:])
		best := Largest(q)
		if len(q) == 1 {
			best = h.index(yesNo(q[0] > 0.5))
		}
		if best == o.class {
			out.Exact++
		}
		c.Add(probability(q, best), best == o.class)
	}
	if n := len(r.outcomes); n > 0 {
		out.Exact /= float64(n)
	}
	out.Calibration = c.Error()
	return out
}

// Calibration compares confidence with accuracy.
type Calibration struct {
	sum   [10]float64
	right [10]float64
	n     [10]float64
}

// Add counts one answer.
func (c *Calibration) Add(confidence float64, right bool) {
	bin := min(9, max(0, int(confidence*10)))
	c.n[bin]++
	c.sum[bin] += confidence
	if right {
		c.right[bin]++
	}
}

// Error returns the mean distance between confidence and accuracy over ten
// bins.
func (c *Calibration) Error() float64 {
	distance, total := 0.0, 0.0
	for i, n := range c.n {
		distance += max(c.sum[i]-c.right[i], c.right[i]-c.sum[i])
		total += n
	}
	if total == 0 {
		return 0
	}
	return distance / total
}

// Markdown returns the sheet as a page.
func (s Sheet) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# The embedded model\n\nDigest `%s`, features of version %d.\n", s.Digest, s.Version)
	b.WriteString("\n| source | licence | examples | SHA-256 |\n| --- | --- | --- | --- |\n")
	for _, source := range s.Sources {
		fmt.Fprintf(&b, "| %s | %s | %d | `%.16s…` |\n", source.Name, source.Licence, source.Examples, source.Digest)
	}
	b.WriteString("\nEach row is trained on four fifths of all sources, in five folds, tuned by cross-validation on the same, and measured on the fifth.\n")
	b.WriteString("\n| head | examples | classes | exact | calibration error | temperature |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, h := range s.Heads {
		var classes []string
		for _, class := range h.Head.Classes() {
			classes = append(classes, fmt.Sprintf("%s %d", class, h.Classes[class]))
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %.3f | %.3f | %.2f |\n",
			h.Head, h.Examples, strings.Join(classes, ", "), h.Exact, h.Calibration, h.Temperature)
	}
	fmt.Fprintf(&b, "\nCuts: urgent %.3f, attention %.3f; neighbours count %.2f.\n", s.Cuts.Urgent, s.Cuts.Attention, s.Cuts.Near)
	return b.String()
}
