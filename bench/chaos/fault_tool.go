package main

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/bench/chaos/counting"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/internal/source"
)

const (
	// toolFaultFor is how long the tool has a fault, toolFaultShare the share
	// of its calls that is affected.
	toolFaultFor   = 6 * time.Second
	toolFaultShare = 0.12
)

// The signs that the tool had a fault.
const (
	signFaulty = "answers replaced"
	signDeaths = "tools killed"
	signBusy   = "calls answered with 429"
)

func toolFaults() []fault {
	of := func(kind counting.Fault, about string, codes ...string) fault {
		return fault{
			name: "tool-" + string(kind), about: about, n: 400, over: 6 * time.Second,
			tool:   counting.Setting{Fault: kind, Share: toolFaultShare},
			inject: clearToolFault, signs: []string{signFaulty}, codes: codes, most: perFaulty,
		}
	}
	busy := of(counting.Busy, fmt.Sprintf("the tool answers 429 with Retry-After: %.0f", counting.BusyFor.Seconds()))
	busy.signs, busy.most = []string{signBusy}, noneUnknown
	dies := of(counting.Dies, "the tool's process dies after an effect and before its answer, with all other calls, and is started again", lostCodes()...)
	dies.tool.Share = 1
	dies.inject, dies.signs, dies.most = awaitDeath, []string{signDeaths}, perOutage
	return []fault{
		of(counting.Hangs, "the tool does not answer some calls at all", source.CodeTimeout),
		busy,
		of(counting.Down, "the tool answers some calls with 503, before or after the effect", source.CodeServerError),
		// Noise may happen to be a stream of events that has none.
		of(counting.Garbage, "the tool answers some calls with bytes that are no answer", source.CodeMalformed, source.CodeLost),
		of(counting.Huge, "the tool answers some calls with 50 MB", source.CodeOversized),
		dies,
	}
}

// clearToolFault ends the tool's fault after a while.
func clearToolFault(ctx context.Context, t *faultRun) error {
	return t.during(byTool, func() error {
		if err := process.Wait(ctx, toolFaultFor); err != nil {
			return err
		}
		return t.tool.setFault(ctx, counting.Setting{})
	})
}

// awaitDeath waits until the tool has died.
func awaitDeath(ctx context.Context, t *faultRun) error {
	return t.during(byTool, func() error {
		err := process.Poll(ctx, pollInterval/10, func() (bool, error) { return t.tool.restartCount() > 0, nil })
		t.addSign(signDeaths, t.tool.restartCount())
		return err
	})
}
