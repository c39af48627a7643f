package wire_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestStructsHaveTheMembersOfTheDocument compares the JSON members of every
// struct with the objects of the API's document: one of them has exactly the same
// members, apart from those that more names.
func TestStructsHaveTheMembersOfTheDocument(t *testing.T) {
	t.Parallel()
	more := map[string][]string{
		"Event":          {"id"},                  // the id of the server-sent event
		"Problem":        {"action", "execution"}, // members of two kinds of problem
		"Retention":      {"note"},                // the request's
		"SessionMode":    {"expires_in"},          // the request's
		"SettingChanges": {"dry_run"},             // the query's
	}
	// Parts are embedded in others, or stand on a line of an export, which the
	// document describes in words.
	parts := []string{"AuditClosing", "BulkRequest", "Change", "Target"}
	objects := documentObjects(t)
	for name, members := range wireStructs(t) {
		found := slices.ContainsFunc(objects, func(object map[string]bool) bool {
			want := maps.Clone(object)
			for _, m := range more[name] {
				want[m] = true
			}
			return maps.Equal(want, members)
		})
		if !found && !slices.Contains(parts, name) {
			t.Errorf("wire.%s: no object of schemas/openapi.yaml has the members %v", name, slices.Sorted(maps.Keys(members)))
		}
	}
}

// wireStructs returns the JSON members of the package's exported structs that
// have any.
func wireStructs(t *testing.T) map[string]map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]*ast.StructType{}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(node ast.Node) bool {
			if spec, ok := node.(*ast.TypeSpec); ok && spec.Name.IsExported() {
				if s, ok := spec.Type.(*ast.StructType); ok {
					types[spec.Name.Name] = s
				}
			}
			return true
		})
	}
	var membersOf func(*ast.StructType) map[string]bool
	membersOf = func(s *ast.StructType) map[string]bool {
		members := map[string]bool{}
		for _, field := range s.Fields.List {
			if field.Tag != nil {
				tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
				if name, _, _ := strings.Cut(tag, ","); name != "" && name != "-" {
					members[name] = true
				}
			} else if embedded, ok := field.Type.(*ast.Ident); ok && types[embedded.Name] != nil {
				maps.Copy(members, membersOf(types[embedded.Name]))
			}
		}
		return members
	}
	structs := map[string]map[string]bool{}
	for name, s := range types {
		if members := membersOf(s); len(members) > 0 {
			structs[name] = members
		}
	}
	return structs
}

// documentObjects returns the members of every object of the API's document,
// with those of the schemas that it is made of.
func documentObjects(t *testing.T) (objects []map[string]bool) {
	t.Helper()
	text, err := os.ReadFile("../../schemas/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	schemas := document["components"].(map[string]any)["schemas"].(map[string]any)
	var membersOf func(any) map[string]bool
	membersOf = func(schema any) map[string]bool {
		members := map[string]bool{}
		s, _ := schema.(map[string]any)
		if ref, ok := s["$ref"].(string); ok {
			return membersOf(schemas[ref[strings.LastIndex(ref, "/")+1:]])
		}
		properties, _ := s["properties"].(map[string]any)
		for name := range properties {
			members[name] = true
		}
		for _, of := range []string{"allOf", "anyOf", "oneOf"} {
			parts, _ := s[of].([]any)
			for _, part := range parts {
				maps.Copy(members, membersOf(part))
			}
		}
		return members
	}
	var walk func(any)
	walk = func(node any) {
		switch n := node.(type) {
		case map[string]any:
			if members := membersOf(n); len(members) > 0 {
				objects = append(objects, members)
			}
			for _, child := range n {
				walk(child)
			}
		case []any:
			for _, child := range n {
				walk(child)
			}
		}
	}
	walk(document)
	return objects
}
