package model_test

import (
	"path/filepath"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/model"
)

// TestDeployedFiles reads the configurations of models in the manifests.
func TestDeployedFiles(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../../deploy/k8s/components/*/models.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("Glob = %q, %v, want files", files, err)
	}
	for _, file := range files {
		c, err := model.ReadConfig(file)
		if err != nil {
			t.Error(err)
			continue
		}
		set, err := model.Open(c, model.Observer{})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		set.Close()
	}
}
