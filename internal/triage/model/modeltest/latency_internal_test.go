package modeltest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLatency checks the duration of a burst of questions on a fake clock.
func TestLatency(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		config Config
		want   time.Duration
	}{
		"at once":                   {Config{Slots: 1}, 0},
		"by the clock, one slot":    {Config{Slots: 1, Latency: Latency{Fixed: time.Second}}, 8 * time.Second},
		"by the clock, four slots":  {Config{Slots: 4, Latency: Latency{Fixed: time.Second}}, 2 * time.Second},
		"by tokens read":            {Config{Slots: 8, Latency: Latency{Prefill: 1000}}, 500 * time.Millisecond},
		"by tokens written":         {Config{Slots: 8, Latency: Latency{Decode: 24}}, time.Duration(float64(6) / 24 * float64(time.Second))},
		"by tokens, ten times fast": {Config{Slots: 8, Latency: Latency{Prefill: 1000, Speed: 10}}, 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				of.config.Answer = func(Request) Reply { return Reply{Text: strings.Repeat("abcd", 6)} }
				s := newServer(of.config)
				begun := time.Now()

				var all sync.WaitGroup
				for i := range 8 {
					all.Go(func() {
						body := fmt.Sprintf(`{"model":"test-model","max_tokens":50,"messages":[{"role":"user","content":"%d%s"}]}`, i, strings.Repeat("x", 1999))
						w := httptest.NewRecorder()
						s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
						if w.Code != http.StatusOK {
							t.Errorf("status %d: %s", w.Code, w.Body)
						}
					})
				}
				all.Wait()

				if got := time.Since(begun); got != of.want {
					t.Errorf("8 questions took %s, want %s", got, of.want)
				}
			})
		})
	}
}

// TestPrefixCache checks that a slot reads the common prefix of its last prompt
// once.
func TestPrefixCache(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(Config{Slots: 1, Latency: Latency{Prefill: 1000}})
		ask := func(text string) time.Duration {
			begun := time.Now()
			body := fmt.Sprintf(`{"model":"test-model","max_tokens":50,"messages":[{"role":"user","content":"%s"}]}`, text)
			s.Handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
			return time.Since(begun)
		}
		same := strings.Repeat("x", 2000)

		first, second := ask(same+"yyyy"), ask(same+"zzzz")

		if first != 501*time.Millisecond || second != time.Millisecond {
			t.Errorf("the questions took %s and %s, want 501ms and 1ms", first, second)
		}
	})
}
