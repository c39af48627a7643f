package main

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/internal/source"
)

// illness is what is wrong with the tool's answers.
type illness string

// The illnesses. One half of the calls that fall ill have taken effect, but
// for those that are turned away, of which none has, and those that the tool
// dies of, of which all have.
const (
	healthy illness = ""
	hangs   illness = "hang"
	busy    illness = "429"
	down503 illness = "503"
	garbage illness = "garbage"
	huge    illness = "50mb"
	deadly  illness = "dies"
)

const (
	// illFor is how long the tool is ill, illShare the share of its calls that
	// is.
	illFor   = 6 * time.Second
	illShare = 0.12
	// busyFor is what a tool that is busy asks for.
	busyFor = 2 * time.Second
	// hugeBody is how long an answer of illness huge is, in bytes.
	hugeBody = 50 << 20
)

// The signs that the tool was ill.
const (
	feltSpoiled = "answers spoiled"
	feltDeaths  = "tools dead"
	feltPatient = "calls told to wait"
)

func illFaults() []fault {
	ill := func(kind illness, about string, codes ...string) fault {
		return fault{
			name: "tool-" + string(kind), about: about, n: 400, over: 6 * time.Second,
			tool:   func(o *tallyOrder) { o.Ill, o.Share = kind, illShare },
			strike: healAfter(illFor), feels: []string{feltSpoiled}, codes: codes, most: perSpoiled,
		}
	}
	turnedAway := ill(busy, fmt.Sprintf("the tool answers 429 with Retry-After: %.0f", busyFor.Seconds()))
	turnedAway.feels, turnedAway.most = []string{feltPatient}, noneUnknown
	dies := ill(deadly, "the tool's process dies after an effect and before its answer, with all other calls, and is started again", lostCodes()...)
	dies.tool = func(o *tallyOrder) { o.Ill, o.Share = deadly, 1 }
	dies.strike, dies.feels, dies.most = die, []string{feltDeaths}, perOutage
	return []fault{
		ill(hangs, "the tool does not answer some calls at all", source.CodeTimeout),
		turnedAway,
		ill(down503, "the tool answers some calls with 503, before or after the effect", source.CodeServerError),
		// Noise may happen to be a stream of events that has none.
		ill(garbage, "the tool answers some calls with bytes that are no answer", source.CodeMalformed, source.CodeLost),
		ill(huge, "the tool answers some calls with 50 MB", source.CodeOversized),
		dies,
	}
}

// healAfter leaves the tool ill for a while.
func healAfter(d time.Duration) func(context.Context, *trial) error {
	return func(ctx context.Context, t *trial) error {
		return t.during(blowIll, func() error {
			if err := t.waitFor(ctx, d); err != nil {
				return err
			}
			return t.world.heal(ctx)
		})
	}
}

// die waits until the tool has died.
func die(ctx context.Context, t *trial) error {
	return t.during(blowIll, func() error {
		for t.world.deaths() == 0 {
			if err := t.waitFor(ctx, lookEvery/10); err != nil {
				return err
			}
		}
		t.feel(feltDeaths, t.world.deaths())
		return nil
	})
}
