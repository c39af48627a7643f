package overview_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/triage/measure"
)

const (
	alertsFile    = "../../../deploy/prometheus/alerts.yaml"
	dashboardFile = "../../../deploy/grafana/countersign.json"
	operations    = "../../../docs/operations.md"
)

// exported returns the names of all metrics with their labels.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	_, names := scrapeAll(t)
	return names
}

// scrapeAll returns all metrics in the format of Prometheus, and their names
// with their labels.
func scrapeAll(t *testing.T) (text string, names map[string][]string) {
	t.Helper()
	ctx, tel := t.Context(), setup(t)
	m := tel.Metrics
	if _, err := overview.Observe(tel.Meter(), func(context.Context) (overview.Fleet, error) { return fleet(), nil }); err != nil {
		t.Fatal(err)
	}
	mail, err := measure.NewMetrics(tel.Meter())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := measure.Observe(tel.Meter(), func(context.Context) (measure.States, error) { return measure.States{}, nil }); err != nil {
		t.Fatal(err)
	}
	mail.Chunk(ctx, measure.Counts{Decided: 1, Proposed: 1}, time.Second)
	mail.Cycle(ctx, nil)
	mail.Text(ctx, "draft", "written")
	models, err := measure.NewModels(tel.Meter())
	if err != nil {
		t.Fatal(err)
	}
	if err := models.Observe(tel.Meter(), func() map[string]bool { return map[string]bool{"local": true} }); err != nil {
		t.Fatal(err)
	}
	models.Asked("local", "answered", time.Second)
	models.Refused("local", 1)
	m.ClaimBatch.Record(ctx, 1)
	m.SettleBatch.Record(ctx, 1)
	m.EndToEnd.Took(ctx, time.Second)
	m.FenceLost.Add(ctx, 1)
	m.Outcome("send", "mail", "sent").Add(ctx, 1)
	m.Call("mail").Took(ctx, time.Second)
	m.Breaker("mail", "open").Add(ctx, 1)
	m.SkippedLine("mail")
	m.Request("GET", "/api/v1/actions", 200).Took(ctx, time.Second)
	text, names = scrape(t, tel), make(map[string][]string)
	series := regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? `)
	label := regexp.MustCompile(`([a-z_]+)="`)
	for _, s := range series.FindAllStringSubmatch(text, -1) {
		names[s[1]] = slices.Concat(names[s[1]], []string{"job", "instance"})
		for _, l := range label.FindAllStringSubmatch(s[2], -1) {
			names[s[1]] = append(names[s[1]], l[1])
		}
	}
	return text, names
}

// wrongIn returns the names in an expression that are not exported.
func wrongIn(expr string, names map[string][]string) (wrong []string) {
	selector := regexp.MustCompile(`\b(countersign_[a-z0-9_]+|target_info)(?:\{([^}]*)\})?`)
	matcher := regexp.MustCompile(`([a-z_]+)\s*(?:=~|!=|!~|=)\s*"`)
	grouping := regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
	found := selector.FindAllStringSubmatch(expr, -1)
	if len(found) == 0 {
		return []string{"it names no metric"}
	}
	var labels []string
	for _, s := range found {
		known, ok := names[s[1]]
		if !ok {
			wrong = append(wrong, "no metric "+s[1])
		}
		labels = append(labels, known...)
		for _, l := range matcher.FindAllStringSubmatch(s[2], -1) {
			if !slices.Contains(known, l[1]) {
				wrong = append(wrong, fmt.Sprintf("%s has no label %s", s[1], l[1]))
			}
		}
	}
	for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(g[1], ",") {
			if !slices.Contains(labels, strings.TrimSpace(l)) {
				wrong = append(wrong, "no label "+strings.TrimSpace(l))
			}
		}
	}
	return wrong
}

func TestWrongExpressionsAreFound(t *testing.T) {
	t.Parallel()
	names := exported(t)

	for expr, want := range map[string]string{
		`max(countersign_backlog{state="due"})`: "", `sum by (tool, le) (rate(countersign_call_duration_seconds_bucket[5m]))`: "no label tool",
		`countersign_backlogs > 1`: "no metric countersign_backlogs", `countersign_backlog{reason="due"}`: "countersign_backlog has no label reason",
		`vector(1)`: "it names no metric",
	} {
		if got := strings.Join(wrongIn(expr, names), "; "); got != want {
			t.Errorf("wrongIn(%s) = %q, want %q", expr, got, want)
		}
	}
}

// anchors returns the anchors of a document's headings as GitHub generates them.
func anchors(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	odd := regexp.MustCompile(`[^a-z0-9 -]`)
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(string(text), -1) {
		all = append(all, strings.ReplaceAll(odd.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return all
}

func TestAlertsUseExportedMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For string
				Labels           struct{ Severity string }
				Annotations      struct{ Summary, Description, Runbook string }
			}
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	names, headings := exported(t), anchors(t, operations)
	var alerts []string
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			alerts = append(alerts, r.Alert)
			for _, wrong := range wrongIn(r.Expr, names) {
				t.Errorf("%s: %s", r.Alert, wrong)
			}
			if _, err := time.ParseDuration(r.For); err != nil {
				t.Errorf("%s: for: %v", r.Alert, err)
			}
			if r.Annotations.Summary == "" || r.Annotations.Description == "" || !slices.Contains([]string{"page", "ticket"}, r.Labels.Severity) {
				t.Errorf("%s lacks a summary, a description or a severity", r.Alert)
			}
			document, anchor, _ := strings.Cut(r.Annotations.Runbook, "#")
			if document != "docs/operations.md" || !slices.Contains(headings, anchor) {
				t.Errorf("%s: there is no runbook %q among %q", r.Alert, r.Annotations.Runbook, headings)
			}
		}
	}
	if len(alerts) < 8 || len(slices.Compact(slices.Sorted(slices.Values(alerts)))) != len(alerts) {
		t.Errorf("alerts are %q", alerts)
	}
}

func TestDashboardUsesExportedMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(dashboardFile)
	if err != nil {
		t.Fatal(err)
	}
	type place struct{ X, Y, W, H int }
	var dashboard struct {
		Templating struct {
			List []struct {
				Name, Type, Definition string
			}
		}
		Panels []struct {
			ID          int
			Type, Title string
			Datasource  struct{ UID string }
			GridPos     place
			Targets     []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	names := exported(t)
	used := make(map[string]bool)

	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] {
			t.Errorf("%s: its id is another's", p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Errorf("%s overlaps %q, or exceeds the grid", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("%s does not ask the chosen data source", p.Title)
		}
		for _, target := range p.Targets {
			for _, wrong := range wrongIn(target.Expr, names) {
				t.Errorf("%s: %s", p.Title, wrong)
			}
			for _, m := range regexp.MustCompile(`countersign_[a-z0-9_]+`).FindAllString(target.Expr, -1) {
				used[m] = true
			}
			for _, l := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if !strings.Contains(target.Expr, l[1]) {
					t.Errorf("%s: its legend names %s, which it does not group by", p.Title, l[1])
				}
			}
		}
	}
	var variables []string
	for _, v := range dashboard.Templating.List {
		variables = append(variables, v.Name)
		if v.Type == "query" {
			metric, label, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")"), ", ")
			if !slices.Contains(names[metric], label) {
				t.Errorf("variable %s: %s has no label %s", v.Name, metric, label)
			}
		}
	}
	if !slices.Equal(variables, []string{"datasource", "source"}) {
		t.Errorf("variables are %q", variables)
	}
	for name := range maps.Keys(names) {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if strings.HasPrefix(name, "countersign_") && !used[base] && !used[base+"_bucket"] && !used[base+"_sum"] && name != "countersign_bucket_oldest_due_age_seconds" {
			t.Errorf("no panel shows %s", name)
		}
	}
}

// TestOperationsNamesExportedMetrics searches the document for metrics that no
// process exports.
func TestOperationsNamesExportedMetrics(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(operations)
	if err != nil {
		t.Fatal(err)
	}
	names := exported(t)

	for _, m := range regexp.MustCompile("countersign_[a-z0-9_]+").FindAllString(string(text), -1) {
		_, plain := names[m]
		_, histogram := names[m+"_bucket"]
		// Roles and jobs have names like metrics.
		if !plain && !histogram && !slices.Contains([]string{"countersign_worker", "countersign_api", "countersign_owner", "countersign_triage", "countersign_data", "countersign_sweep", "countersign_seal", "countersign_retain"}, m) {
			t.Errorf("docs/operations.md names %s, which is not exported", m)
		}
	}
}

// TestMetricsAreDocumented compares docs/reference/metrics.md with the metrics
// and their descriptions.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	const path = "../../../docs/reference/metrics.md"
	text, names := scrapeAll(t)
	about := make(map[string]string)
	for _, m := range regexp.MustCompile(`(?m)^# HELP (\S+) (.*)$`).FindAllStringSubmatch(text, -1) {
		about[m[1]] = strings.TrimSuffix(m[2], ".")
	}
	var page strings.Builder
	page.WriteString("# Metrics\n\nGenerated from the instruments by `go test ./internal/insight/overview -update`. [Operations](../operations.md#metrics) has\n" +
		"how to read them.\n\n| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (countersign_\S+) (.*)$`).FindAllStringSubmatch(text, -1) {
		series := m[1]
		if m[2] == "histogram" {
			series += "_count"
		}
		var labels []string
		for _, label := range names[series] {
			if !slices.Contains([]string{"job", "instance", "le"}, label) && !strings.HasPrefix(label, "otel_") {
				labels = append(labels, "`"+label+"`")
			}
		}
		slices.Sort(labels)
		fmt.Fprintf(&page, "| `%s` | %s | %s | %s |\n", m[1], m[2], strings.Join(slices.Compact(labels), ", "), about[m[1]])
	}

	if *update {
		if err := os.WriteFile(path, []byte(page.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(page.String(), string(got)); diff != "" {
		t.Errorf("%s differs from the metrics; go test -update rewrites it (-want +got):\n%s", path, diff)
	}
}
