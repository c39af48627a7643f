package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
)

// FileFlag is the flag that names a file.
const FileFlag = "file"

// ShowDocument writes a document as YAML, or with --json as JSON.
func (a *App) ShowDocument(doc any) error {
	if a.JSON {
		return a.WriteJSON(doc)
	}
	text, err := plainYAML(doc)
	if err != nil {
		return err
	}
	if _, err := a.Out.Write(text); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// plainYAML writes a document with its fields in their order. JSON is YAML, so
// that its text is only read again and written plainly.
func plainYAML(doc any) ([]byte, error) {
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("write the document: %w", err)
	}
	var node yaml.Node
	if err := yaml.Unmarshal(text, &node); err != nil {
		return nil, fmt.Errorf("write the document: %w", err)
	}
	asYAML(&node)
	return yaml.Marshal(&node)
}

// asYAML takes the marks of JSON off. A text that might be read as something
// else, such as a number or a time, keeps its quotes, and one of several lines
// stands as such.
func asYAML(node *yaml.Node) {
	node.Style &^= yaml.FlowStyle
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!str" {
		switch {
		case strings.Contains(node.Value, "\n"):
			node.Style = yaml.LiteralStyle
		case !strings.ContainsAny(node.Value, "0123456789"):
			node.Style = 0
		}
	}
	if len(node.Content) == 0 && (node.Kind == yaml.SequenceNode || node.Kind == yaml.MappingNode) {
		node.Style |= yaml.FlowStyle
	}
	for _, child := range node.Content {
		asYAML(child)
	}
}

// Answered says where in the file a server's objections are to be found.
func (f *File) Answered(err error) error {
	if p, ok := errors.AsType[*client.Problem](err); ok && len(p.Errors) > 0 {
		return f.Place(p.Errors)
	}
	return err
}

// ShowChanges says what changed, or would.
func (a *App) ShowChanges(changes []limits.Change, applied bool) error {
	if a.JSON {
		return a.WriteJSON(struct {
			Applied bool            `json:"applied"`
			Changes []limits.Change `json:"changes"`
		}{applied, changes})
	}
	counts := make(map[limits.ChangeKind]int)
	var rows [][]string
	for _, c := range changes {
		if counts[c.Kind]++; c.Kind != limits.Unchanged {
			rows = append(rows, []string{string(c.Kind), c.Section, c.Name, changeText(c)})
		}
	}
	if len(rows) > 0 {
		if err := Table(a.Out, []string{"CHANGE", "SECTION", "WHICH", "TO"}, rows); err != nil {
			return err
		}
	}
	summary := fmt.Sprintf("%d added, %d changed, %d removed, %d unchanged.", counts[limits.Added], counts[limits.Changed], counts[limits.Removed], counts[limits.Unchanged])
	switch {
	case applied:
		a.Note("%s It is done.", summary)
	case len(rows) == 0:
		a.Note("%s There is nothing to do.", summary)
	default:
		a.Note("%s Nothing was changed; add --apply to do it.", summary)
	}
	return nil
}

// changeText writes what a setting becomes.
func changeText(c limits.Change) string {
	switch c.Kind {
	case limits.Removed:
		return "was " + string(c.Was)
	case limits.Added, limits.Changed, limits.Unchanged:
	}
	return strings.TrimSpace(string(c.Is))
}
