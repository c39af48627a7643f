package counting

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"syscall"
	"time"
)

// Fault is what is wrong with the server's answers. Half of the affected calls
// have taken effect; of those rejected as busy none has, and of those during
// which the process dies all have.
type Fault string

// The faults.
const (
	Healthy Fault = ""
	Hangs   Fault = "hang"
	Busy    Fault = "429"
	Down    Fault = "503"
	Garbage Fault = "garbage"
	Huge    Fault = "50mb"
	Dies    Fault = "dies"
)

const (
	// BusyFor is the Retry-After of fault Busy.
	BusyFor = 2 * time.Second
	// hugeBody is the length of an answer of fault Huge, in bytes.
	hugeBody = 50 << 20
	// setTimeout bounds Set.
	setTimeout = 10 * time.Second
)

// Setting is a fault, and the share of calls that it affects.
type Setting struct {
	Fault Fault   `json:"fault"`
	Share float64 `json:"share"`
}

// Set changes the fault of the server at a URL.
func (s Setting) Set(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, setTimeout)
	defer cancel()
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url+"/fault", bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("set fault: %w", err)
	}
	_ = resp.Body.Close() // nothing is in it
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("set fault: status %d", resp.StatusCode)
	}
	return nil
}

func (s *server) setFault(w http.ResponseWriter, r *http.Request) {
	var setting Setting
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&setting); err != nil {
		http.Error(w, "the body is not a fault setting", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setting = setting
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
func (s *server) rejectSome(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		req, isCall := readCall(w, r)
		if !isCall || rand.Float64() >= s.cfg.Busy {
			next.ServeHTTP(w, r)
			return
		}
		s.record(event{What: rejected, N: req.Params.Arguments.N})
		http.Error(w, "busy", http.StatusTooManyRequests)
	})
}

// injectFaults makes a share of the answers faulty.
func (s *server) injectFaults(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		now := s.setting
		s.mu.Unlock()
		req, isCall := readCall(w, r)
		if !isCall || now.Fault == Healthy || rand.Float64() >= now.Share {
			next.ServeHTTP(w, r)
			return
		}
		s.record(event{What: faulty, N: req.Params.Arguments.N, Fault: now.Fault})
		if now.Fault == Dies || now.Fault != Busy && rand.IntN(2) == 0 {
			next.ServeHTTP(httptest.NewRecorder(), r) // the call takes effect, and its answer is dropped
		}
		writeFaulty(w, r, now.Fault, req.ID)
	})
}

// writeFaulty writes a faulty answer, or none.
func writeFaulty(w http.ResponseWriter, r *http.Request, fault Fault, id json.RawMessage) {
	switch fault {
	case Healthy:
	case Hangs:
		<-r.Context().Done() // until the caller gives up
	case Busy:
		w.Header().Set("Retry-After", strconv.Itoa(int(BusyFor.Seconds())))
		http.Error(w, "busy", http.StatusTooManyRequests)
	case Down:
		http.Error(w, "down", http.StatusServiceUnavailable)
	case Garbage:
		media := []string{"application/json", "text/event-stream", "text/html"}
		w.Header().Set("Content-Type", media[rand.IntN(len(media))])
		noise := make([]byte, 1+rand.IntN(4096))
		for i := range noise {
			noise[i] = byte(rand.IntN(256))
		}
		_, _ = w.Write(noise) // the caller may have hung up
	case Huge:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id)
		block := bytes.Repeat([]byte("a"), 1<<20)
		for range hugeBody / len(block) {
			if _, err := w.Write(block); err != nil {
				return // the caller has hung up
			}
		}
		fmt.Fprint(w, `"}]}}`)
	case Dies:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // this process ends here
	}
}
