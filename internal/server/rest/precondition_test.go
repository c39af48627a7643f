package rest_test

import (
	"net/http"
	"testing"
)

// TestWritesAreBoundToTheVersionThatWasRead changes each resource twice on the
// basis of the same ETag: the second change is refused.
func TestWritesAreBoundToTheVersionThatWasRead(t *testing.T) {
	t.Parallel()
	f := newHouse(t).tenant("versions")
	f.admin.send("PUT", "/api/v1/buckets/b", object{"concurrency": 1}).wants(t, 204)
	f.admin.send("PUT", "/api/v1/policy/rules/r", object{"tool": "*", "expression": "true", "mode": "deny"}).wants(t, 204)
	f.admin.send("PUT", "/api/v1/reviews", object{"tool": "*", "approvals": 1}).wants(t, 204)
	source := object{"kind": "mcp", "config": object{"transport": "http", "url": "http://127.0.0.1:9/other"}}
	first := func(list string) string {
		t.Helper()
		var page struct {
			Items []struct{ ETag string }
		}
		f.operator.send("GET", list, nil).wants(t, 200).into(t, &page)
		return `"` + page.Items[len(page.Items)-1].ETag + `"`
	}
	header := func(path string) string {
		t.Helper()
		return f.operator.send("GET", path, nil).wants(t, 200).header.Get("ETag")
	}

	for name, tt := range map[string]struct {
		list, path string
		body       object
	}{
		"bucket":   {"", "/api/v1/buckets/b", object{"concurrency": 2}},
		"settings": {"", "/api/v1/settings", object{"timezone": "Europe/Berlin"}},
		"limits":   {"", "/api/v1/limits", object{"employees": []object{{"employee_id": "default", "trust": "low"}}}},
		"policy":   {"", "/api/v1/policy", object{"modes": []object{{"tool": "mail:read", "mode": "deny"}}}},
		"rule":     {"/api/v1/policy/rules", "/api/v1/policy/rules/r", object{"tool": "*", "expression": "false", "mode": "deny"}},
		"review":   {"/api/v1/reviews", "/api/v1/reviews", object{"tool": "*", "approvals": 2}},
		"source":   {"/api/v1/sources", "/api/v1/sources/mail", source},
	} {
		t.Run(name, func(t *testing.T) {
			tag := ""
			if tt.list == "" {
				tag = header(tt.path)
			} else {
				tag = first(tt.list)
			}
			if a := f.admin.send("PUT", tt.path, tt.body, "If-Match", tag); a.status >= 300 {
				t.Fatalf("based on what is there = %d: %s", a.status, a.body)
			}
			f.admin.send("PUT", tt.path, tt.body, "If-Match", tag).wants(t, http.StatusPreconditionFailed)
			f.admin.send("PUT", tt.path, tt.body, "If-Match", "*").wants(t, http.StatusBadRequest)
		})
	}
	f.admin.send("DELETE", "/api/v1/buckets/b", nil, ifMatch("AAAAAAAAAAAAAAAAAAAAAAAA")...).wants(t, http.StatusPreconditionFailed)
	for _, document := range []string{"/api/v1/limits", "/api/v1/policy"} {
		f.admin.send("PUT", document, object{}).wants(t, http.StatusPreconditionRequired)
	}
}

func TestAnActionHasAnETag(t *testing.T) {
	t.Parallel()
	f := newHouse(t).tenant("etag")
	waits, done := f.agent.propose("write"), f.agent.propose("read")

	var judged struct{ Decision struct{ ETag string } }
	a := f.operator.send("GET", path(waits), nil).wants(t, 200)
	a.into(t, &judged)

	if got, want := a.header.Get("ETag"), `"`+judged.Decision.ETag+`"`; got != want || len(want) != 26 {
		t.Errorf("ETag = %s, want %s", got, want)
	}
	if got := f.operator.send("GET", path(done), nil).header.Get("ETag"); len(got) != 26 {
		t.Errorf("ETag of an action that waits for nobody = %s", got)
	}
}
