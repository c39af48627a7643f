package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"syscall"
)

// health is what PUT /health sets.
type health struct {
	Ill   illness `json:"ill"`
	Share float64 `json:"share"`
}

func (t *tally) setHealth(w http.ResponseWriter, r *http.Request) {
	var h health
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&h); err != nil {
		http.Error(w, "the body is no health", http.StatusBadRequest)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ill, t.share = h.Ill, h.Share
}

// request is what a call is known by before it is looked into.
type request struct {
	Method string          `json:"method"`
	ID     json.RawMessage `json:"id"`
	Params struct {
		Arguments countIn `json:"arguments"`
	} `json:"params"`
}

// peek reads a request that can be read again. It reports false for what is
// no call of a tool.
func peek(w http.ResponseWriter, r *http.Request) (request, bool) {
	if r.Method != http.MethodPost {
		return request{}, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	r.Body = io.NopCloser(bytes.NewReader(body))
	var req request
	return req, err == nil && json.Unmarshal(body, &req) == nil && req.Method == "tools/call"
}

// turnAway answers some calls with 429, as a provider does that has too much
// to do.
func (t *tally) turnAway(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, isCall := peek(w, r)
		if !isCall || rand.Float64() >= t.order.Busy {
			next.ServeHTTP(w, r)
			return
		}
		t.note(event{What: turnedAway, N: req.Params.Arguments.N})
		http.Error(w, "busy", http.StatusTooManyRequests)
	})
}

// suffer spoils some answers.
func (t *tally) suffer(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.mu.Lock()
		ill, share := t.ill, t.share
		t.mu.Unlock()
		req, isCall := peek(w, r)
		if !isCall || ill == healthy || rand.Float64() >= share {
			next.ServeHTTP(w, r)
			return
		}
		t.note(event{What: spoiled, N: req.Params.Arguments.N, Ill: ill})
		if ill == deadly || ill != busy && rand.IntN(2) == 0 {
			next.ServeHTTP(unheard{http.Header{}}, r) // it takes effect
		}
		t.spoil(w, r, ill, req.ID)
	})
}

// spoil gives no answer, or a bad one.
func (t *tally) spoil(w http.ResponseWriter, r *http.Request, ill illness, id json.RawMessage) {
	switch ill {
	case healthy:
	case hangs:
		<-r.Context().Done() // the caller has had enough
	case busy:
		w.Header().Set("Retry-After", strconv.Itoa(int(busyFor.Seconds())))
		http.Error(w, "busy", http.StatusTooManyRequests)
	case down503:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case garbage:
		media := []string{"application/json", "text/event-stream", "text/html"}
		w.Header().Set("Content-Type", media[rand.IntN(len(media))])
		noise := make([]byte, 1+rand.IntN(4096))
		for i := range noise {
			noise[i] = byte(rand.IntN(256))
		}
		_, _ = w.Write(noise) // the caller may have hung up
	case huge:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id)
		page := bytes.Repeat([]byte("a"), 1<<20)
		for range hugeBody / len(page) {
			if _, err := w.Write(page); err != nil {
				return // the caller has hung up
			}
		}
		fmt.Fprint(w, `"}]}}`)
	case deadly:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // nothing below this line is reached
	}
}

// unheard takes an answer that nobody hears.
type unheard struct{ header http.Header }

// Header implements http.ResponseWriter.
func (u unheard) Header() http.Header { return u.header }

// Write implements io.Writer.
func (u unheard) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (u unheard) WriteHeader(int) {}

// Flush implements http.Flusher, without which nothing is streamed.
func (u unheard) Flush() {}
