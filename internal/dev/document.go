package dev

import "github.com/countersign-dev/countersign/client"

// Document is a report for scripts.
type Document struct {
	OK       bool        `json:"ok"`
	Wrong    []string    `json:"wrong"`
	Acts     []ActReport `json:"acts"`
	NotesDir string      `json:"notes_dir"`
	Files    []string    `json:"files"`
}

// ActReport is one thing that the agent asked for.
type ActReport struct {
	Asked  string        `json:"asked"`
	Person string        `json:"person,omitzero"`
	Result string        `json:"result"`
	OK     bool          `json:"ok"`
	Action client.Action `json:"action"`
}

// Document returns the report for scripts.
func (r Report) Document() Document {
	doc := Document{OK: len(r.Wrong) == 0, Wrong: append([]string{}, r.Wrong...), NotesDir: r.dir, Files: append([]string{}, r.files...)}
	for i := range r.acts {
		a := &r.acts[i]
		doc.Acts = append(doc.Acts, ActReport{Asked: a.asked, Person: a.person, Result: a.result, OK: len(a.differs()) == 0, Action: a.action})
	}
	return doc
}
