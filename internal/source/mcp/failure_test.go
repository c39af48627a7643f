package mcp_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source/mcp"
)

func TestListErrors(t *testing.T) {
	t.Parallel()
	const secret = "hunter2-hunter2"
	gone := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(gone.Close)
	down := httptest.NewServer(nil)
	down.Close()
	over := func(url string) mcp.Config {
		return mcp.Config{
			Transport: mcp.TransportHTTP, URL: url + "/" + secret + "?key=" + secret, Header: http.Header{"Authorization": {"Bearer " + secret}},
			Guard: safehttp.Guard{Networks: safehttp.Loopback()},
		}
	}
	hangs := stdio(t, "deaf", newEffectLog(t))
	hangs.ListTimeout = time.Second
	for name, test := range map[string]struct {
		cfg  mcp.Config
		want []string
	}{
		"no such program": {mcp.Config{Transport: mcp.TransportStdio, Command: []string{"no-such-program"}}, []string{"no-such-program", "executable file not found"}},
		"a program that exits": {
			stdio(t, "complains", newEffectLog(t), "ACCOUNT="+secret),
			[]string{"ended with exit status 3", "starting | no such account: [REDACTED] | see [1mthe manual"},
		},
		"a program that hangs": {hangs, []string{"was stopped", "no answer within 1s"}},
		"not found":            {over(gone.URL), []string{gone.URL, "status 404"}},
		"nobody there":         {over(down.URL), []string{down.URL, "connection refused"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := open(t, test.cfg)

			_, err := src.List(t.Context())

			if err == nil {
				t.Fatal("List() = nil, want an error")
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("List() = %v, want %q in it", err, want)
				}
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("List() = %v, which shows a secret", err)
			}
		})
	}
}
