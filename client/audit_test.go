package client_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/client"
)

func TestExportAuditPassesLinesOn(t *testing.T) {
	t.Parallel()
	const end = `{"end":true,"tenant_id":"019a0b1c-2d3e-7f40-8a5b-6c7d8e9f0a1b","events":2,"next_cursor":"3-4","head":null}`
	var query string
	c := serve(t, client.Config{}, func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.RawQuery
		fmt.Fprint(w, `{"place":"1-2","items":[{"a": 1}]}`+"\n"+`{"place":"3-4"}`+"\n"+end+"\n")
	})
	var lines []string
	from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	closing, err := c.ExportAudit(t.Context(), client.AuditRange{From: from, Until: from.Add(time.Hour), After: "1-1"}, func(line []byte) error {
		lines = append(lines, string(line))
		return nil
	})

	if err != nil || closing.Events != 2 || closing.Next != "3-4" || query != "cursor=1-1&since=2026-01-02T03%3A04%3A05Z&until=2026-01-02T04%3A04%3A05Z" {
		t.Errorf("ExportAudit() = %+v, %v, asked for %s", closing, err, query)
	}
	if diff := cmp.Diff([]string{`{"place":"1-2","items":[{"a": 1}]}`, `{"place":"3-4"}`}, lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	errFull := errors.New("the disk is full")
	if _, err := c.ExportAudit(t.Context(), client.AuditRange{}, func([]byte) error { return errFull }); !errors.Is(err, errFull) {
		t.Errorf("ExportAudit() = %v, want %v", err, errFull)
	}
}

func TestTruncatedExportIsAnError(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"without a last line": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `{"place":"1-2"}`) },
		"in the middle": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"place"`)
		},
		"silent": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintln(w, `{"place":"1-2"}`)
			_ = http.NewResponseController(w).Flush() // the client reports the events that it received
			<-r.Context().Done()
		},
	} {
		c := serve(t, client.Config{Silence: 100 * time.Millisecond}, answer)

		_, err := c.ExportAudit(t.Context(), client.AuditRange{}, func([]byte) error { return nil })

		if _, ok := errors.AsType[*client.UnreachableError](err); !ok {
			t.Errorf("%s: %v, want an *UnreachableError", name, err)
		}
	}
}
