package reversal

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/reference"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/jsonref"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

// Automation is the automation of all reversals, so that a tenant may have
// rules of policy for them.
const Automation = "countersign.reversal"

const (
	// namePrefix begins the external id of every reversal; the id of the
	// reverted action and the number of the try follow. Intake reserves it.
	namePrefix = "revert:"
	// maxTries bounds the reversals of an action, where each but the last ended
	// without an effect. It has as many digits as the numbers in names, so that
	// names sort by number.
	maxTries = 999
)

func nameOf(action envelope.ActionID, try int) string {
	return fmt.Sprintf("%s%s:%03d", namePrefix, action, try)
}

// Names returns the first and the last external id that reversals of an action
// may have. The ids between them sort alike everywhere.
func Names(action envelope.ActionID) (first, last string) {
	return nameOf(action, 0), nameOf(action, maxTries)
}

// parseName returns the action and the try that nameOf named.
func parseName(external string) (action envelope.ActionID, try int, ok bool) {
	rest, ok := strings.CutPrefix(external, namePrefix)
	id, number, more := strings.Cut(rest, ":")
	parsed, err := uuid.Parse(id)
	try, errTry := strconv.Atoi(number)
	action = envelope.ActionID(parsed)
	return action, try, ok && more && err == nil && errTry == nil && nameOf(action, try) == external
}

// Reverts returns the action that the action of an external id reverts; nil if
// it reverts none.
func Reverts(external string) *envelope.ActionID {
	if action, _, ok := parseName(external); ok {
		return &action
	}
	return nil
}

// Call is a completed call.
type Call struct {
	Action envelope.ActionID
	// Args are the call's arguments, and Result its stored answer.
	Args, Result json.RawMessage
}

// Fill returns the arguments of the reversal of a call. The error is a
// *reference.Error.
func Fill(r *catalog.Reversal, of Call) (json.RawMessage, error) {
	given, answered := reference.Given(of.Args), reference.Answered(of.Result)
	return reference.Fill(catalog.ReversalScope(), r.Args, func(ref jsonref.Ref) reference.Value {
		if ref.Root == jsonref.Inputs {
			return given
		}
		return answered
	})
}

// Propose returns the proposal of the reversal of a call. try counts the
// reversals of the call, from 1. Every reversal is proposed by it, so that an
// action has at most one reversal of each number. The error is a
// *reference.Error, or fault.Conflict after too many tries.
func Propose(r *catalog.Reversal, of Call, try int) (*envelope.Proposal, error) {
	if try > maxTries {
		return nil, fault.New(fault.Conflict, "it was reverted %d times without effect, which is the limit", maxTries)
	}
	args, err := Fill(r, of)
	if err != nil {
		return nil, err
	}
	return &envelope.Proposal{
		Type: envelope.TypeExec, ExternalID: nameOf(of.Action, try), AutomationID: Automation,
		Tool: envelope.Tool{Source: r.Tool.Source, Name: r.Tool.Action}, Args: args,
	}, nil
}
