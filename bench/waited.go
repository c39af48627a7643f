package main

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/bench/machine"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
)

const (
	// bulkCalls are due, in the bucket of the approved actions, to a tool that takes
	// bulkFor, in a worker of slowSlots: a minute of work.
	bulkCalls = 20_000
	bulkFor   = 300 * time.Millisecond
	// approvals is the number measured without the bulk, and again with it.
	approvals = 20
)

// measureWaited measures the time that a person waits for an action that they
// approve (approve --wait), without other work and with a bulk of due actions of
// the same source in the same bucket.
func measureWaited(ctx context.Context, s *suite) error {
	return s.environment(ctx, "", func(h *environment) error {
		server, _ := slowServer(bulkFor)
		defer server.Close()
		ids, err := h.prepareApprovals(ctx, server)
		if err != nil {
			return err
		}
		return h.withAPI(ctx, func(api *process.API, token string) error {
			person, err := client.New(api.Base, token, client.Config{})
			if err != nil {
				return err
			}
			return h.whileFleet(ctx, slowSlots, func() error { return besideBulk(ctx, s, h, person, ids) })
		})
	})
}

// prepareApprovals makes actions of a source that wait for a person.
func (h *environment) prepareApprovals(ctx context.Context, server *httptest.Server) ([]envelope.ActionID, error) {
	if err := addMCP(ctx, h, h.tenant, "slow", server.URL); err != nil {
		return nil, err
	}
	if err := h.setMode(ctx, envelope.ModeRequireApproval); err != nil {
		return nil, err
	}
	ids, err := submitSlow(ctx, h.intake, h.tenant, "approved", 2*approvals)
	if err != nil {
		return nil, err
	}
	return ids, h.setMode(ctx, envelope.ModeAllow)
}

func besideBulk(ctx context.Context, s *suite, h *environment, person *client.Client, ids []envelope.ActionID) error {
	quiet, err := approveEach(ctx, person, ids[:approvals])
	if err != nil {
		return err
	}
	if _, err := submitSlow(ctx, intake.New(h.pool, h.cache, intake.Config{}), h.tenant, "bulk", bulkCalls); err != nil {
		return err
	}
	before, err := h.left(ctx, 0)
	if err != nil {
		return err
	}
	beside, err := approveEach(ctx, person, ids[approvals:])
	if err != nil {
		return err
	}
	after, err := h.left(ctx, 0)
	if err != nil {
		return err
	}
	s.rep.note("load: %s; approve --wait: p50 %.0f ms, worst %.0f ms without other work; beside %d to %d actions in the bucket: p50 %.0f ms, worst %.0f ms",
		machine.Load(), quiet[len(quiet)/2], quiet[len(quiet)-1], before, after, beside[len(beside)/2], beside[len(beside)-1])
	if after == 0 {
		return fmt.Errorf("the %d other actions ended before the last approval", bulkCalls)
	}
	s.rep.aimed("approve --wait beside a bulk, p50", "ms", beside[len(beside)/2], 1000, map[string]float64{"quiet_ms": quiet[len(quiet)/2]})
	s.rep.aimed("approve --wait beside a bulk, worst", "ms", beside[len(beside)-1], 1000, map[string]float64{"quiet_ms": quiet[len(quiet)-1]})
	return nil
}

// approveEach approves actions, each when the one before has ended. It returns the
// waits in milliseconds, sorted.
func approveEach(ctx context.Context, person *client.Client, ids []envelope.ActionID) ([]float64, error) {
	took := make([]float64, len(ids))
	for i, id := range ids {
		began := time.Now()
		a, err := person.Approve(ctx, id, wire.Approval{}, 2*time.Minute)
		if err != nil {
			return nil, err
		}
		if took[i] = float64(time.Since(began).Microseconds()) / 1000; a.Phase != envelope.PhaseCompleted {
			return nil, fmt.Errorf("action %s is %s after %.0f ms", id, a.Phase, took[i])
		}
	}
	slices.Sort(took)
	return took, nil
}
