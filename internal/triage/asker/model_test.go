package asker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/asker"
	llm "github.com/countersign-dev/countersign/internal/triage/model"
)

// TestOpenModelsReadsTheCalibrations checks that a process does not start with
// invalid calibrations.
func TestOpenModelsReadsTheCalibrations(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "calibrations.json")
	for text, want := range map[string]string{
		`{"t1.v1":{"m":{"show":{"temperature":2,"weight":0.5,"examples":200}}}}`: "",
		`{"t1.v1":{"m":{"show":{"temperature":0,"weight":0.5,"examples":200}}}}`: path,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		models, err := asker.OpenModels(llm.Config{Calibrations: path}, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("OpenModels() with %s = %v", text, err)
		}
		if err := models.Close(); err != nil {
			t.Error(err)
		}
	}
}
