package workflow

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/decision"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/reversal"
	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/jsonref"
	"github.com/countersign-dev/countersign/internal/schema"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// PlannedStep is a step of a workflow that was checked.
type PlannedStep struct {
	Tool policy.Key
	// Mode and Source are the current result of policy. Policy is evaluated again
	// when the step is due, with the references resolved.
	Mode   envelope.Mode
	Source string
	// References are the references in the inputs.
	References []string
	// Reversal is the declared reversal, or nil.
	Reversal *catalog.Reversal

	tool         *catalog.Tool
	doc          any
	placeholders []placeholder
	risk         envelope.Risk
}

// maxPlaceholders bounds the references in the inputs of one step, since each of
// them has the inputs checked again.
const maxPlaceholders = 100

// referenceSteps bounds the schema steps of one workflow's checks in addition
// to those of one costly check, since inputs with references are checked
// several times.
const referenceSteps = 1_500_000

// plan checks a request against the catalog, except for policy, as far as
// possible before anything runs. The error is an *envelope.InvalidError that
// lists all problems.
func plan(ctx context.Context, snap *settings.Settings, by intake.Submitter, r *Request, now time.Time) ([]PlannedStep, error) {
	var found check.Problems
	if err := below(&found, by.CheckAutomation(r.Automation), pointerOf(0)); err != nil {
		return nil, err
	}
	steps, suggest := make([]PlannedStep, len(r.Steps)), by.Suggest(snap, now)
	for i := range r.Steps {
		s, p := &steps[i], r.proposal(i)
		s.doc, s.placeholders = parseInputs(p.Args, func(at, message string) {
			found.Add(stepPointer(i)+"/inputs"+at, "reference", "%s", message)
		})
		if len(s.placeholders) > maxPlaceholders {
			found.Add(stepPointer(i)+"/inputs", envelope.RuleMaxItems, "must have at most %d references", maxPlaceholders)
			s.placeholders = nil
		}
		tool, err := snap.Resolve(named(snap, r.Steps[i].Tool), by.Tools)
		if err := below(&found, suggest.Tool(p.Tool, err), pointerOf(i)); err != nil {
			return nil, err
		}
		if tool != nil {
			s.tool, s.Tool, s.risk = tool, tool.Key, policy.RaiseRisk(p.Risk, tool.Risk.Envelope())
		}
		if bucket := p.Constraints.RateBucket; bucket != "" {
			if _, known := snap.Limits.Bucket(bucket); !known {
				found.Add(stepPointer(i)+"/constraints/rate_bucket", "unknown_bucket", "%s", snap.Limits.UnknownBucket(bucket))
			}
		}
	}
	checkReferences(&found, steps)
	budget := schema.NewBudget(referenceSteps)
	for i := range steps {
		if err := checkStep(ctx, budget, &found, snap, i, &steps[i], r.Atomic); err != nil {
			return nil, err
		}
	}
	return steps, found.Err()
}

// named reads the name of a tool as people write it.
func named(snap *settings.Settings, text string) envelope.Tool {
	if source, action, ok := strings.Cut(text, ":"); ok {
		if _, known := snap.Source(source); known {
			return envelope.Tool{Source: source, Name: action}
		}
	}
	return envelope.Tool{Name: text}
}

// checkReferences reports references that do not point to an earlier step, and
// records the declared types of the others.
func checkReferences(found *check.Problems, steps []PlannedStep) {
	for i := range steps {
		for n := range steps[i].placeholders {
			h := &steps[i].placeholders[n]
			at := stepPointer(i) + "/inputs" + h.at
			steps[i].References = append(steps[i].References, h.ref.String())
			switch circle := circleOf(steps, h.ref.Step, i); {
			case h.ref.Step >= len(steps):
				found.Add(at, "reference", "refers to step %d, and the last one is %d; write a text that begins with a dollar sign with two", h.ref.Step, len(steps)-1)
				continue
			case circle != "":
				found.Add(at, "cycle", "the steps %s form a cycle", circle)
				continue
			case h.ref.Step > i:
				found.Add(at, "order", "refers to step %d, which comes later; steps run in order", h.ref.Step)
				continue
			}
			of := steps[h.ref.Step].tool
			if of == nil {
				continue
			}
			var absent bool
			if h.types, absent = declaredTypes(of.OutputSchema, h.ref.Path); absent {
				found.Add(at, "reference", "the output schema of %s has no such part", of.Key)
			}
		}
	}
}

// circleOf formats the path from a step back to another that refers to it, as
// in "1 → 2 → 1", or empty.
func circleOf(steps []PlannedStep, from, to int) string {
	type way struct {
		at   int
		text string
	}
	seen := make(map[int]bool)
	for open := []way{{from, strconv.Itoa(to)}}; len(open) > 0; open = open[1:] {
		w := open[0]
		if w.at >= len(steps) || seen[w.at] {
			continue
		}
		seen[w.at] = true
		text := w.text + " → " + strconv.Itoa(w.at)
		if w.at == to {
			return text
		}
		for _, h := range steps[w.at].placeholders {
			open = append(open, way{h.ref.Step, text})
		}
	}
	return ""
}

// checkStep checks the inputs of a step and, for an atomic workflow, that it can
// be taken back.
func checkStep(ctx context.Context, budget *schema.Budget, found *check.Problems, snap *settings.Settings, i int, s *PlannedStep, atomic bool) error {
	if s.tool == nil {
		return nil
	}
	fields, err := checkInputs(ctx, budget, s.tool, s.doc, s.placeholders)
	if fault.KindOf(err) == fault.Conflict {
		// Its schema cannot be used.
		found.Add(stepPointer(i)+"/tool", "schema", "%s", textOf(err))
	} else if err != nil {
		return err
	}
	for _, f := range fields {
		f.Pointer = pointerOf(i)(f.Pointer)
		*found = append(*found, f)
	}
	s.Reversal = s.tool.Reversal
	if atomic && s.tool.Effect != envelope.EffectRead {
		checkReversal(found, snap, i, s)
	}
	return nil
}

// checkReversal checks that a step could be taken back.
func checkReversal(found *check.Problems, snap *settings.Settings, i int, s *PlannedStep) {
	refuse := func(format string, args ...any) { found.Add(stepPointer(i)+"/tool", "irreversible", format, args...) }
	if s.Reversal == nil {
		refuse("an atomic workflow takes only tools that read or declare a reversal, and %s does neither", s.Tool)
		return
	}
	back, ok := snap.Tool(s.Reversal.Tool)
	if src, known := snap.Source(s.Reversal.Tool.Source); !ok || !known || !src.Enabled {
		refuse("its reversal %s does not exist", s.Reversal.Tool)
		return
	}
	template, err := jsonref.DecodeObject(s.Reversal.Args)
	if err != nil {
		refuse("the arguments of its reversal %s cannot be read", back.Key)
		return
	}
	_, _ = catalog.ReversalScope().Fill("", template, func(_ string, ref jsonref.Ref, invalid error) (any, error) { // the function has no error
		switch {
		case invalid != nil:
			refuse("the arguments of its reversal %s cannot be read", back.Key)
		case ref.Root == jsonref.Inputs && !s.mayHave(ref.Path):
			refuse("its reversal %s needs %s, which the inputs do not have", back.Key, ref)
		case ref.Root == jsonref.Outputs:
			if _, absent := declaredTypes(s.tool.OutputSchema, ref.Path); absent {
				refuse("its reversal %s needs %s, which the output schema does not have", back.Key, ref)
			}
		}
		return nil, nil
	})
}

// mayHave reports whether the inputs have a value at a path, or may have one
// once a placeholder on the way is filled.
func (s *PlannedStep) mayHave(path jsonref.Pointer) bool {
	if _, ok := path.Find(s.doc); ok {
		return true
	}
	at := path.String()
	return slices.ContainsFunc(s.placeholders, func(h placeholder) bool { return strings.HasPrefix(at+"/", h.at+"/") })
}

// known returns the arguments of a step with null for the values of its
// references.
func (s *PlannedStep) known() json.RawMessage {
	raw, err := json.Marshal(with(s.doc, s.placeholders, make([]any, len(s.placeholders))))
	if err != nil {
		return nil // it was read from JSON
	}
	return raw
}

// decide evaluates policy for every step, and for the reversals of an atomic
// workflow. A denied step is rejected before anything runs: the error is an
// *envelope.InvalidError.
func decide(ctx context.Context, tx pgx.Tx, snap *settings.Settings, by intake.Submitter, r *Request, steps []PlannedStep, now time.Time) error {
	var actions []*decision.Action
	var answers []func(policy.Decision)
	var found check.Problems
	ask := func(a decision.Action, answer func(policy.Decision)) {
		actions, answers = append(actions, &a), append(answers, answer)
	}
	for i := range steps {
		s := &steps[i]
		ask(decision.Action{Settings: snap, Tool: s.tool, Proposal: settings.Proposal{
			Automation: r.Automation, AskedApproval: r.Steps[i].Approval == envelope.ApprovalRequired, Employee: r.Employee, Risk: s.risk,
			Session: r.Session, Args: s.known(), Tools: by.Tools, Person: by.Proposer(), AnyArgs: len(s.placeholders) > 0, Now: now,
		}}, func(d policy.Decision) {
			if s.Mode, s.Source = d.Mode, d.Source; d.Mode == envelope.ModeDeny {
				found.Add(stepPointer(i)+"/tool", "policy_denied", "policy denies it: %s", d.Source)
			}
		})
		if !r.Atomic || s.Reversal == nil || s.tool.Effect == envelope.EffectRead {
			continue
		}
		back, ok := snap.Tool(s.Reversal.Tool)
		if !ok {
			continue // plan has refused it
		}
		ask(decision.Action{Settings: snap, Tool: back, Proposal: settings.Proposal{
			Automation: reversal.Automation, Employee: r.Employee, Risk: back.Risk.Envelope(), Session: r.Session, AnyArgs: true, Now: now,
		}}, func(d policy.Decision) {
			if d.Mode == envelope.ModeDeny {
				found.Add(stepPointer(i)+"/tool", "irreversible", "policy denies its reversal %s: %s; a mode for the automation %s can allow it", back.Key, d.Source, reversal.Automation)
			}
		})
	}
	decisions, err := decision.Decide(ctx, tx, actions)
	for i, d := range decisions {
		answers[i](d)
	}
	if err != nil {
		return err
	}
	return found.Err()
}

// textOf is the text of a fault that is fit for the outside.
func textOf(err error) string {
	if f, ok := errors.AsType[*envelope.InvalidError](err); ok {
		lines := make([]string, len(f.Fields))
		for i, field := range f.Fields {
			lines[i] = strings.TrimSpace(field.Pointer + " " + field.Message)
		}
		return strings.Join(lines, "; ")
	}
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Text
	}
	return "it was refused"
}

// Request is a submitted workflow.
type Request struct {
	// ExternalID is the submitter's own name for the workflow, which makes it
	// safe to submit again. A dry run needs none.
	ExternalID string
	Atomic     bool
	Session    string
	Employee   envelope.EmployeeID
	Automation string
	Steps      []StepRequest
}

// StepRequest is one call of a workflow that is submitted.
type StepRequest struct {
	// Tool is the tool's display name: source:action, module.entity.action, or the
	// action alone if only one source has it.
	Tool string
	// Inputs is a JSON object; empty stands for {}.
	Inputs      json.RawMessage
	Risk        envelope.Risk
	Approval    envelope.Approval
	Constraints envelope.Constraints
}

// digestScheme is the first byte of the input of a workflow's digest.
const digestScheme = 1

// below adds the fields of an *envelope.InvalidError with other pointers, and
// returns any other error.
func below(p *check.Problems, err error, pointer func(string) string) error {
	broken, ok := errors.AsType[*envelope.InvalidError](err)
	if !ok {
		return err
	}
	for _, f := range broken.Fields {
		f.Pointer = pointer(f.Pointer)
		*p = append(*p, f)
	}
	return nil
}

func stepPointer(i int) string { return "/steps/" + strconv.Itoa(i) }

// pointerOf places a pointer into a proposal in the step that it is of.
func pointerOf(i int) func(string) string {
	return func(at string) string {
		switch {
		case at == "/args" || strings.HasPrefix(at, "/args/"):
			return stepPointer(i) + "/inputs" + strings.TrimPrefix(at, "/args")
		case strings.HasPrefix(at, "/tool"):
			return stepPointer(i) + "/tool"
		case at == "/session_id", at == "/employee_id", at == "/automation_id":
			return at
		}
		return stepPointer(i) + at
	}
}

// proposal is the envelope that a step becomes, with references instead of
// their values.
func (r *Request) proposal(i int) *envelope.Proposal {
	s := &r.Steps[i]
	p := &envelope.Proposal{
		Type: envelope.TypeExec, Tool: envelope.Tool{Name: s.Tool}, Args: s.Inputs, Risk: s.Risk, Approval: s.Approval,
		Constraints: s.Constraints, EmployeeID: r.Employee, SessionID: r.Session, AutomationID: r.Automation,
	}
	if len(p.Args) == 0 {
		p.Args = json.RawMessage("{}")
	}
	return p
}

// digest validates a request without the catalog, and returns its digest: over
// the steps and whether it is atomic. The error is an *envelope.InvalidError.
func (r *Request) digest() ([]byte, error) {
	var found check.Problems
	if len(r.Steps) == 0 || len(r.Steps) > MaxSteps {
		found.Add("/steps", envelope.RuleMaxItems, "must have 1 to %d steps", MaxSteps)
		return nil, found.Err()
	}
	h := sha256.New()
	h.Write([]byte{digestScheme})
	if r.Atomic {
		h.Write([]byte("atomic"))
	}
	for i := range r.Steps {
		p := r.proposal(i)
		if err := p.Validate(); err != nil {
			if err := below(&found, err, pointerOf(i)); err != nil {
				return nil, err
			}
			continue
		}
		d, err := p.Digest()
		if err != nil {
			return nil, err
		}
		h.Write(d[:])
	}
	return h.Sum(nil), found.Err()
}
