package account_test

import (
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/documenttest"
	"github.com/countersign-dev/countersign/internal/triage/draft"
	"github.com/countersign-dev/countersign/internal/triage/plan"
	"github.com/countersign-dev/countersign/schemas"
)

var update = flag.Bool("update", false, "rewrite the table of settings in docs/reference/triage.md")

// property is a property of a schema in the API's document.
type property struct {
	Ref         string `yaml:"$ref"`
	Description string
	Type        any // a text or a list
	Format      string
	Enum        []string
	Minimum     *float64
	Maximum     *float64
	MaxLength   int       `yaml:"maxLength"`
	MaxItems    int       `yaml:"maxItems"`
	Properties  yaml.Node `yaml:"properties"`
}

// contract holds the schemas of the API's document.
type contract map[string]property

func readContract(t *testing.T) contract {
	t.Helper()
	var doc struct {
		Components struct{ Schemas contract }
	}
	if err := yaml.Unmarshal(schemas.OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Components.Schemas
}

// resolve returns a property with the schema that it refers to.
func (c contract) resolve(p property) property {
	if p.Ref == "" {
		return p
	}
	to := c[p.Ref[strings.LastIndexByte(p.Ref, '/')+1:]]
	if p.Description != "" {
		to.Description = p.Description
	}
	return to
}

// properties returns the properties of a schema in the order of the document.
func (c contract) properties(t *testing.T, of property) (names []string, all map[string]property) {
	t.Helper()
	if err := of.Properties.Decode(&all); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(of.Properties.Content); i += 2 {
		names = append(names, of.Properties.Content[i].Value)
	}
	return names, all
}

// values returns the permitted values of a property in words.
func (p property) values() string {
	switch {
	case len(p.Enum) > 0:
		return "`" + strings.Join(p.Enum, "`, `") + "`"
	case p.Minimum != nil && p.Maximum != nil:
		return fmt.Sprintf("%v from %.0f to %.0f", p.Type, *p.Minimum, *p.Maximum)
	case p.Format != "":
		return p.Format
	case p.MaxItems > 0:
		return fmt.Sprintf("at most %d texts", p.MaxItems)
	case p.MaxLength > 0:
		return fmt.Sprintf("text of at most %d characters", p.MaxLength)
	case p.Type == "object":
		return "names and texts"
	}
	return fmt.Sprint(p.Type)
}

// settings returns the rows of the table of all settings of an account.
func settings(t *testing.T) [][]string {
	t.Helper()
	c := readContract(t)
	var rows [][]string
	var add func(prefix string, of property)
	add = func(prefix string, of property) {
		names, all := c.properties(t, of)
		for _, name := range names {
			p := c.resolve(all[name])
			if p.Properties.Kind != 0 {
				add(prefix+name+".", p)
				continue
			}
			if p.Description == "" {
				t.Errorf("%s%s has no description in schemas/openapi/components/triage.yaml", prefix, name)
			}
			rows = append(rows, []string{"`" + prefix + name + "`", p.values(), strings.Join(strings.Fields(p.Description), " ")})
		}
	}
	add("", c["TriageAccountInput"])
	return rows
}

func TestDocumentHasEverySetting(t *testing.T) {
	t.Parallel()
	documenttest.Has(t, *update, documenttest.Table("| setting of an account | values | meaning |", settings(t)))
}

// TestContractHasEverySettingOfTheCode compares the settings in the API's
// document with the fields that the code reads.
func TestContractHasEverySettingOfTheCode(t *testing.T) {
	t.Parallel()
	c := readContract(t)
	for schema, of := range map[string]reflect.Type{
		"TriageConnection":   reflect.TypeFor[account.Connection](),
		"TriageSettings":     reflect.TypeFor[decide.Settings](),
		"TriageProposals":    reflect.TypeFor[plan.Config](),
		"TriageTextSettings": reflect.TypeFor[draft.Settings](),
	} {
		_, all := c.properties(t, c[schema])
		documented := slices.Sorted(maps.Keys(all))
		var coded []string
		for field := range of.Fields() {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "-" {
				coded = append(coded, name)
			}
		}
		slices.Sort(coded)
		if !slices.Equal(documented, coded) || len(coded) == 0 {
			t.Errorf("%s has %q, want the fields of %s: %q", schema, documented, of, coded)
		}
	}
}
