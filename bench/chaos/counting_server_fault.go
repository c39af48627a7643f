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

// faultSetting is the body of PUT /fault.
type faultSetting struct {
	Fault toolFault `json:"fault"`
	Share float64   `json:"share"`
}

func (t *countingServer) setFault(w http.ResponseWriter, r *http.Request) {
	var h faultSetting
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&h); err != nil {
		http.Error(w, "the body is not a fault setting", http.StatusBadRequest)
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault, t.share = h.Fault, h.Share
}

// request is the part of a call that the middleware needs.
type request struct {
	Method string          `json:"method"`
	ID     json.RawMessage `json:"id"`
	Params struct {
		Arguments countIn `json:"arguments"`
	} `json:"params"`
}

// readCall reads a request and restores its body. It reports false for a request
// that is not a tool call.
func readCall(w http.ResponseWriter, r *http.Request) (request, bool) {
	if r.Method != http.MethodPost {
		return request{}, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	r.Body = io.NopCloser(bytes.NewReader(body))
	var req request
	return req, err == nil && json.Unmarshal(body, &req) == nil && req.Method == "tools/call"
}

// rejectSome answers a share of the calls with 429, as an overloaded provider does.
func (t *countingServer) rejectSome(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, isCall := readCall(w, r)
		if !isCall || rand.Float64() >= t.order.Busy {
			next.ServeHTTP(w, r)
			return
		}
		t.record(event{What: turnedAway, N: req.Params.Arguments.N})
		http.Error(w, "busy", http.StatusTooManyRequests)
	})
}

// injectFaults makes a share of the responses faulty.
func (t *countingServer) injectFaults(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.mu.Lock()
		kind, share := t.fault, t.share
		t.mu.Unlock()
		req, isCall := readCall(w, r)
		if !isCall || kind == healthy || rand.Float64() >= share {
			next.ServeHTTP(w, r)
			return
		}
		t.record(event{What: spoiled, N: req.Params.Arguments.N, Fault: kind})
		if kind == deadly || kind != busy && rand.IntN(2) == 0 {
			next.ServeHTTP(discardedResponse{http.Header{}}, r) // it takes effect
		}
		t.writeFaulty(w, r, kind, req.ID)
	})
}

// writeFaulty writes a faulty response, or none.
func (t *countingServer) writeFaulty(w http.ResponseWriter, r *http.Request, kind toolFault, id json.RawMessage) {
	switch kind {
	case healthy:
	case hangs:
		<-r.Context().Done() // until the caller gives up
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

// discardedResponse discards a response.
type discardedResponse struct{ header http.Header }

// Header implements http.ResponseWriter.
func (u discardedResponse) Header() http.Header { return u.header }

// Write implements io.Writer.
func (u discardedResponse) Write(p []byte) (int, error) { return len(p), nil }

// WriteHeader implements http.ResponseWriter.
func (u discardedResponse) WriteHeader(int) {}

// Flush implements http.Flusher, without which nothing is streamed.
func (u discardedResponse) Flush() {}
