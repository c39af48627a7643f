package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/telemetry"
)

// TestProbesDoNotWaitForBodies sends requests without their bodies.
func TestProbesDoNotWaitForBodies(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	tel, err := telemetry.Setup(t.Context(), telemetry.Config{Log: &log})
	if err != nil {
		t.Fatal(err)
	}
	ready := func(context.Context) error { return nil }

	err = tel.RunWithProbes(t.Context(), "127.0.0.1:0", ready, func(ctx context.Context) error {
		var line struct{ Address string }
		if err := json.Unmarshal(log.Bytes(), &line); err != nil {
			return err
		}
		for path, status := range map[string]string{"GET /metrics": "200", "GET /readyz": "200", "POST /healthz": "405", "PUT /none": "404"} {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", line.Address)
			if err != nil {
				return err
			}
			if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil { // the answer is immediate
				return err
			}
			if _, err := io.WriteString(c, path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nx"); err != nil {
				return err
			}
			answer, err := io.ReadAll(c)
			if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+status) {
				t.Errorf("%s with a body that does not come = %.40q, %v, want %s and a closed connection", path, answer, err, status)
			}
			_ = c.Close()
		}
		return nil
	})

	if err != nil {
		t.Errorf("RunWithProbes = %v", err)
	}
}
