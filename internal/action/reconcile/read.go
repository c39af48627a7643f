package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// Why a read has no answer, in one word, beside the codes of a call that
// failed.
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
	// Source is asked by the tool and the template of Rule.
	Source string
	Rule   Rule
	// Name tells it from all other reads about the call. Its key comes of that:
	// a source that honours keys would answer the call's own with what it
	// answered then.
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
	tool, trouble := reader(snap, r.Source, r.Rule.Tool, args)
	if trouble != "" {
		return nil, trouble
	}
	if _, paused := snap.Limits.Paused(envelope.EmployeeID{}, tool.Key); paused {
		return nil, resultPaused
	}
	if tool.Check(args) != nil {
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

// CheckRead says what makes a tool of a source unfit for reads. The error is an
// *envelope.InvalidError with the pointer /tool.
func CheckRead(snap *settings.Settings, source, tool string) error {
	refuse := func(why envelope.Rule, message string) error {
		return &envelope.InvalidError{Fields: []envelope.FieldError{{Pointer: "/tool", Rule: why, Message: message}}}
	}
	switch _, trouble := reader(snap, source, tool, nil); trouble {
	case resultToolGone:
		return refuse("unknown_tool", "the source has no such tool; list the tools to see the ones there are")
	case resultNotARead:
		return refuse("effect", "must be a tool that only reads")
	case resultPolicy:
		return refuse("policy", "policy must allow it without a person's approval")
	}
	return nil
}

// reader finds the tool that reads, or says in one word why it must not be
// called with those arguments; nil stands for any.
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
