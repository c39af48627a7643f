package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// setFaultTimeout bounds telling the counting server how it is.
const setFaultTimeout = 10 * time.Second

// tool is the counting server as its own process, seen from the outside. One
// that dies is started again at the same place, as a supervisor would do it.
type toolProcess struct {
	url string
	wg  sync.WaitGroup

	mu       sync.Mutex
	order    serverConfig
	child    *child
	restarts int
	stopped  bool
	err      error
}

// startToolProcess starts a counting server and waits for its address.
func startToolProcess(ctx context.Context, order serverConfig) (*toolProcess, error) {
	order.Address = "127.0.0.1:0"
	w := &toolProcess{order: order}
	if err := w.start(ctx); err != nil {
		return nil, err
	}
	at, err := url.Parse(w.url)
	if err != nil {
		w.child.kill()
		return nil, fmt.Errorf("read counting server's address: %w", err)
	}
	w.order.Address = at.Host
	w.wg.Go(w.supervise)
	return w, nil
}

// start starts the process. w.mu is held, or nobody else knows w yet.
func (w *toolProcess) start(ctx context.Context) error {
	r, out, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start counting server: %w", err)
	}
	defer r.Close()
	c, err := spawnSelf(roleTally, w.order, out, os.Stderr)
	_ = out.Close() // the child has its own handle
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, c.kill)
	defer stop()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		c.kill()
		return fmt.Errorf("wait for counting server: %w", err)
	}
	w.child, w.url = c, strings.TrimSpace(line)
	return nil
}

// keep starts the server again whenever it dies.
func (w *toolProcess) supervise() {
	for {
		w.mu.Lock()
		c := w.child
		w.mu.Unlock()
		<-c.ended
		w.mu.Lock()
		if w.stopped {
			w.mu.Unlock()
			return
		}
		w.restarts++
		if w.order.Fault == deadly { // it has had its effect
			w.order.Fault, w.order.Share = healthy, 0
		}
		w.err = w.start(context.Background())
		failed := w.err != nil
		w.mu.Unlock()
		if failed {
			return
		}
	}
}

// stop ends the server and says what kept it from being there.
func (w *toolProcess) stop() error {
	w.mu.Lock()
	w.stopped = true
	c := w.child
	w.mu.Unlock()
	c.kill()
	w.wg.Wait()
	return w.err
}

// restartCount is how often the server has died.
func (w *toolProcess) restartCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.restarts
}

// clearFault ends the fault, and setFault begins one.
func (w *toolProcess) clearFault(ctx context.Context) error { return w.setFault(ctx, healthy, 0) }

func (w *toolProcess) setFault(ctx context.Context, kind toolFault, share float64) error {
	ctx, cancel := context.WithTimeout(ctx, setFaultTimeout)
	defer cancel()
	body, err := json.Marshal(faultSetting{Fault: kind, Share: share})
	if err != nil {
		return fmt.Errorf("set fault: %w", err)
	}
	w.mu.Lock() // so that one that is just starting is told too
	defer w.mu.Unlock()
	w.order.Fault, w.order.Share = kind, share
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, w.url+"/fault", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("set fault: %w", err)
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
