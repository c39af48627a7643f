package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/bench/machine"
	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/tenant/identity"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// The actions that the page shows while it is measured.
const (
	pageEnded   = 10_000
	pageWaiting = 1_000
	pageFolder  = "../web"
	// pageText is the length of the longest text, which somebody edits.
	pageText = 200_000
)

// pageFigures is the output of web/tools/speed.mjs. Times are in milliseconds,
// heaps in bytes.
type pageFigures struct {
	Chromium string    `json:"chromium"`
	LCP      pageTimes `json:"lcp"`
	Decision pageTimes `json:"decision"`
	Next     pageTimes `json:"next"`
	// Key is from a key to its character, in a field of 200 kB. Shift is the
	// cumulative layout shift of a load.
	Key     pageTimes  `json:"key"`
	Shift   pageTimes  `json:"shift"`
	Inbox   pageEvents `json:"inbox"`
	Actions pageEvents `json:"actions"`
	Hour    pageEvents `json:"hour"`
}

// pageTimes are quantiles of times.
type pageTimes struct {
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	Worst float64 `json:"worst"`
	Count int     `json:"count"`
}

// pageEvents is the page's work during a period with many events. Long tasks
// are those of more than 50 ms.
type pageEvents struct {
	Events          int     `json:"events"`
	Seconds         float64 `json:"seconds"`
	Long            int     `json:"long"`
	LongInOneSecond float64 `json:"long_in_one_second"`
	Longest         float64 `json:"longest"`
	HeapBefore      float64 `json:"heap_before"`
	HeapAfter       float64 `json:"heap_after"`
}

func (p pageEvents) growth() float64 { return (p.HeapAfter - p.HeapBefore) / 1e6 }

// measurePage measures the operator's page in Chromium, against its aims.
func measurePage(ctx context.Context, s *suite) error {
	if err := reportSizes(ctx, s.rep); err != nil {
		return err
	}
	if missing := pageMissing(); missing != "" {
		s.rep.note("what happens in a browser is not measured: %s", missing)
		return nil
	}
	return s.environment(ctx, "", func(h *environment) error {
		calendar := calendarServer()
		defer calendar.Close()
		if err := h.preparePage(ctx, calendar.URL); err != nil {
			return err
		}
		var figures pageFigures
		err := h.withAPI(ctx, func(api *process.API, token string) error {
			return h.whileWorking(ctx, func() error {
				s.rep.note("load before: %s", machine.Load())
				err := runSpeed(ctx, api.Base, token, &figures)
				s.rep.note("load after: %s; Chromium %s", machine.Load(), figures.Chromium)
				return err
			})
		})
		if err == nil {
			reportPage(s.rep, figures)
		}
		return err
	})
}

// pageMissing returns the missing program that the measurement needs, or "".
func pageMissing() string {
	if _, err := exec.LookPath("node"); err != nil {
		return "Node is not installed"
	}
	if _, err := os.Stat(pageFolder + "/node_modules/@playwright/test"); err != nil {
		return "web/node_modules has no Playwright (make web installs it)"
	}
	if _, err := os.Stat(chromiumPath()); err != nil {
		return "Chromium is not installed; run make chromium"
	}
	return ""
}

func chromiumPath() string {
	if path := os.Getenv("CHROMIUM"); path != "" {
		return path
	}
	return "/usr/bin/chromium"
}

// preparePage creates ended actions and pending actions, which have arguments as
// nested as those of real tools. Later proposals are allowed again.
func (h *environment) preparePage(ctx context.Context, calendar string) error {
	if err := h.submit(ctx, 0, pageEnded, 1000); err != nil {
		return err
	}
	if _, err := h.burn(ctx, outboxLeft); err != nil {
		return err
	}
	if err := h.setMode(ctx, envelope.ModeRequireApproval); err != nil {
		return err
	}
	if err := addMCP(ctx, h, h.tenant, calendarSource, calendar); err != nil {
		return err
	}
	bodies := make([][]byte, pageWaiting)
	for i := range bodies {
		bodies[i] = calendarCall(i, "")
	}
	// The longest text is in the newest action: the list begins with the oldest.
	bodies = append(bodies, calendarCall(pageWaiting, strings.Repeat("All of it. ", pageText/11)))
	for some := range slices.Chunk(bodies, 200) {
		if _, err := propose(ctx, h.intake, h.tenant, some...); err != nil {
			return err
		}
	}
	if err := h.setMode(ctx, envelope.ModeAllow); err != nil {
		return err
	}
	_, err := h.pool.Exec(ctx, "ANALYZE")
	return err
}

func (h *environment) setMode(ctx context.Context, mode envelope.Mode) error {
	return postgres.InTx(ctx, h.pool, postgres.Admin(), func(tx pgx.Tx) error {
		return settings.PutMode(ctx, tx, h.tenant, "", "*", mode, "bench")
	})
}

// withAPI calls fn with a process of the API, and a token of an owner.
func (h *environment) withAPI(ctx context.Context, fn func(api *process.API, token string) error, env ...string) error {
	token, err := h.owner(ctx)
	if err != nil {
		return err
	}
	return process.WithAPI(ctx, h.url, func(api *process.API) error { return fn(api, token) }, env...)
}

// owner returns a token of an owner, to whom no proposal limit applies.
func (h *environment) owner(ctx context.Context) (token string, err error) {
	err = postgres.InTx(ctx, h.pool, postgres.Admin(), func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "UPDATE tenants SET session_pending_max = 0, session_minute_max = 0 WHERE tenant_id = $1", h.tenant.String()); err != nil {
			return err
		}
		made, err := identity.Issue(ctx, tx, h.tenant, identity.Grant{Name: "page", Role: identity.RoleOwner}, time.Now())
		token = made.Token.Text()
		return err
	})
	return token, err
}

func runSpeed(ctx context.Context, base, token string, figures *pageFigures) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	program := exec.CommandContext(ctx, "node", "tools/speed.mjs")
	program.Dir, program.Stderr = pageFolder, &stderr
	program.Env = append(os.Environ(), "SPEED_URL="+base, "SPEED_TOKEN="+token, "CHROMIUM="+chromiumPath())
	out, err := program.Output()
	if err != nil {
		return fmt.Errorf("web/tools/speed.mjs: %w\n%s", err, stderr.String())
	}
	return json.Unmarshal(out, figures)
}

func reportPage(r *report, f pageFigures) {
	times := func(t pageTimes) map[string]float64 {
		return map[string]float64{"p50": t.P50, "p95": t.P95, "worst": t.Worst, "count": float64(t.Count)}
	}
	r.aimed("page, LCP of the inbox", "ms", f.LCP.P50, 1000, times(f.LCP))
	r.aimed("page, decision, p95 at 4×", "ms", f.Decision.P95, 150, times(f.Decision))
	r.aimed("page, a key in 200 kB, p95", "ms", f.Key.P95, 50, times(f.Key))
	r.aimed("page, layout shift of a load", "", f.Shift.Worst, 0.01, times(f.Shift))
	r.aimed("page, j in 10,000, p95 at 4×", "ms", f.Next.P95, 50, times(f.Next))
	r.note("p50 and worst: LCP %.0f and %.0f, decision %.0f and %.0f, j %.0f and %.0f ms",
		f.LCP.P50, f.LCP.Worst, f.Decision.P50, f.Decision.Worst, f.Next.P50, f.Next.Worst)
	for _, e := range []struct {
		view   string
		events pageEvents
	}{{"inbox", f.Inbox}, {"actions", f.Actions}, {"actions, 10,000 events", f.Hour}} {
		r.note("%s: %d events in %.0f s, %d long tasks, the longest %.0f ms; heap %.1f MB before, %.1f MB after", e.view,
			e.events.Events, e.events.Seconds, e.events.Long, e.events.Longest, e.events.HeapBefore/1e6, e.events.HeapAfter/1e6)
	}
	r.aimed("page, long tasks, inbox", "a second at most", f.Inbox.LongInOneSecond, 1, map[string]float64{"longest_ms": f.Inbox.Longest})
	r.aimed("page, long tasks, actions", "a second at most", f.Actions.LongInOneSecond, 1, map[string]float64{"longest_ms": f.Actions.Longest})
	r.aimed("page, heap, 10,000 events", "MB more", f.Hour.growth(), 10, map[string]float64{"before": f.Hour.HeapBefore, "after": f.Hour.HeapAfter})
}

// sizeLine is a line of web/tools/budget.mjs.
var sizeLine = regexp.MustCompile(`(?m)^(?:TOO LARGE )?(\S.*): ([0-9.]+) of ([0-9.]+) kB$`)

// reportSizes reports the compressed sizes of the initial scripts, of the style
// and of the largest view that is loaded later.
func reportSizes(ctx context.Context, r *report) error {
	if _, err := exec.LookPath("node"); err != nil {
		r.note("the sizes are not measured: Node is not installed")
		return nil
	}
	out, err := exec.CommandContext(ctx, "node", pageFolder+"/tools/budget.mjs").Output()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) { // it fails where a size is above its aim
		return err
	}
	var largest, largestAim float64
	for _, line := range sizeLine.FindAllStringSubmatch(string(out), -1) {
		var size, aim float64
		if _, err := fmt.Sscan(line[2]+" "+line[3], &size, &aim); err != nil {
			return err
		}
		switch {
		case line[1] == "first load":
			r.aimed("page, first load", "kB", size, aim, nil)
		case strings.HasSuffix(line[1], ".css"):
			r.aimed("page, style", "kB", size, aim, nil)
		case size > largest:
			largest, largestAim = size, aim
		}
	}
	r.aimed("page, largest later view", "kB", largest, largestAim, nil)
	return nil
}
