package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/countersign-dev/countersign/bench/chaos/process"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	kind "github.com/countersign-dev/countersign/internal/fault"
)

const (
	// submitBatch is how many actions one submission has.
	submitBatch = 50
	// submitTimeout bounds one submission, and submitPause is the wait before
	// a failed one is repeated.
	submitTimeout = 10 * time.Second
	submitPause   = 100 * time.Millisecond
)

// agent submits actions. It repeats a failed submission with the same external
// ids, which makes that safe.
type agent struct {
	intake *intake.Intake
	tenant envelope.TenantID
	plan   plan

	submitted atomic.Int64 // actions that were accepted
	again     atomic.Int64 // repeated submissions
}

// submit submits all actions: the first half as fast as possible, so that there
// is a backlog, and the rest spread over a time.
func (a *agent) submit(ctx context.Context) error {
	n, over := a.plan.total(), a.plan.over
	batches := (n - n/2 + submitBatch - 1) / submitBatch
	for from := 0; from < n; from += submitBatch {
		if from > n/2 {
			if err := process.Wait(ctx, over/time.Duration(max(batches, 1))); err != nil {
				return err
			}
		}
		if err := a.batch(ctx, from, min(submitBatch, n-from)); err != nil {
			return err
		}
	}
	return nil
}

func (a *agent) batch(ctx context.Context, from, n int) error {
	proposals := make([]*envelope.Proposal, n)
	for i := range proposals {
		text := fmt.Sprintf(`{"type":"mcp.exec","external_id":%q,"tool":{"name":%q,"source":%q},"args":{"n":%d},`+
			`"constraints":{"rate_bucket":%q}}`, externalID(from+i), toolOf(a.plan.class(from+i)), sourceID, from+i, bucketName(from+i))
		p, err := envelope.Parse([]byte(text))
		if err != nil {
			return fmt.Errorf("envelope %d: %w", from+i, err)
		}
		proposals[i] = p
	}
	for try := 0; ; try++ {
		answers, err := a.accept(ctx, proposals)
		if err == nil {
			return a.check(answers, from, try)
		}
		if kind.KindOf(err) == kind.Invalid {
			return fmt.Errorf("submit: %w", err)
		}
		a.again.Add(1)
		if ended := process.Wait(ctx, submitPause); ended != nil {
			return errors.Join(ended, err)
		}
	}
}

func (a *agent) accept(ctx context.Context, proposals []*envelope.Proposal) ([]intake.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, submitTimeout)
	defer cancel()
	return a.intake.Accept(ctx, intake.Submitter{Tenant: a.tenant, Name: "chaos"}, proposals)
}

func (a *agent) check(answers []intake.Answer, from, try int) error {
	for i, answer := range answers {
		switch {
		case answer.Err != nil:
			return fmt.Errorf("envelope %d was refused: %w", from+i, answer.Err)
		case answer.Known && try == 0:
			return fmt.Errorf("envelope %d was known before it was submitted", from+i)
		}
	}
	a.submitted.Add(int64(len(answers)))
	return nil
}

func externalID(n int) string { return fmt.Sprintf("n-%d", n) }
