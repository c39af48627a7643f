package main

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign-dev/countersign/internal/source/mcp"
)

const (
	// toolCuts is how often the network to the tool is cut. After the first time
	// breakers keep most calls from it for half a minute.
	toolCuts = 3
	// toolSilence is longer than a call may take.
	toolSilence = mcp.DefaultCallTimeout + 5*time.Second
	// toolRate is a slow connection to the tool, in kilobytes a second.
	toolRate = 2
)

// The signs that the network to the tool was bad: what the ledger says of attempts.
const (
	feltLost     = "attempts without an answer"
	feltTimeouts = "attempts timed out"
	feltLong     = "slow attempts"
)

func toolNetworkFaults() []fault {
	impair := func(toxics []toxic) func(context.Context, *faultRun) error {
		return func(ctx context.Context, t *faultRun) error {
			if !pause(ctx, cutPause) {
				return ctx.Err()
			}
			return t.during(byLine, func() error {
				return t.proxy.withToxics(ctx, toxics, func() error { return t.waitFor(ctx, impaired) })
			})
		}
	}
	return []fault{
		{
			name: "tool-cut", about: fmt.Sprintf("between workers and the tool, every connection is reset, %d times", toolCuts),
			n: 500, over: 6 * time.Second, line: placeTool,
			inject: cutTool, wantSigns: []string{feltLost}, codes: lostCodes(), most: perOutage,
		},
		{
			name: "tool-drop", about: fmt.Sprintf("between workers and the tool, nothing comes through for %s, and nobody is told", toolSilence),
			n: 500, over: 6 * time.Second, line: placeTool,
			inject: func(ctx context.Context, t *faultRun) error {
				if !pause(ctx, cutPause) {
					return ctx.Err()
				}
				return t.during(byLine, func() error {
					return t.proxy.withToxics(ctx, silence(), func() error { return t.waitFor(ctx, toolSilence) })
				})
			},
			wantSigns: []string{feltTimeouts}, codes: lostCodes(),
			// A second round of calls begins when the first has timed out.
			most: func(e evidence) int { return 2 * perOutage(e) },
		},
		{
			name: "tool-delay", about: fmt.Sprintf("between workers and the tool, every answer comes %s (± %s) late", lineDelay, lineJitter),
			n: 500, over: 9 * time.Second, line: placeTool,
			inject: impair(delayed(lineDelay, lineJitter)), wantSigns: []string{feltLong}, most: noneUnknown,
		},
		{
			name: "tool-slow", about: fmt.Sprintf("between workers and the tool, answers come at %d kB/s on each connection", toolRate),
			n: 500, over: 9 * time.Second, line: placeTool,
			inject: impair(slow(toolRate)), wantSigns: []string{feltLong}, most: noneUnknown,
		},
	}
}

func cutTool(ctx context.Context, t *faultRun) error {
	for range toolCuts {
		if !pause(ctx, cutPause) {
			return ctx.Err()
		}
		if err := t.during(byLine, t.proxy.cut); err != nil {
			return err
		}
	}
	return nil
}

// waitFor waits, and is an error if it may not.
func (t *faultRun) waitFor(ctx context.Context, d time.Duration) error {
	if !pause(ctx, d) {
		return ctx.Err()
	}
	return nil
}
