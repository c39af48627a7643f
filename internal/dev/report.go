package dev

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
)

// publishLog is the file in which the example server notes every try to
// publish.
const publishLog = "publish.log"

// Report is what a demonstration came to.
type Report struct {
	acts  []act
	dir   string
	files []string
	// Wrong lists what is not as it should be; empty is good.
	Wrong []string
}

// report compares what is on disk with what was asked for and agreed to.
func (d *demonstration) report(before, after []string) Report {
	r := Report{acts: d.acts, dir: d.notes, files: after}
	for i := range d.acts {
		a := &d.acts[i]
		for _, wrong := range a.differs() {
			r.Wrong = append(r.Wrong, a.asked+": "+wrong)
		}
	}
	var titles []string
	for _, name := range after {
		if !slices.Contains(before, name) && name != publishLog {
			titles = append(titles, heading(filepath.Join(d.notes, name)))
		}
	}
	slices.Sort(titles)
	want := []string{"# " + minutesTitle, "# " + shoppingTitle}
	if !slices.Equal(titles, want) {
		r.Wrong = append(r.Wrong, fmt.Sprintf("on disk: the new notes are %q, want %q", titles, want))
	}
	return r
}

// Write shows the report.
func (r Report) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "THE AGENT ASKED TO\tPOLICY SAID\tA PERSON\tIT ENDED\tTRIES\tRESULT")
	for i := range r.acts {
		a := &r.acts[i]
		mark := ""
		if len(a.differs()) > 0 {
			mark = "  ✗"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s%s\n", a.asked, why(a.action.Policy), cmp.Or(a.person, "–"),
			ended(a.action), tries(a.action), a.result, mark)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nOn disk, in %s:\n", r.dir)
	for _, name := range r.files {
		writeHead(out, r.dir, name)
	}
	fmt.Fprintln(out)
	if len(r.Wrong) == 0 {
		fmt.Fprintf(out, "All %d envelopes ended as they should.\n", len(r.acts))
	} else {
		fmt.Fprintln(out, "Not as it should be:")
		for _, wrong := range r.Wrong {
			fmt.Fprintf(out, "  ✗ %s\n", wrong)
		}
	}
	return out.Flush()
}

// Err is nil if everything ended as it should.
func (r Report) Err() error {
	if len(r.Wrong) == 0 {
		return nil
	}
	return fmt.Errorf("the demonstration did not end as it should: %s", strings.Join(r.Wrong, "; "))
}

// why says in a few words what policy said and what made it say so.
func why(v client.Verdict) string {
	mode := map[envelope.Mode]string{
		envelope.ModeAllow: "allow", envelope.ModeRequireApproval: "ask a person", envelope.ModeDeny: "deny",
	}[v.Mode]
	for _, step := range v.Trace {
		if step.Said == "" {
			continue
		}
		if step.Key != "" {
			return mode + ", by rule"
		}
		return mode + ", " + step.Detail
	}
	return mode
}

func ended(a client.Action) string {
	switch failure := a.Envelope.Result.Error; {
	case failure != nil && failure.Code == codeUndone:
		return codeUndone
	case a.Phase == envelope.PhaseDenied:
		return string(a.Phase)
	}
	return string(a.Envelope.Result.Status)
}

// codeUndone is the code of what somebody took back.
const codeUndone = "undone"

func tries(a client.Action) string {
	if n := a.Envelope.Result.Attempts; n > 0 {
		return strconv.Itoa(n)
	}
	return "–"
}

// writeHead shows the beginning of a file.
func writeHead(out io.Writer, dir, name string) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		fmt.Fprintf(out, "  %-38s cannot be read\n", name)
		return
	}
	lines := strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
	if name == publishLog {
		for i, line := range lines {
			lines[i] = publication(line)
		}
	}
	fmt.Fprintf(out, "  %-38s %s\n", name, clip(strings.Join(lines[max(0, len(lines)-2):], " | ")))
}

// publication is a line of the log of publications in a few words.
func publication(line string) string {
	var try struct {
		ID  string `json:"id"`
		Try int    `json:"try"`
		OK  bool   `json:"ok"`
	}
	if err := json.Unmarshal([]byte(line), &try); err != nil {
		return line
	}
	how := "failed"
	if try.OK {
		how = "worked"
	}
	return fmt.Sprintf("%s try %d %s", short(try.ID), try.Try, how)
}

func clip(text string) string {
	const most = 90
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// heading is a file's first line.
func heading(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return first
}

// listFiles returns the names of the files in a folder, which need not be
// there yet.
func listFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the notes: %w", err)
	}
	var names []string
	for _, e := range entries {
		if e.Type().IsRegular() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names, nil
}
