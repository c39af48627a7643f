package command

import (
	"encoding/json"
	"strings"
	"testing"

	restlimits "github.com/countersign-dev/countersign/internal/server/rest/limits"
)

func TestLimitsFileSaysWhere(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct{ text, want string }{
		"in order":          {"buckets:\n- name: a\n", ""},
		"an anchor":         {"buckets:\n- &b {name: a, rate: {limit: 1, per: 1s}}\n", ""},
		"JSON":              {`{"buckets": [{"name": "a", "rate": {"limit": 1}}]}`, "f:1:28: /buckets/0/rate/per is required; add it"},
		"an unknown field":  {"bucket: []\n", "f:1:1: /bucket is not a field of this object"},
		"another type":      {"buckets:\n- name: a\n  concurrency: many\n", "f:3:3: /buckets/0/concurrency must be integer"},
		"a number as name":  {"buckets:\n- name: 7\n", "f:2:3: /buckets/0/name must be string"},
		"not there":         {"quiet_hours:\n- scope: tenant\n  timezone: UTC\n", "f:2:3: /quiet_hours/0/windows is required; add it"},
		"twice":             {"buckets:\n- name: a\n  name: b\n", "f:3:3: /buckets/0/name is repeated; keep one"},
		"the same bucket":   {"buckets:\n- name: a\n- name: a\n", "f:3:3: /buckets/1 must not be of the same bucket as item 0"},
		"two documents":     {"buckets: []\n---\nbuckets: []\n", "f:2:1: the document has more than one document; keep one"},
		"nothing":           {"", "f:1:1: the document is empty"},
		"a list":            {"- a\n", "f:1:1: the document must be object"},
		"a merge":           {"buckets:\n- &a {name: a}\n- {<<: *a, name: b}\n", "f:3:4: /buckets/1 must have plain strings as field names"},
		"a window backward": {"quiet_hours:\n- scope: tenant\n  timezone: UTC\n  windows: [{from: '8:00', until: '07:00'}]\n", "f:4:14: /quiet_hours/0/windows/0/from must be a time from 00:00 to 23:59, written HH:MM"},
		"a circle":          {"buckets: &a\n- *a\n", "f:"},
	} {
		_, err := parseFile("f", []byte(tt.text), restlimits.CheckDocument)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != tt.want && (name != "a circle" || !strings.HasPrefix(got, tt.want)) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if _, err := parseFile("f", []byte("buckets: ["), restlimits.CheckDocument); err == nil || !strings.HasPrefix(err.Error(), "f: ") {
		t.Errorf("no YAML: %v", err)
	}
}

func FuzzLimitsFile(f *testing.F) {
	for _, seed := range []string{"buckets:\n- name: a\n", `{"employees":[{"employee_id":"default","trust":"low"}]}`, "a: &a [*a]\n", "? {a: b}\n: c\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, err := parseFile("f", []byte(text), restlimits.CheckDocument)
		if err == nil && !json.Valid(file.JSON) {
			t.Errorf("a file without an error is %q in JSON", file.JSON)
		}
	})
}
