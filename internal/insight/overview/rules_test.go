package overview_test

import (
	"flag"
	"os"
	"strings"
	"testing"
)

const (
	rulesFile = "../../../deploy/k8s/components/monitors/rules.yaml"
	rulesHead = `# Code generated from deploy/prometheus/alerts.yaml by
# go test ./internal/insight/overview -run PrometheusRule -update; DO NOT EDIT.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: countersign
  labels:
    app.kubernetes.io/name: countersign
spec:
`
)

var update = flag.Bool("update", false, "write the generated files anew")

// TestPrometheusRule compares the rules for the Prometheus operator with those
// of the file that Prometheus loads itself.
func TestPrometheusRule(t *testing.T) {
	t.Parallel()
	alerts, err := os.ReadFile(alertsFile)
	if err != nil {
		t.Fatal(err)
	}
	_, groups, found := strings.Cut(string(alerts), "\ngroups:\n")
	if !found {
		t.Fatalf("%s has no groups", alertsFile)
	}
	var want strings.Builder
	want.WriteString(rulesHead + "  groups:\n")
	for line := range strings.Lines(groups) {
		if strings.TrimSpace(line) != "" {
			want.WriteString("  ")
		}
		want.WriteString(line)
	}
	if *update {
		if err := os.WriteFile(rulesFile, []byte(want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	got, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want.String() {
		t.Errorf("%s is not made from %s; run the test with -update", rulesFile, alertsFile)
	}
}
