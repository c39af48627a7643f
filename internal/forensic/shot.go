package forensic

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
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/catalog"
	"github.com/countersign-dev/countersign/internal/executor"
	"github.com/countersign-dev/countersign/internal/outbox"
	"github.com/countersign-dev/countersign/internal/policy"
	"github.com/countersign-dev/countersign/internal/verify"
)

// Stage is when a snapshot was taken.
type Stage string

// The stages.
const (
	// StageBefore is right before the call.
	StageBefore Stage = "before"
	// StageAfter is right after it.
	StageAfter Stage = "after"
)

// Valid says that s is one of the constants.
func (s Stage) Valid() bool { return s == StageBefore || s == StageAfter }

// Snapshot is how things stood around a call.
type Snapshot struct {
	Attempt int       `json:"attempt"`
	Stage   Stage     `json:"stage"`
	At      time.Time `json:"at"`
	// Tool is the read that was made, at the call's own source.
	Tool string `json:"tool"`
	// Said is why there is no result, in one word.
	Said string `json:"said,omitzero"`
	// Result is what the read answered, redacted and cut to size.
	Result json.RawMessage `json:"result,omitempty"`
}

// CodeNoSnapshot is the code of a call that was not made because the read
// before it, which is required, did not work.
const CodeNoSnapshot = "snapshot_failed"

// Why there is no result, beside the codes of a call that failed.
const (
	saidToolGone  = "tool_gone"
	saidNoRead    = "not_a_read"
	saidPolicy    = "policy"
	saidPaused    = "paused"
	saidNoArgs    = "args_missing"
	saidWrongArgs = "invalid_args"
	saidNoSource  = "source_gone"
	saidPanicked  = "adapter_failed"
)

// shotFor bounds one read.
const shotFor = 10 * time.Second

// CheckShot says what makes a rule unfit for a tool. The error is an
// *envelope.InvalidError whose pointers are below the rule.
func CheckShot(snap *catalog.Snapshot, key policy.Key, shot catalog.Shot) error {
	if err := template(shot).Validate(); err != nil {
		return err
	}
	refuse := func(why envelope.Rule, message string) error {
		return &envelope.InvalidError{Fields: []envelope.FieldError{{Pointer: "/tool", Rule: why, Message: message}}}
	}
	switch _, trouble := reader(snap, policy.Key{Source: key.Source, Action: shot.Tool}, nil); trouble {
	case saidToolGone:
		return refuse("unknown_tool", "the source has no such tool; list the tools to see the ones there are")
	case saidNoRead:
		return refuse("effect", "must be a tool that only reads")
	case saidPolicy:
		return refuse("policy", "policy must allow it without a person's approval")
	}
	return nil
}

// template is the rule in the language of verifying reads.
func template(shot catalog.Shot) verify.Rule { return verify.Rule{Tool: shot.Tool, Args: shot.Args} }

// reader finds the tool that reads, or says in one word why it must not be
// called with those arguments; nil stands for any.
func reader(snap *catalog.Snapshot, key policy.Key, args json.RawMessage) (*catalog.Tool, string) {
	tool, ok := snap.Tool(key)
	switch {
	case !ok:
		return nil, saidToolGone
	case tool.Effect != envelope.EffectRead:
		return nil, saidNoRead
	case snap.Decide(tool, catalog.Proposed{Risk: tool.Risk.Envelope(), Args: args, AnyArgs: args == nil}).Mode != envelope.ModeAllow:
		return nil, saidPolicy
	}
	return tool, ""
}

// Take makes the read that belongs to a call. It never fails: a snapshot that
// could not be taken says why.
func Take(ctx context.Context, log *slog.Logger, snap *catalog.Snapshot, src executor.Source, it *outbox.Item, shot catalog.Shot, stage Stage) Snapshot {
	s := Snapshot{Attempt: it.Attempt + 1, Stage: stage, Tool: shot.Tool}
	args, err := template(shot).Fill(it.Key(), it.Args)
	if err != nil {
		s.Said = saidNoArgs
		return s
	}
	tool, trouble := reader(snap, policy.Key{Source: it.Source, Action: shot.Tool}, args)
	if trouble != "" {
		s.Said = trouble
		return s
	}
	if _, paused := snap.Limits.Paused(envelope.EmployeeID{}, tool.Key); paused {
		s.Said = saidPaused
		return s
	}
	if tool.Check(args) != nil {
		s.Said = saidWrongArgs
		return s
	}
	if src == nil {
		s.Said = saidNoSource
		return s
	}
	out := read(ctx, log, src, it, shot.Tool, args, s)
	if out.Kind != executor.KindDone {
		s.Said = cmp.Or(out.Code, string(out.Kind))
		return s
	}
	s.Result = audit.Store(out.Result, audit.DefaultLimit)
	return s
}

// read asks the source under a key of its own: one that honours keys would
// answer the call's own with what it answered then.
func read(ctx context.Context, log *slog.Logger, src executor.Source, it *outbox.Item, tool string, args json.RawMessage, s Snapshot) (out executor.Outcome) {
	ctx, cancel := context.WithTimeout(ctx, shotFor)
	defer cancel()
	defer func() {
		if failed := recover(); failed != nil {
			log.ErrorContext(ctx, "adapter panicked", slog.String("action_id", it.Action.String()),
				slog.String("panic", fmt.Sprint(failed)), slog.String("stack", string(debug.Stack())))
			out = executor.Outcome{Kind: executor.KindUnknown, Code: saidPanicked}
		}
	}()
	key := uuid.NewSHA1(uuid.UUID(it.Tenant), fmt.Appendf(nil, "%s/snapshot/%s/%d/%d", it.Action, s.Stage, s.Attempt, it.Fence)).String()
	return src.Execute(ctx, executor.Call{Key: key, Tool: tool, Args: args, Effect: envelope.EffectRead, Attempt: 1})
}
