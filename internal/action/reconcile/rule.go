// Package reconcile finds out the outcome of calls whose outcome is unknown. An
// operator declares per tool which read of the same source shows whether a call
// happened. Some time after such a call a worker makes the read, and resolves
// the dead letter if the answer is clear. The package owns those rules, the
// meaning of their templates and answers, and the times of reads. It does not
// guess: if the read fails or its answer is unclear, the outcome stays unknown.
//
// An effect that is missing may still come: the first request may be in a proxy
// or in a queue of the source. So "it did not happen" is not believed before
// Config.Grace is over. A call of class keyed or idempotent then runs again;
// should the first request still arrive, it changes nothing. A call of class
// once stays unknown unless its rule sets Resend: there a late request doubles
// the effect.
package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/jsonref"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Rule declares a read that shows whether a call of a tool happened.
type Rule struct {
	// Tool is the read's name at the same source.
	Tool string `json:"tool"`
	// Args are its arguments, a JSON object; empty is {}. They may refer to
	// the call by $key, its idempotency key, and $inputs/…, its arguments.
	Args json.RawMessage `json:"args,omitempty"`
	// Happened is a JSON Pointer into the read's structured answer, or into the
	// JSON of its text. A value there means that the call happened; false, null, 0
	// or an empty value means that it did not.
	Happened string `json:"happened"`
	// Resend lets a call of class once run again that was not found.
	Resend bool `json:"resend,omitzero"`
}

// maxArgs bounds a template in bytes.
const maxArgs = 16 << 10

// Validate checks the fields of a rule. The error is an
// *envelope.InvalidError.
func (r Rule) Validate() error {
	var fields []envelope.FieldError
	wrong := func(at string, rule envelope.Rule, message string) {
		fields = append(fields, envelope.FieldError{Pointer: at, Rule: rule, Message: message})
	}
	if r.Tool == "" {
		wrong("/tool", envelope.RuleRequired, "is required; name a tool of the same source that only reads")
	}
	if _, ok := jsonref.ParsePointer(r.Happened); !ok {
		wrong("/happened", envelope.RuleFormat, "must be a JSON Pointer, such as /found")
	}
	template, err := jsonref.DecodeObject(r.Args)
	switch {
	case len(r.Args) > maxArgs:
		wrong("/args", envelope.RuleMaxLength, "must have at most "+strconv.Itoa(maxArgs)+" bytes")
	case err != nil:
		wrong("/args", envelope.RuleType, "must be a JSON object")
	default:
		scope().Check("/args", template, func(at string, err error) { wrong(at, envelope.RuleFormat, err.Error()) })
	}
	if len(fields) == 0 {
		return nil
	}
	return &envelope.InvalidError{Fields: fields}
}

// scope returns the references that the arguments of a rule may hold.
func scope() jsonref.Scope {
	return jsonref.Scope{Roots: []jsonref.Root{jsonref.Key, jsonref.Inputs}}
}

// errMissing is the error for a call without an argument that a rule refers to.
var errMissing = fault.New(fault.Invalid, "the call has no such argument")

// Fill returns the arguments of the read about a call.
func (r Rule) Fill(key string, args json.RawMessage) (json.RawMessage, error) {
	template, err := jsonref.DecodeObject(r.Args)
	if err != nil {
		return nil, err
	}
	inputs, err := jsonref.Decode(args)
	if err != nil {
		return nil, err
	}
	filled, err := scope().Fill("", template, func(_ string, ref jsonref.Ref, invalid error) (any, error) {
		if invalid != nil {
			return nil, invalid
		}
		if ref.Root == jsonref.Key {
			return key, nil
		}
		value, ok := ref.Path.Find(inputs)
		if !ok {
			return nil, errMissing
		}
		return value, nil
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(filled)
}

// Result is the conclusion from the answer of a read.
type Result string

// The results.
const (
	// Happened: the call had its effect.
	Happened Result = "happened"
	// NotFound: no trace of it was found.
	NotFound Result = "not_found"
	// Unclear: the answer allows no conclusion.
	Unclear Result = "unclear"
)

// Interpret returns the conclusion from an answer. An MCP result is read by its
// structured content or, without one, by its only text, if that is JSON; any other
// answer is read as a whole.
func (r Rule) Interpret(result json.RawMessage) Result {
	at, ok := jsonref.ParsePointer(r.Happened)
	if !ok {
		return Unclear
	}
	doc, ok := document(result)
	if !ok {
		return Unclear
	}
	found, ok := at.Find(doc)
	switch {
	case !ok:
		return Unclear
	case empty(found):
		return NotFound
	}
	return Happened
}

// document finds the value that an answer is about.
func document(result json.RawMessage) (any, bool) {
	var wire struct {
		Structured json.RawMessage
		Content    []struct{ Type, Text string }
	}
	// If the answer is not an MCP result, the parts stay empty.
	_ = json.Unmarshal(result, &wire)
	switch {
	case len(wire.Structured) > 0:
		result = wire.Structured
	case len(wire.Content) == 1 && wire.Content[0].Type == "text":
		result = json.RawMessage(wire.Content[0].Text)
	case len(wire.Content) > 0:
		return nil, false
	}
	doc, err := jsonref.Decode(result)
	return doc, err == nil
}

// empty reports whether a value is false, null, 0 or holds nothing.
func empty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case json.Number:
		n, err := v.Float64()
		return err == nil && n == 0
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}

// Reasons for a missing answer, in one word, in addition to the codes of a
// failed call.
const (
	resultToolGone    = "tool_gone"
	resultNotARead    = "not_a_read"
	resultPolicy      = "policy"
	resultPaused      = "paused"
	resultArgsMissing = "args_missing"
	resultInvalidArgs = "invalid_args"
	resultSourceGone  = "source_gone"
	resultPanicked    = "adapter_failed"
)

// Read is a call that Countersign makes of its own accord, to learn something
// about a call of the same source.
type Read struct {
	// About is the call that it is about, and Args are that one's arguments.
	About outbox.Lease
	Args  json.RawMessage
	// Source is the source of both tools.
	Source string
	Rule   Rule
	// Name distinguishes the read from all other reads about the call and is part
	// of its key: a source that honours keys would answer a repeated key with its
	// first answer.
	Name string
	// Deadline bounds it.
	Deadline time.Duration
	// Open gives the connection to the source.
	Open func() (source.Source, error)
}

// Run makes the read, if the tool only reads and policy allows it without a
// person. If there is no answer, said is the reason in one word.
func (r Read) Run(ctx context.Context, log *slog.Logger, snap *settings.Settings) (answer json.RawMessage, said string) {
	args, err := r.Rule.Fill(r.About.Key(), r.Args)
	if err != nil {
		return nil, resultArgsMissing
	}
	tool, problem := reader(snap, r.Source, r.Rule.Tool, args)
	if problem != "" {
		return nil, problem
	}
	if _, paused := snap.Limits.Paused(envelope.EmployeeID{}, tool.Key, false); paused {
		return nil, resultPaused
	}
	if tool.Check(ctx, args) != nil {
		return nil, resultInvalidArgs
	}
	src, err := r.Open()
	if err != nil {
		log.WarnContext(ctx, "source cannot be opened", slog.String("source_id", r.Source), slog.Any("error", err))
		return nil, resultSourceGone
	}
	out := r.call(ctx, log, src, args)
	if out.Kind != source.KindDone {
		return nil, cmp.Or(out.Code, string(out.Kind))
	}
	return out.Result, ""
}

func (r Read) call(ctx context.Context, log *slog.Logger, src source.Source, args json.RawMessage) (out source.Outcome) {
	ctx, cancel := context.WithTimeout(ctx, r.Deadline)
	defer cancel()
	defer func() {
		if failed := recover(); failed != nil {
			log.ErrorContext(ctx, "adapter panicked", slog.String("action_id", r.About.Action.String()),
				slog.String("panic", fmt.Sprint(failed)), slog.String("stack", string(debug.Stack())))
			out = source.Outcome{Kind: source.KindUnknown, Code: resultPanicked}
		}
	}()
	key := uuid.NewSHA1(uuid.UUID(r.About.Tenant), fmt.Appendf(nil, "%s/%s", r.About.Action, r.Name)).String()
	return src.Execute(ctx, source.Call{Key: key, Tool: r.Rule.Tool, Args: args, Effect: envelope.EffectRead, Attempt: 1})
}

// CheckRead returns an error if a tool of a source cannot be used for reads: an
// *envelope.InvalidError with the pointer /tool.
func CheckRead(snap *settings.Settings, source, tool string) error {
	refuse := func(why envelope.Rule, message string) error {
		return &envelope.InvalidError{Fields: []envelope.FieldError{{Pointer: "/tool", Rule: why, Message: message}}}
	}
	switch _, problem := reader(snap, source, tool, nil); problem {
	case resultToolGone:
		return refuse("unknown_tool", "the source has no such tool; list the tools to see their names")
	case resultNotARead:
		return refuse("effect", "must be a tool that only reads")
	case resultPolicy:
		return refuse("policy", "policy must allow it without a person's approval")
	}
	return nil
}

// reader returns the tool of a read, or the reason, in one word, why it must
// not be called with the arguments; nil stands for any arguments.
func reader(snap *settings.Settings, source, name string, args json.RawMessage) (*catalog.Tool, string) {
	tool, ok := snap.Tool(policy.Key{Source: source, Action: name})
	switch {
	case !ok:
		return nil, resultToolGone
	case tool.Effect != envelope.EffectRead:
		return nil, resultNotARead
	case snap.Decide(tool, settings.Proposal{Risk: tool.Risk.Envelope(), Args: args, AnyArgs: args == nil}).Mode != envelope.ModeAllow:
		return nil, resultPolicy
	}
	return tool, ""
}
