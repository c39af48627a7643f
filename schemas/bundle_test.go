package schemas_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-dev/countersign/schemas"
)

var update = flag.Bool("update", false, "write openapi.yaml anew")

// definitions names the schemas of action-envelope.json's definitions whose
// own name with a capital letter would be too vague among all the others.
var definitions = map[string]string{
	"uuid": "UUID", "tool": "EnvelopeTool", "type": "EnvelopeType", "version": "EnvelopeVersion",
}

func TestBundle(t *testing.T) {
	t.Parallel()

	want, err := bundle()
	if err != nil {
		t.Fatal(err)
	}

	if *update {
		if err := os.WriteFile("openapi.yaml", want, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(schemas.OpenAPI(), want) {
		t.Error("openapi.yaml is not what the files in openapi/ say; run make generate")
	}
}

// Generators make one type of each component of any kind, and some write all
// names in one style.
func TestComponentsHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	var doc struct{ Components map[string]map[string]any }
	if err := yaml.Unmarshal(schemas.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}

	taken := map[string]string{}
	for kind, all := range doc.Components {
		for name := range all {
			is, key := kind+"/"+name, strings.ToLower(name)
			if other, ok := taken[key]; ok {
				t.Errorf("%s and %s have the same name", is, other)
			}
			taken[key] = is
		}
	}
}

// bundle joins openapi/openapi.yaml, the paths and components in its folder,
// and the definitions of action-envelope.json into one document.
func bundle() ([]byte, error) {
	root, err := read("openapi/openapi.yaml")
	if err != nil {
		return nil, err
	}
	paths, components := &yaml.Node{Kind: yaml.MappingNode}, &yaml.Node{Kind: yaml.MappingNode}
	if err := join("openapi/paths/*.yaml", func(part *yaml.Node) error { return merge(paths, part) }); err != nil {
		return nil, err
	}
	for i := 1; i < len(paths.Content); i += 2 {
		for j := 1; j < len(paths.Content[i].Content); j += 2 {
			addProblems(paths.Content[i-1].Value, paths.Content[i].Content[j])
		}
	}
	inSections := func(part *yaml.Node) error { return sections(components, part) }
	if err := join("openapi/components/*.yaml", inSections); err != nil {
		return nil, err
	}
	envelope, err := read("action-envelope.json")
	if err != nil {
		return nil, err
	}
	if err := sections(components, mapping("schemas", envelopeSchemas(envelope))); err != nil {
		return nil, err
	}
	root.Content = append(root.Content, mapping("paths", paths).Content...)
	root.Content = append(root.Content, mapping("components", components).Content...)
	var text bytes.Buffer
	text.WriteString("# Made by `make generate` from the files in openapi/ and action-envelope.json; edit those.\n")
	enc := yaml.NewEncoder(&text)
	enc.SetIndent(2)
	err = enc.Encode(root)
	return text.Bytes(), err
}

// addProblems adds the problems that an operation shares with all of its kind,
// unless it describes them itself.
func addProblems(path string, operation *yaml.Node) {
	shared := []struct {
		status, response string
		applies          bool
	}{
		{"400", "Invalid", true},
		{"401", "Unauthorized", value(operation, "x-roles") != nil},
		{"403", "Denied", value(operation, "x-roles") != nil},
		{"404", "NotFound", strings.Contains(path, "{")},
		{"413", "TooLarge", value(operation, "requestBody") != nil},
		{"415", "UnsupportedMediaType", value(operation, "requestBody") != nil},
		{"503", "Busy", true},
	}
	responses := value(operation, "responses")
	for _, s := range shared {
		if s.applies && value(responses, s.status) == nil {
			ref := mapping("$ref", &yaml.Node{Kind: yaml.ScalarNode, Value: "#/components/responses/" + s.response})
			added := mapping(s.status, ref)
			added.Content[0].Style = yaml.SingleQuotedStyle
			responses.Content = append(responses.Content, added.Content...)
		}
	}
}

// envelopeSchemas returns the schema of the envelope and each of its
// definitions as schemas of components.
func envelopeSchemas(envelope *yaml.Node) *yaml.Node {
	plain(envelope)
	all, whole := &yaml.Node{Kind: yaml.MappingNode}, &yaml.Node{Kind: yaml.MappingNode}
	for i := 0; i < len(envelope.Content); i += 2 {
		name, value := envelope.Content[i], envelope.Content[i+1]
		switch name.Value {
		case "$schema", "$id":
		case "$defs":
			for j := 0; j < len(value.Content); j += 2 {
				all.Content = append(all.Content, mapping(schemaName(value.Content[j].Value), value.Content[j+1]).Content...)
			}
		default:
			whole.Content = append(whole.Content, name, value)
		}
	}
	all.Content = append(all.Content, mapping("Envelope", whole).Content...)
	return all
}

// plain writes JSON as the other files are written, with references into
// components.
func plain(n *yaml.Node) {
	n.Style = 0
	if name, ok := strings.CutPrefix(n.Value, "#/$defs/"); ok {
		n.Value = "#/components/schemas/" + schemaName(name)
	}
	for _, child := range n.Content {
		plain(child)
	}
}

func schemaName(definition string) string {
	if name, ok := definitions[definition]; ok {
		return name
	}
	return strings.ToUpper(definition[:1]) + definition[1:]
}

// sections adds the components of a file to those of its kind.
func sections(components, part *yaml.Node) error {
	for i := 0; i < len(part.Content); i += 2 {
		kind := part.Content[i].Value
		section := value(components, kind)
		if section == nil {
			section = &yaml.Node{Kind: yaml.MappingNode}
			components.Content = append(components.Content, mapping(kind, section).Content...)
		}
		if err := merge(section, part.Content[i+1]); err != nil {
			return err
		}
	}
	return nil
}

// merge adds the members of part to all.
func merge(all, part *yaml.Node) error {
	for i := 0; i < len(part.Content); i += 2 {
		if name := part.Content[i].Value; value(all, name) != nil {
			return fmt.Errorf("%s stands in two files", name)
		}
	}
	all.Content = append(all.Content, part.Content...)
	return nil
}

func join(pattern string, add func(*yaml.Node) error) error {
	names, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	for _, name := range names {
		part, err := read(name)
		if err != nil {
			return err
		}
		if err := add(part); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func read(name string) (*yaml.Node, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return doc.Content[0], nil
}

func mapping(name string, value *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: name}, value}}
}

func value(m *yaml.Node, name string) *yaml.Node {
	for i := 0; i < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			return m.Content[i+1]
		}
	}
	return nil
}
