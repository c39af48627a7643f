package hostile

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

// pace is the interval at which the other tenant sends requests, answered or
// not.
const pace = 20 * time.Millisecond

// worker is the tenant that works.
type worker struct {
	base, token string

	mu     sync.Mutex
	took   []span
	failed int
}

// span is the time from a request to its answer.
type span struct{ from, to time.Time }

func (s span) length() time.Duration { return s.to.Sub(s.from) }

// reset discards the measurements.
func (w *worker) reset() { w.took, w.failed = nil, 0 }

// work proposes, previews and reads actions at a steady pace, for a time or
// until over is closed.
func (w *worker) work(ctx context.Context, length time.Duration, over <-chan struct{}) error {
	var done <-chan time.Time
	if over == nil {
		timer := time.NewTimer(length)
		defer timer.Stop()
		done = timer.C
	}
	tick := time.NewTicker(pace)
	defer tick.Stop()
	var open sync.WaitGroup
	defer open.Wait()
	for n := 0; ; n++ {
		select {
		case <-tick.C:
			open.Go(func() { w.once(ctx, n) })
		case <-done:
			return nil
		case <-over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// once makes one request, and records the duration.
func (w *worker) once(ctx context.Context, n int) {
	method, path, body := http.MethodPost, "/api/v1/actions", fmt.Sprintf(
		`{"type":"mcp.exec","external_id":%q,"tool":{"name":"countersign.noop","source":"countersign"},"args":{"n":%d,"note":"the neighbour works"}}`, uuid.NewString(), n)
	switch n % 4 {
	case 1:
		path, body = "/api/v1/policy/explain", `{"tool":"countersign:countersign.noop","args":{"n":1}}`
	case 2:
		method, path, body = http.MethodGet, "/api/v1/actions?limit=5", ""
	}
	began := time.Now()
	status, err := send(ctx, method, w.base+path, w.token, body)
	took := span{began, time.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	w.took = append(w.took, took)
	if err != nil || status >= 400 {
		w.failed++
	}
}

// quantiles returns the median and the 99th percentile of the latencies.
func (w *worker) quantiles() (p50, p99 time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	sorted := make([]time.Duration, len(w.took))
	for i, s := range w.took {
		sorted[i] = s.length()
	}
	slices.Sort(sorted)
	return quantile(sorted, 0.5), quantile(sorted, 0.99)
}

// late returns the requests that took so long or longer.
func (w *worker) late(least time.Duration) (late []span) {
	for _, s := range w.took {
		if s.length() >= least {
			late = append(late, s)
		}
	}
	return late
}

// client keeps its connections, and has a time limit for responses.
var client = sync.OnceValue(func() *http.Client {
	return &http.Client{Timeout: time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
})

// send makes a request and reads its answer.
func send(ctx context.Context, method, url, token, body string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := client().Do(r)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode, err
}
