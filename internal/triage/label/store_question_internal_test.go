package label

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/postgres/dbsqlc"
	"github.com/countersign-dev/countersign/internal/triage/classify"
)

// TestAnswers takes answers that the schema would refuse, and answers about another
// definition.
func TestAnswers(t *testing.T) {
	t.Parallel()
	o := Open{message: uuid.New(), definitions: map[string][]byte{"investors": []byte(`{"description":"a"}`)}}
	for _, text := range []string{``, `null`, `[]`, `"investors"`, `{"label":"-"}`, `{"label":""}`, `{"label":"ghost"}`, `{"label":["investors"]}`, `{"label":"Investors"}`} {
		if a, ok := o.Answer(json.RawMessage(text)); ok {
			t.Errorf("Answer(%s) = %+v, want none", text, a)
		}
	}
	a, ok := o.Answer(json.RawMessage(`{"label":"investors"}`))
	if !ok || ValidName(none, nil) == nil {
		t.Errorf("Answer() = %+v, %v, and %q is a name", a, ok, none)
	}
	for definition, want := range map[string]int{`{"description":"a"}`: 1, `{"description":"b"}`: 0} {
		if got := proposedBy([]Answer{a}, []dbsqlc.TriageLabelHoldRow{{Name: "investors", Definition: []byte(definition)}}); len(got) != want {
			t.Errorf("proposedBy of the definition %s = %v, want %d", definition, got, want)
		}
	}
}

// TestExamplesRejectAnswers has a message that is like the examples against a label.
func TestExamplesRejectAnswers(t *testing.T) {
	t.Parallel()
	var all [][]classify.Features
	for _, features := range fixtureFeatures(t) {
		all = append(all, features)
	}
	c := newClassifier("l", Definition{}, all[0][:8], all[1][:8], nil)
	var rejected int
	for _, f := range all[1][:8] {
		if c.rejects(message{features: f}) {
			rejected++
		}
	}
	if rejected == 0 || c.rejects(message{features: all[0][0]}) {
		t.Errorf("%d of 8 examples against the label reject it", rejected)
	}
}
