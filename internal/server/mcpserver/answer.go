package mcpserver

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/server/access"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/headline"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// report is the state of an action, as the structured content of a result that
// is not the tool's own.
type report struct {
	// Status is completed, pending, executing, denied, expired, undone,
	// skipped, failed or unknown; or the problem of the call itself, such
	// as limited.
	Status string             `json:"status"`
	Action *envelope.ActionID `json:"action_id,omitempty"`
	Tool   string             `json:"tool,omitempty"`
	// Headline is one line about the arguments of an action that has not ended.
	Headline  string         `json:"headline,omitempty"`
	Phase     envelope.Phase `json:"phase,omitempty"`
	Code      string         `json:"code,omitempty"`
	Reason    string         `json:"reason,omitempty"`
	DecidedBy envelope.Actor `json:"decided_by,omitempty"`
	// Layers are the layers of policy that denied.
	Layers  []policy.Step `json:"layers,omitempty"`
	Waiting *wire.Waiting `json:"waiting,omitempty"`
	// ExpiresAt is the end of the wait for a decision.
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
	Wait      *waitHint  `json:"wait,omitempty"`
	// RetryAfter is the number of seconds before another call, for the status
	// limited.
	RetryAfter int `json:"retry_after_seconds,omitempty"`
	// Errors are the rules that the arguments break.
	Errors []envelope.FieldError `json:"errors,omitempty"`

	outcome envelope.Outcome
}

// waitHint explains how to wait for an action.
type waitHint struct {
	Tool      string       `json:"tool"`
	Arguments waitArgument `json:"arguments"`
	REST      string       `json:"rest"`
}

type waitArgument struct {
	Action  string `json:"action_id"`
	Seconds int    `json:"seconds"`
}

// actionMeta is the value of MetaAction.
type actionMeta struct {
	Action envelope.ActionID `json:"action_id"`
	Status envelope.Status   `json:"status"`
	Phase  envelope.Phase    `json:"phase"`
	// Truncated reports whether the tool answered more than is stored.
	Truncated bool `json:"truncated"`
	// Joined reports whether the call was a repeat of a known action.
	Joined bool `json:"joined"`
}

// answer returns the result of a call: the tool's own if it has answered, else
// the state of the action in words.
func (ts *tokenServer) answer(v outbox.View, joined bool) *sdk.CallToolResult {
	res := ts.result(v)
	res.Meta = sdk.Meta{MetaAction: actionMeta{
		Action: v.Envelope.ActionID, Status: v.Envelope.Result.Status, Phase: v.Phase, Truncated: truncated(v.Envelope.Result.Output), Joined: joined,
	}}
	if v.Envelope.Result.Status == envelope.StatusConflict {
		res.Meta[MetaOutcome] = source.CodeConflict
	}
	return res
}

func (ts *tokenServer) result(v outbox.View) *sdk.CallToolResult {
	result := v.Envelope.Result
	done := result.Status == envelope.StatusSent || result.Status == envelope.StatusConflict
	refused := result.Status == envelope.StatusFailed && result.Error != nil && result.Error.Code == source.CodeToolError
	if !done {
		if text, ok := rpcErrorText(result.Output); ok {
			r := ts.report(v)
			return newResult(r, r.isError(), r.text()+" "+text)
		}
	}
	if done || refused {
		if res, ok := toolResult(result.Output); ok {
			res.IsError = refused
			return res
		}
	}
	r := ts.report(v)
	return newResult(r, r.isError(), r.text())
}

// isError reports whether an action ended, or may have ended, without its
// effect.
func (r report) isError() bool {
	switch r.Status {
	case "completed", "pending", "executing", "undone":
		return false
	}
	return true
}

// report returns the state of an action.
func (ts *tokenServer) report(v outbox.View) report {
	e := v.Envelope
	r := report{
		Status: statusOf(v), Action: &e.ActionID, Tool: policy.Key{Source: e.Tool.Source, Action: e.Tool.Name}.String(), Phase: v.Phase,
		outcome: v.Outcome(),
	}
	if e.Result.Error != nil {
		r.Code, r.Reason = e.Result.Error.Code, e.Result.Error.Message
	}
	switch r.Status {
	case "denied":
		r.DecidedBy, r.Reason = v.DecidedBy, cmp.Or(v.DecisionNote, r.Reason)
		if v.Mode == envelope.ModeDeny {
			r.Code, r.Reason, r.Layers = "policy_denied", v.ModeSource, policy.Denying(v.Trace)
		}
	case "pending", "executing":
		r.Waiting, r.Headline = v.Waiting(), ts.headline(v)
		if v.WaitsFor == outbox.WaitsApproval && v.ApprovalExpiresAt != nil {
			r.ExpiresAt = new(v.ApprovalExpiresAt.UTC())
		}
		id := e.ActionID.String()
		r.Wait = &waitHint{
			Tool: toolWait, Arguments: waitArgument{id, ts.cfg.waitSeconds()}, REST: "/api/v1/actions/" + id + "/wait",
		}
	}
	return r
}

// headline returns one line about the arguments of an action, by the cached catalog, and
// the names that may be taken for well-known ones: an agent learns no name of the tenant.
func (ts *tokenServer) headline(v outbox.View) string {
	args := access.ArgsOf(ts.by, v.Envelope.ExternalID, v.Envelope.Args)
	line := headline.Of(args, nil, nil)
	if snap := ts.Catalog.Known(ts.by.Tenant); snap != nil {
		line = snap.Headline(policy.Key{Source: v.Envelope.Tool.Source, Action: v.Envelope.Tool.Name}, args)
	}
	return line + access.Warning(args)
}

// statusOf returns the phase of an action, for agents: "pending" as long as the
// call has not begun.
func statusOf(v outbox.View) string {
	if v.Phase == envelope.PhaseApproved {
		return string(envelope.PhasePending)
	}
	return string(v.Phase)
}

// text returns the state in words for the model.
func (r report) text() string {
	var b strings.Builder
	id := r.Action.String()
	switch r.Status {
	case "completed":
		fmt.Fprintf(&b, "Done: action %s.", id)
	case "pending", "executing":
		fmt.Fprintf(&b, "Not done yet: action %s of %s (%s) %s. ", id, r.Tool, r.Headline, r.stateText())
		if r.ExpiresAt != nil {
			fmt.Fprintf(&b, "If nobody decides by %s, it is not done. ", r.ExpiresAt.Format(time.RFC3339))
		}
		fmt.Fprintf(&b, `Do not make the same call again. To wait for it, call %s with {"action_id":"%s","seconds":%d}.`,
			toolWait, id, r.Wait.Arguments.Seconds)
	case "denied":
		r.denied(&b)
	case "expired":
		fmt.Fprintf(&b, "Action %s was not done: %s. Make the call again only if it is still wanted.", id, r.outcome)
	case "undone":
		fmt.Fprintf(&b, "Action %s was not done: %s.", id, r.outcome)
	case "skipped":
		fmt.Fprintf(&b, "Action %s was not done: %s", id, stopped(r.outcome.String()))
	case "unknown":
		fmt.Fprintf(&b, "Nobody knows whether action %s happened: %s Do not repeat it; tell the user. An operator has to find out.", id, stopped(r.causeText()))
	default:
		fmt.Fprintf(&b, "Action %s failed: %s", id, stopped(r.causeText()))
	}
	return b.String()
}

func (r report) denied(b *strings.Builder) {
	if r.DecidedBy != "" {
		fmt.Fprintf(b, "Action %s was not done: %s", r.Action, stopped(r.outcome.String()))
		return
	}
	fmt.Fprintf(b, "Denied by policy: action %s is not allowed (%s). The same call will be denied again.", r.Action, policy.Because(envelope.ModeDeny, r.Reason, r.Layers))
}

// stateText returns the state of an action that has not ended, in words.
func (r report) stateText() string {
	switch {
	case r.Waiting == nil && r.Status == "executing":
		return "is being executed"
	case r.Waiting == nil:
		return "waits"
	case r.Waiting.Until != nil && r.Waiting.For != outbox.WaitsApproval:
		return "waits for " + r.Waiting.Message + ", until " + r.Waiting.Until.Format(time.RFC3339) + " at least"
	}
	return "waits for " + r.Waiting.Message
}

// causeText returns why an action ended as it did.
func (r report) causeText() string {
	if r.Code != "" && r.Reason != "" {
		return r.Reason + " (" + r.Code + ")"
	}
	return cmp.Or(r.Reason, r.Code, "no reason is on record")
}

// waitsText returns the reason for which an action waits, and its headline, in a line.
func (ts *tokenServer) waitsText(v outbox.View) string {
	if v.WaitsFor == "" {
		return "being executed: " + ts.headline(v)
	}
	return "waits for " + outbox.Explain(v.WaitsFor) + ": " + ts.headline(v)
}

// newResult returns a result of this package's own.
func newResult(r report, bad bool, text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}, StructuredContent: r, IsError: bad}
}

// sentence returns a text that begins with a capital letter and ends with a
// full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + stopped(text[size:])
}

// stopped returns a text that ends with a full stop. Words of a tool or of an
// error code keep their case.
func stopped(text string) string { return strings.TrimSuffix(text, ".") + "." }

// invalidText lists the problems of arguments.
func invalidText(fields []envelope.FieldError) string {
	var b strings.Builder
	b.WriteString("The call is not valid, and nothing was proposed:")
	for _, f := range fields {
		fmt.Fprintf(&b, "\n%s: %s", cmp.Or(f.Pointer, "/"), f.Message)
	}
	return b.String()
}

// stored is the stored part of a tool's answer: redacted, and truncated if it
// was large. A source of kind mcp stores content and structured; others any
// JSON.
type stored struct {
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structured"`
	Truncated  bool              `json:"_truncated"`
}

// toolResult returns a stored answer as the result of a call, with its parts as
// the tool sent them. ok is false if nothing is stored.
func toolResult(output json.RawMessage) (*sdk.CallToolResult, bool) {
	output = bytes.TrimSpace(output)
	if len(output) == 0 || string(output) == "null" {
		return nil, false
	}
	var s stored
	if json.Unmarshal(output, &s) != nil || s.Content == nil {
		return plainResult(output), true
	}
	res := &sdk.CallToolResult{Content: make([]sdk.Content, len(s.Content))}
	for i, part := range s.Content {
		res.Content[i] = contentOf(part)
	}
	if isObject(s.Structured) {
		res.StructuredContent = s.Structured
	}
	return res, true
}

// rpcErrorText returns the text of a JSON-RPC error that replaced a tool's
// answer. ok reports whether there is one. Its message comes from the source:
// it is data.
func rpcErrorText(output json.RawMessage) (text string, ok bool) {
	var stored struct {
		Error *struct {
			Code    *int64          `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		} `json:"error"`
	}
	if json.Unmarshal(output, &stored) != nil || stored.Error == nil || stored.Error.Code == nil {
		return "", false
	}
	e := stored.Error
	text = fmt.Sprintf("The server answered with the error %d: %s", *e.Code, stopped(cmp.Or(e.Message, "it said no more")))
	var said string
	if json.Unmarshal(e.Data, &said) != nil {
		said = string(bytes.TrimSpace(e.Data))
	}
	if said != "" {
		text += " It added: " + said
	}
	return text, true
}

// plainResult returns an answer that is not in MCP's form.
func plainResult(output json.RawMessage) *sdk.CallToolResult {
	res := &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(output)}}}
	if isObject(output) {
		res.StructuredContent = output
	}
	return res
}

// contentOf decodes a part of a tool's answer. A part that is invalid content
// because it was truncated becomes text.
func contentOf(part json.RawMessage) sdk.Content {
	if text, ok := plainText(part); ok {
		return &sdk.TextContent{Text: text}
	}
	var one sdk.CallToolResult
	wrapped, err := json.Marshal(struct {
		Content []json.RawMessage `json:"content"`
	}{[]json.RawMessage{part}})
	if err == nil && isObject(part) && json.Unmarshal(wrapped, &one) == nil && len(one.Content) == 1 && one.Content[0] != nil {
		return one.Content[0]
	}
	return &sdk.TextContent{Text: string(part)}
}

// plainText returns the text of a part that has nothing else, as most parts: the SDK
// decodes each with a buffer of 32 kB.
func plainText(part json.RawMessage) (text string, ok bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(part, &members) != nil || len(members) != 2 || string(members["type"]) != `"text"` {
		return "", false
	}
	return text, members["text"] != nil && json.Unmarshal(members["text"], &text) == nil
}

// truncated reports whether the tool answered more than is stored.
func truncated(output json.RawMessage) bool {
	var s stored
	return bytes.Contains(output, []byte(`"_truncated"`)) && json.Unmarshal(output, &s) == nil && s.Truncated
}

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{'
}
