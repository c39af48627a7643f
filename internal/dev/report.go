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

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
)

// publishLog is the file in which the example server records every attempt to
// publish.
const publishLog = "publish.log"

// Report is the result of a demonstration.
type Report struct {
	OK bool `json:"ok"`
	// Problems lists unexpected results; empty means success.
	Problems []string     `json:"problems"`
	Steps    []StepReport `json:"steps"`
	Mail     MailReport   `json:"mail"`
	NotesDir string       `json:"notes_dir"`
	Files    []string     `json:"files"`
}

// StepReport is one step of the demonstration.
type StepReport struct {
	// Request is the agent's request in a few words, Decision a person's decision,
	// if any, and Result the result of the call.
	Request  string      `json:"request"`
	Decision string      `json:"decision,omitzero"`
	Result   string      `json:"result"`
	OK       bool        `json:"ok"`
	Action   wire.Action `json:"action"`

	// problems are errors other than an unexpected end.
	problems []string
}

// report compares the results with the expected ones, and the files on disk
// with the approved actions.
func (d *demonstration) report(before, after []string) Report {
	r := Report{Problems: []string{}, NotesDir: d.notes, Files: append([]string{}, after...)}
	for i := range d.steps {
		s := &d.steps[i]
		wrong := s.findProblems()
		for _, text := range wrong {
			r.Problems = append(r.Problems, s.Request+": "+text)
		}
		s.OK = len(wrong) == 0
		r.Steps = append(r.Steps, s.StepReport)
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
		r.Problems = append(r.Problems, fmt.Sprintf("on disk: the new notes are %q, want %q", titles, want))
	}
	r.OK = len(r.Problems) == 0
	return r
}

// Write shows the report.
func (r Report) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "REQUEST\tPOLICY\tDECISION\tENDED\tATTEMPTS\tRESULT")
	for _, s := range r.Steps {
		mark := ""
		if !s.OK {
			mark = "  ✗"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s%s\n", s.Request, why(s.Action.Policy), cmp.Or(s.Decision, "–"),
			ended(s.Action), tries(s.Action), s.Result, mark)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\nFiles in %s:\n", r.NotesDir)
	for _, name := range r.Files {
		writeHead(out, r.NotesDir, name)
	}
	fmt.Fprintln(out)
	if err := r.Mail.write(out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if r.OK {
		fmt.Fprintf(out, "All %d actions and %d mails ended as expected.\n", len(r.Steps), len(r.Mail.Messages))
	} else {
		fmt.Fprintf(out, "Not as expected:\n  ✗ %s\n", strings.Join(r.Problems, "\n  ✗ "))
	}
	return out.Flush()
}

// Err returns nil if every action ended as expected.
func (r Report) Err() error {
	if r.OK {
		return nil
	}
	return fmt.Errorf("the demonstration did not end as expected: %s", strings.Join(r.Problems, "; "))
}

// why returns the mode that policy decided and where it is set, in a few words.
func why(v wire.PolicyDecision) string {
	mode := string(v.Mode)
	if v.Mode == envelope.ModeRequireApproval {
		mode = "ask a person"
	}
	for _, step := range v.Trace {
		if step.Said == "" {
			continue
		}
		if step.Tool != "" {
			return mode + ", by rule"
		}
		return mode + ", " + step.Detail
	}
	return mode
}

func ended(a wire.Action) string {
	switch failure := a.Envelope.Result.Error; {
	case failure != nil && failure.Code == codeUndone:
		return codeUndone
	case a.Phase == envelope.PhaseDenied:
		return string(a.Phase)
	}
	return string(a.Envelope.Result.Status)
}

// codeUndone is the code of an undone action.
const codeUndone = "undone"

func tries(a wire.Action) string {
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

// publication returns a line of the log of publications in a few words.
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

// heading returns the first line of a file.
func heading(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	first, _, _ := strings.Cut(string(text), "\n")
	return first
}

// listFiles returns the names of the files in a folder, which need not
// exist.
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
