package envelope_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/schemas"
)

const schemaID = "https://countersign.dev/schemas/action-envelope.json"

// compileSchema returns the part of the schema at a fragment.
func compileSchema(tb testing.TB, fragment string) *jsonschema.Schema {
	tb.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schemas.ActionEnvelope()))
	if err != nil {
		tb.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource(schemaID, doc); err != nil {
		tb.Fatal(err)
	}
	s, err := c.Compile(schemaID + fragment)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// schemaPointers returns where a schema finds problems, in order and once each.
func schemaPointers(tb testing.TB, s *jsonschema.Schema, text []byte) []string {
	tb.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	err = s.Validate(value)
	if err == nil {
		return nil
	}
	e, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		tb.Fatal(err)
	}
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	pointers := map[string]bool{}
	var collect func(e *jsonschema.ValidationError)
	collect = func(e *jsonschema.ValidationError) {
		at := ""
		for _, token := range e.InstanceLocation {
			at += "/" + escape.Replace(token)
		}
		switch k := e.ErrorKind.(type) {
		case *kind.Required:
			for _, name := range k.Missing {
				pointers[at+"/"+escape.Replace(name)] = true
			}
		case *kind.AdditionalProperties:
			for _, name := range k.Properties {
				pointers[at+"/"+escape.Replace(name)] = true
			}
		default:
			if len(e.Causes) == 0 {
				pointers[at] = true
			}
		}
		for _, cause := range e.Causes {
			collect(cause)
		}
	}
	collect(e)
	return slices.Sorted(maps.Keys(pointers))
}

// beyondSchema are the rules that JSON Schema cannot express. The last two
// could be expressed for known fields, but not for the contents of args.
func beyondSchema() []envelope.Rule {
	return []envelope.Rule{
		envelope.RuleSyntax, envelope.RuleEncoding, envelope.RuleDuplicateKey,
		envelope.RuleDepth, envelope.RuleSize, envelope.RuleNUL, envelope.RuleNumber,
	}
}

func TestSchemaAndParseAgreeOnCorpus(t *testing.T) {
	t.Parallel()
	proposal := compileSchema(t, "#/$defs/proposal")

	for _, s := range corpus(t, "valid") {
		if got := schemaPointers(t, proposal, s.text); got != nil {
			t.Errorf("schema refuses valid/%s at %q", s.name, got)
		}
	}
	for _, s := range corpus(t, "invalid") {
		_, err := envelope.Parse(s.text)
		e, _ := errors.AsType[*envelope.InvalidError](err)
		if slices.ContainsFunc(e.Fields, func(f envelope.FieldError) bool {
			return slices.Contains(beyondSchema(), f.Rule)
		}) {
			continue
		}
		want := map[string]bool{}
		for _, f := range e.Fields {
			want[f.Pointer] = true
		}
		got := schemaPointers(t, proposal, s.text)
		if s.name == "unknown_field_with_long_name" {
			// Here Parse points at the object on purpose.
			got = []string{""}
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), got); diff != "" {
			t.Errorf("invalid/%s (-parser +schema):\n%s", s.name, diff)
		}
	}
}

func TestSchemaHasTheFieldsOfTheStructs(t *testing.T) {
	t.Parallel()
	var doc map[string]any
	if err := json.Unmarshal(schemas.ActionEnvelope(), &doc); err != nil {
		t.Fatal(err)
	}
	defs := doc["$defs"].(map[string]any)

	sameFields(t, defs, "Envelope", reflect.TypeFor[envelope.Envelope](), doc)
	sameFields(t, defs, "Proposal", reflect.TypeFor[envelope.Proposal](), defs["proposal"].(map[string]any))
	if doc["$id"] != schemaID {
		t.Errorf("$id = %v, want %s", doc["$id"], schemaID)
	}
}

// sameFields compares a struct's JSON fields with a schema's properties, and
// goes on into the structs below.
func sameFields(t *testing.T, defs map[string]any, path string, typ reflect.Type, schema map[string]any) {
	t.Helper()
	fields := map[string]reflect.Type{}
	var required []string
	for field := range typ.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		fields[name] = field.Type
		if options == "" {
			required = append(required, name)
		}
	}
	properties := schema["properties"].(map[string]any)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(fields)), slices.Sorted(maps.Keys(properties))); diff != "" {
		t.Errorf("fields of %s (-struct +schema):\n%s", path, diff)
	}
	var wanted []string
	list, _ := schema["required"].([]any)
	for _, name := range list {
		wanted = append(wanted, name.(string))
	}
	slices.Sort(required)
	slices.Sort(wanted)
	if diff := cmp.Diff(required, wanted); diff != "" {
		t.Errorf("required fields of %s (-struct +schema):\n%s", path, diff)
	}
	for name, typ := range fields {
		property, ok := properties[name].(map[string]any)
		if !ok {
			continue
		}
		target := resolve(defs, property)
		if property["description"] == nil && target["description"] == nil {
			t.Errorf("%s.%s has no description in the schema", path, name)
		}
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		if typ.Kind() == reflect.Struct && typ != reflect.TypeFor[time.Time]() {
			sameFields(t, defs, path+"."+name, typ, target)
		}
	}
}

// resolve follows a reference, also that of a property that may be null.
func resolve(defs, schema map[string]any) map[string]any {
	if choices, ok := schema["oneOf"].([]any); ok {
		schema = choices[len(choices)-1].(map[string]any)
	}
	if ref, ok := schema["$ref"].(string); ok {
		return defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	}
	return schema
}

func TestEnvelopeMarshalsToTheSchema(t *testing.T) {
	t.Parallel()
	root := compileSchema(t, "")
	at := time.Date(2026, 7, 1, 8, 0, 0, 123456000, time.UTC)
	least := envelope.Envelope{
		ActionID: envelope.NewActionID(), TenantID: envelope.TenantID(envelope.NewActionID()),
		Type: envelope.TypeExec, Tool: envelope.Tool{Name: "echo"}, Args: []byte(`{}`),
		Risk: envelope.RiskLow, Approval: envelope.ApprovalAuto,
		Result:     envelope.Result{Status: envelope.StatusPending},
		Timestamps: envelope.Timestamps{CreatedAt: at},
	}
	most := envelope.Envelope{
		Version: envelope.SchemaVersion, ActionID: least.ActionID, ExternalID: "digest-1",
		TenantID: least.TenantID, EmployeeID: envelope.EmployeeID(envelope.NewActionID()),
		Type: envelope.TypeExec, Tool: envelope.Tool{Name: "chat.postMessage", Source: "slack", ComposioApp: "slack"},
		Args: []byte(`{"channel":"#cs"}`), Risk: envelope.RiskHigh, Approval: envelope.ApprovalGranted,
		SessionID: "chat 1", AutomationID: "daily",
		Constraints: envelope.Constraints{RateBucket: "slack.minute", MustRunBefore: at, NotBefore: at},
		Result: envelope.Result{
			Status: envelope.StatusConflict, ProviderID: new("ts-1"), Output: []byte(`{"ok":false}`), Attempts: 2,
			Error: &envelope.Failure{Code: "already_exists", Message: "the message was posted before"},
		},
		Timestamps: envelope.Timestamps{CreatedAt: at, SentAt: &at, CompletedAt: &at},
	}

	for _, env := range []envelope.Envelope{least, most} {
		text, err := json.Marshal(env)
		if err != nil {
			t.Fatal(err)
		}
		if got := schemaPointers(t, root, text); got != nil {
			t.Errorf("schema refuses %s at %q", text, got)
		}
		var back envelope.Envelope
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(env, back); diff != "" {
			t.Errorf("envelope read back (-want +got):\n%s", diff)
		}
	}
}

func TestSchemaHasEveryEnumValue(t *testing.T) {
	t.Parallel()
	root := compileSchema(t, "")
	text := func(risk envelope.Risk, approval envelope.Approval, status envelope.Status) []byte {
		env := envelope.Envelope{
			ActionID: envelope.NewActionID(), TenantID: envelope.TenantID(envelope.NewActionID()),
			Type: envelope.TypeExec, Tool: envelope.Tool{Name: "echo"}, Args: []byte(`{}`),
			Risk: risk, Approval: approval, Result: envelope.Result{Status: status},
		}
		text, err := json.Marshal(env)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	words := map[string]bool{}
	for _, word := range strings.FieldsFunc(string(schemas.ActionEnvelope()), func(r rune) bool {
		return (r < 'a' || r > 'z') && r != '_'
	}) {
		words[word] = true
	}

	for word := range words {
		risk, approval, status := envelope.Risk(word), envelope.Approval(word), envelope.Status(word)
		for i, tt := range []struct {
			text  []byte
			valid bool
		}{
			{text(risk, envelope.ApprovalAuto, envelope.StatusSent), risk.Valid()},
			{text(envelope.RiskLow, approval, envelope.StatusSent), approval.Valid()},
			{text(envelope.RiskLow, envelope.ApprovalAuto, status), status.Valid()},
		} {
			if got := schemaPointers(t, root, tt.text) == nil; got != tt.valid {
				t.Errorf("schema accepts %q = %t, Valid() = %t (word list %d)", word, got, tt.valid, i)
			}
		}
	}
}
