package main

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/internal/source"
)

// toolFault is what is wrong with the tool's answers.
type toolFault string

// The faults of the tool. Half of the affected calls have taken effect, but
// for those that are turned away, of which none has, and those that the tool
// dies of, of which all have.
const (
	healthy toolFault = ""
	hangs   toolFault = "hang"
	busy    toolFault = "429"
	down503 toolFault = "503"
	garbage toolFault = "garbage"
	huge    toolFault = "50mb"
	deadly  toolFault = "dies"
)

const (
	// faultFor is how long the tool has a fault, faultShare the share of its calls that
	// is.
	faultFor   = 6 * time.Second
	faultShare = 0.12
	// busyFor is what a tool that is busy asks for.
	busyFor = 2 * time.Second
	// hugeBody is how long an answer of illness huge is, in bytes.
	hugeBody = 50 << 20
)

// The signs that the tool had a fault.
const (
	feltSpoiled = "answers replaced"
	feltDeaths  = "tools killed"
	feltPatient = "calls answered with 429"
)

func toolFaults() []fault {
	toolFaultOf := func(kind toolFault, about string, codes ...string) fault {
		return fault{
			name: "tool-" + string(kind), about: about, n: 400, over: 6 * time.Second,
			tool:   func(o *serverConfig) { o.Fault, o.Share = kind, faultShare },
			inject: clearFaultAfter(faultFor), wantSigns: []string{feltSpoiled}, codes: codes, most: perSpoiled,
		}
	}
	turnedAway := toolFaultOf(busy, fmt.Sprintf("the tool answers 429 with Retry-After: %.0f", busyFor.Seconds()))
	turnedAway.wantSigns, turnedAway.most = []string{feltPatient}, noneUnknown
	dies := toolFaultOf(deadly, "the tool's process dies after an effect and before its answer, with all other calls, and is started again", lostCodes()...)
	dies.tool = func(o *serverConfig) { o.Fault, o.Share = deadly, 1 }
	dies.inject, dies.wantSigns, dies.most = crashTool, []string{feltDeaths}, perOutage
	return []fault{
		toolFaultOf(hangs, "the tool does not answer some calls at all", source.CodeTimeout),
		turnedAway,
		toolFaultOf(down503, "the tool answers some calls with 503, before or after the effect", source.CodeServerError),
		// Noise may happen to be a stream of events that has none.
		toolFaultOf(garbage, "the tool answers some calls with bytes that are no answer", source.CodeMalformed, source.CodeLost),
		toolFaultOf(huge, "the tool answers some calls with 50 MB", source.CodeOversized),
		dies,
	}
}

// clearFaultAfter leaves the fault in place for a while.
func clearFaultAfter(d time.Duration) func(context.Context, *faultRun) error {
	return func(ctx context.Context, t *faultRun) error {
		return t.during(byTool, func() error {
			if err := t.waitFor(ctx, d); err != nil {
				return err
			}
			return t.tool.clearFault(ctx)
		})
	}
}

// die waits until the tool has died.
func crashTool(ctx context.Context, t *faultRun) error {
	return t.during(byTool, func() error {
		for t.tool.restartCount() == 0 {
			if err := t.waitFor(ctx, pollInterval/10); err != nil {
				return err
			}
		}
		t.addSign(feltDeaths, t.tool.restartCount())
		return nil
	})
}
