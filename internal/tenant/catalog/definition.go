package catalog

import (
	"encoding/json"

	"github.com/countersign-dev/countersign/internal/source"
)

// Definition is what a source says a tool is, beside its name: all that an
// agent reads of it and all that a call depends on.
type Definition struct {
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"input_schema"`
	OutputSchema json.RawMessage `json:"output_schema"`
	Hints        source.Hints    `json:"hints"`
}

// definitionOf is the definition in what a source listed.
func definitionOf(t source.Tool) Definition {
	return Definition{Title: t.Title, Description: t.Description, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Hints: t.Hints}
}

// parseDefinition reads a definition as it is stored; nil for none.
func parseDefinition(raw []byte) (*Definition, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var d Definition
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	if string(d.OutputSchema) == "null" {
		d.OutputSchema = nil
	}
	return &d, nil
}
