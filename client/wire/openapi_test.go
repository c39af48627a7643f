package wire_test

import (
	"fmt"
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
// struct, and the JSON type of each, with the objects of the API's document: one
// object has exactly the same members, apart from those that more names.
func TestStructsHaveTheMembersOfTheDocument(t *testing.T) {
	t.Parallel()
	more := map[string][]string{
		"Event":          {"id"},                  // the id of the server-sent event
		"Problem":        {"action", "execution"}, // members of two kinds of problem
		"Retention":      {"note"},                // the request's
		"SessionMode":    {"expires_in"},          // the request's
		"SettingChanges": {"dry_run"},             // the query's
	}
	// Parts are embedded in others, or are a line of an export, which the document
	// describes in words.
	parts := []string{"AuditClosing", "BucketUse", "BulkRequest", "Change", "ProviderFields", "Target", "TokenGrant"}
	objects := documentObjects(t)
	for name, members := range wireStructs(t) {
		if slices.Contains(parts, name) {
			continue
		}
		var differences []string
		for _, object := range objects {
			if !sameMembers(object, members, more[name]) {
				continue
			}
			differences = append(differences, typeDifferences(object, members))
		}
		if len(differences) == 0 {
			t.Errorf("wire.%s: no object of schemas/openapi.yaml has the members %v", name, slices.Sorted(maps.Keys(members)))
		} else if !slices.Contains(differences, "") {
			t.Errorf("wire.%s: %s", name, strings.Join(slices.Compact(differences), "; or "))
		}
	}
}

// types are the JSON types of a member: any of string, integer, number, boolean,
// array, object and null; anything is the type of a member that may have any.
type types []string

const anything = "anything"

func sameMembers(object, members map[string]types, more []string) bool {
	for name := range members {
		if _, ok := object[name]; !ok && !slices.Contains(more, name) {
			return false
		}
	}
	for name := range object {
		if _, ok := members[name]; !ok {
			return false
		}
	}
	return true
}

// typeDifferences names the members whose type in Go is not one of the
// document's.
func typeDifferences(object, members map[string]types) string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		want, got := object[name], members[name]
		if want == nil || slices.Contains(want, anything) || slices.Contains(got, anything) {
			continue
		}
		if slices.Contains(want, "null") && !slices.Contains(got, "null") && !slices.Contains(got, "string") {
			found = append(found, fmt.Sprintf("%s may be null in the document, and is %v in Go", name, got))
		}
		for _, kind := range got {
			if kind != "null" && !slices.Contains(want, kind) {
				found = append(found, fmt.Sprintf("%s is %v in the document, and %v in Go", name, want, got))
			}
		}
	}
	return strings.Join(found, ", ")
}

// wireStructs returns the JSON members of the package's exported structs that
// have any.
func wireStructs(t *testing.T) map[string]map[string]types {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]ast.Expr{}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(node ast.Node) bool {
			if spec, ok := node.(*ast.TypeSpec); ok && spec.Name.IsExported() {
				declared[spec.Name.Name] = spec.Type
			}
			return true
		})
	}
	structs := map[string]map[string]types{}
	for name, expr := range declared {
		if s, ok := expr.(*ast.StructType); ok {
			if members := goMembers(declared, s); len(members) > 0 {
				structs[name] = members
			}
		}
	}
	return structs
}

func goMembers(declared map[string]ast.Expr, s *ast.StructType) map[string]types {
	members := map[string]types{}
	for _, field := range s.Fields.List {
		if field.Tag != nil {
			tag := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json")
			if name, _, _ := strings.Cut(tag, ","); name != "" && name != "-" {
				members[name] = goTypes(declared, field.Type)
			}
		} else if embedded, ok := field.Type.(*ast.Ident); ok {
			if s, ok := declared[embedded.Name].(*ast.StructType); ok {
				maps.Copy(members, goMembers(declared, s))
			}
		}
	}
	return members
}

// goTypes returns the JSON types that a Go type is written as.
func goTypes(declared map[string]ast.Expr, expr ast.Expr) types {
	basic := map[string]types{
		"string": {"string"}, "int": {"integer"}, "int64": {"integer"}, "float64": {"number"}, "bool": {"boolean"}, "any": {anything}, "T": {anything},
	}
	switch e := expr.(type) {
	case *ast.StarExpr:
		return append(goTypes(declared, e.X), "null")
	case *ast.ArrayType:
		if item, ok := e.Elt.(*ast.Ident); ok && item.Name == "byte" {
			return types{"string", "null"}
		}
		return types{"array", "null"}
	case *ast.MapType:
		return types{"object", "null"}
	case *ast.StructType:
		return types{"object"}
	case *ast.SelectorExpr:
		switch e.Sel.Name {
		case "RawMessage":
			return types{anything}
		case "Envelope", "Failure", "Constraints", "FieldError":
			return types{"object"}
		}
		return types{"string"} // times, ids, durations, and the words of package envelope
	case *ast.Ident:
		if is, ok := basic[e.Name]; ok {
			return is
		}
		return goTypes(declared, declared[e.Name])
	}
	return types{anything}
}

// documentObjects returns the members of every object of the API's document,
// including those of its composed schemas.
func documentObjects(t *testing.T) (objects []map[string]types) {
	t.Helper()
	text, err := os.ReadFile("../../schemas/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := yaml.Unmarshal(text, &d.root); err != nil {
		t.Fatal(err)
	}
	d.schemas = d.root["components"].(map[string]any)["schemas"].(map[string]any)
	var walk func(any)
	walk = func(node any) {
		switch n := node.(type) {
		case map[string]any:
			if members := d.membersOf(n); len(members) > 0 {
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
	walk(d.root)
	return objects
}

// document is an OpenAPI document.
type document struct{ root, schemas map[string]any }

// parts returns a schema, or the schema that it refers to, and the schemas of
// which it is composed.
func (d *document) parts(schema any) (s map[string]any, of []any) {
	s, _ = schema.(map[string]any)
	if ref, ok := s["$ref"].(string); ok {
		s, _ = d.schemas[ref[strings.LastIndex(ref, "/")+1:]].(map[string]any)
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[word].([]any)
		of = append(of, list...)
	}
	return s, of
}

func (d *document) membersOf(schema any) map[string]types {
	members := map[string]types{}
	s, of := d.parts(schema)
	properties, _ := s["properties"].(map[string]any)
	for name, property := range properties {
		members[name] = d.typesOf(property)
	}
	for _, part := range of {
		for name, is := range d.membersOf(part) {
			members[name] = append(members[name], is...)
		}
	}
	return members
}

func (d *document) typesOf(schema any) types {
	var is types
	s, of := d.parts(schema)
	switch t := s["type"].(type) {
	case string:
		is = types{t}
	case []any:
		for _, one := range t {
			is = append(is, one.(string))
		}
	}
	for _, part := range of {
		is = append(is, d.typesOf(part)...)
	}
	if len(is) == 0 {
		return types{anything}
	}
	return is
}
