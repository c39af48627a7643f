package intake_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
)

// A proposal that took the name of a message, or of a step's reversal, could
// keep it from being sent.
func TestNamesOfMessagesAndStepsAreReserved(t *testing.T) {
	t.Parallel()
	d := newFixture(t)
	id := uuid.NewString()
	step, reversal, message := "workflow:"+id+":0", "revert:"+id+":001", "message:"+id+":7-8-0"

	for _, name := range []string{step, reversal, message, "return:" + id + ":1"} {
		err := d.accept(note(name))[0].Err
		if invalid, ok := errors.AsType[*envelope.InvalidError](err); !ok || invalid.Fields[0].Pointer != "/external_id" || invalid.Fields[0].Rule != "reserved" {
			t.Errorf("the name %s: %v, want it refused as reserved", name, err)
		}
	}
	for _, name := range []string{"workflow:7:0", "batch:" + id, "message:today", "my workflow:" + id + ":0", "workflows:" + id + ":0"} {
		if a := d.accept(note(name)); a[0].Err != nil {
			t.Errorf("the name %s: %v", name, a[0].Err)
		}
	}

	by := d.by()
	by.Workflow = uuid.MustParse(id)
	made := d.acceptAs(by, note(step))[0]
	if made.Err != nil {
		t.Errorf("a workflow's own step: %v", made.Err)
	}
	by = d.by()
	by.Reserved = true
	if a := d.acceptAs(by, note(message)); a[0].Err != nil {
		t.Errorf("a subscription's own message: %v", a[0].Err)
	}
	if again := d.accept(note(step))[0]; again.Err != nil || !again.Known || again.Action != made.Action {
		t.Errorf("asking for what there is = %+v, want the step", again)
	}
}

func (d fixture) acceptAs(by intake.Submitter, proposals ...*envelope.Proposal) []intake.Answer {
	d.t.Helper()
	answers, err := d.in.Accept(d.t.Context(), by, proposals)
	if err != nil {
		d.t.Fatal(err)
	}
	return answers
}

func TestNamesOfOurAutomationsAreReserved(t *testing.T) {
	t.Parallel()
	for id, refused := range map[string]bool{
		"countersign.reversal": true, "Countersign.Reversal": true, " countersign.x": true, "countersign": false, "nightly.countersign.x": false, "": false,
	} {
		err := intake.Submitter{Names: identity.EveryName()}.CheckAutomation(id)
		if invalid, ok := errors.AsType[*envelope.InvalidError](err); ok != refused || ok && invalid.Fields[0].Pointer != "/automation_id" {
			t.Errorf("CheckAutomation(%q) = %v, want it refused: %t", id, err, refused)
		}
	}
	if err := (intake.Submitter{Reserved: true}).CheckAutomation("countersign.reversal"); err != nil {
		t.Errorf("our own automation: %v", err)
	}
}
