package dev

import "github.com/countersign-dev/countersign/client/wire"

// Document is a report in JSON.
type Document struct {
	OK       bool         `json:"ok"`
	Problems []string     `json:"problems"`
	Steps    []StepReport `json:"steps"`
	NotesDir string       `json:"notes_dir"`
	Files    []string     `json:"files"`
}

// StepReport is one step of the demonstration.
type StepReport struct {
	Request  string      `json:"request"`
	Decision string      `json:"decision,omitzero"`
	Result   string      `json:"result"`
	OK       bool        `json:"ok"`
	Action   wire.Action `json:"action"`
}

// Document returns the report as a value for JSON.
func (r Report) Document() Document {
	doc := Document{OK: len(r.Wrong) == 0, Problems: append([]string{}, r.Wrong...), NotesDir: r.dir, Files: append([]string{}, r.files...)}
	for i := range r.steps {
		a := &r.steps[i]
		doc.Steps = append(doc.Steps, StepReport{Request: a.request, Decision: a.decision, Result: a.result, OK: len(a.findProblems()) == 0, Action: a.action})
	}
	return doc
}
