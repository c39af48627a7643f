// Package snapshot takes and stores the state of an object before and after a call: the
// read that an operator declared for a tool, made right before and right after
// the call. It owns the snapshots; their rules are stored with the catalog.
//
// It makes no call that changes anything, and a failed read is stored as one.
package snapshot

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/action/reconcile"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
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

// Valid reports whether s is one of the constants.
func (s Stage) Valid() bool { return s == StageBefore || s == StageAfter }

// Snapshot is the state before or after a call.
type Snapshot struct {
	Attempt int       `json:"attempt"`
	Stage   Stage     `json:"stage"`
	At      time.Time `json:"at"`
	// Tool is the read that was made, at the call's own source.
	Tool string `json:"tool"`
	// Code is why there is no result, in one word.
	Code string `json:"code,omitzero"`
	// Result is what the read answered, redacted and cut to size.
	Result json.RawMessage `json:"result,omitempty"`
}

// CodeFailed is the code of a call that was not made because the read
// before it, which is required, did not work.
const CodeFailed = "snapshot_failed"

// readTimeout bounds one read.
const readTimeout = 10 * time.Second

// CheckRule says what makes a rule unfit for a tool. The error is an
// *envelope.InvalidError whose pointers are below the rule.
func CheckRule(snap *settings.Settings, key policy.Key, rule catalog.SnapshotRule) error {
	if err := template(rule).Validate(); err != nil {
		return err
	}
	return reconcile.CheckRead(snap, key.Source, rule.Tool)
}

// template is the rule in the language of verifying reads.
func template(rule catalog.SnapshotRule) reconcile.Rule {
	return reconcile.Rule{Tool: rule.Tool, Args: rule.Args}
}

// Take makes the read that belongs to a call, over what open gives. It never
// fails: a snapshot that could not be taken says why.
func Take(
	ctx context.Context, log *slog.Logger, snap *settings.Settings, open func() (source.Source, error), it *outbox.Item, rule catalog.SnapshotRule, stage Stage,
) Snapshot {
	s := Snapshot{Attempt: it.Attempt + 1, Stage: stage, Tool: rule.Tool}
	read := reconcile.Read{
		About: it.Lease, Args: it.Args, Source: it.Source, Rule: template(rule), Deadline: readTimeout, Open: open,
		Name: fmt.Sprintf("snapshot/%s/%d/%d", stage, s.Attempt, it.Fence),
	}
	answer, said := read.Run(ctx, log, snap)
	if said != "" {
		s.Code = said
		return s
	}
	s.Result = redact.JSONTruncated(answer, redact.DefaultLimit)
	return s
}
