package background

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

const (
	// CodeUnscheduled is the code of a call whose return could not be proposed.
	// Repeating the call proposes it.
	CodeUnscheduled = "unscheduled"
	// returnTimeout bounds the time to propose a return.
	returnTimeout = 5 * time.Second
)

// Returns proposes the returns of calls with a temporary effect.
type Returns struct {
	db  postgres.Begins
	in  *intake.Intake
	log *slog.Logger
}

// NewReturns returns a Returns whose proposals go through in.
func NewReturns(db postgres.Begins, in *intake.Intake, log *slog.Logger) *Returns {
	return &Returns{db: db, in: in, log: log}
}

// Schedule proposes the return of a call, if it has one, and returns the outcome
// of the call. It must be called before that outcome is committed: a process that
// dies in between repeats the call, and finds the proposal by its name.
func (r *Returns) Schedule(ctx context.Context, it *outbox.Item, out source.Outcome) source.Outcome {
	if out.Return == nil || out.Kind != source.KindDone {
		return out
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), returnTimeout)
	defer cancel()
	by := intake.Submitter{Tenant: it.Tenant, Person: it.Person, Name: "return", Reserved: true}
	proposal := &envelope.Proposal{
		Type: envelope.TypeExec, ExternalID: "return:" + it.Action.String() + ":1", AutomationID: settings.ReturnAutomation, EmployeeID: it.Employee,
		Tool: envelope.Tool{Source: it.Source, Name: out.Return.Tool}, Args: out.Return.Args,
		Constraints: envelope.Constraints{NotBefore: out.Return.At},
	}
	var answer intake.Answer
	committed := func() {}
	err := proposal.Validate()
	if err == nil {
		err = postgres.InTx(ctx, r.db, postgres.Worker(), func(tx pgx.Tx) error {
			answers, then, err := r.in.AcceptTx(ctx, tx, by, []*envelope.Proposal{proposal}, true)
			if err == nil {
				answer, committed = answers[0], then
			}
			return err
		})
	}
	if err == nil {
		committed()
		err = answer.Err
	}
	log := r.log.With(slog.String("action_id", it.Action.String()))
	switch kind := fault.KindOf(err); {
	case err == nil && !answer.Known && answer.Mode == envelope.ModeDeny:
		log.WarnContext(ctx, "policy denies the return of a call", slog.String("return_id", answer.Action.String()))
		out.Message = "policy denies the call that would return the message by itself"
	case err == nil:
	case kind != "" && kind != fault.Limited && kind != fault.Busy:
		log.WarnContext(ctx, "return of a call was refused", slog.Any("error", err))
		out.Message = "the call that would return the message by itself was refused"
	default:
		log.WarnContext(ctx, "return of a call was not proposed", slog.Any("error", err))
		return source.Outcome{Kind: source.KindRetry, Unsure: true, Code: CodeUnscheduled, Message: "the later call that ends the effect could not be proposed; the call is repeated"}
	}
	return out
}
