package configmap_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-dev/countersign/internal/action/fence/configmap"
	"github.com/countersign-dev/countersign/internal/action/fence/configmap/configmaptest"
)

// cluster answers as the Kubernetes API does for one ConfigMap.
type cluster struct {
	mu   sync.Mutex
	data map[string]string
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case token != "t-1":
		w.WriteHeader(http.StatusUnauthorized)
		return
	case r.URL.Path != "/api/v1/namespaces/ns/configmaps/"+configmaptest.Name:
		w.WriteHeader(http.StatusForbidden) // the Role names one object
		return
	case r.Method == http.MethodPatch && r.Header.Get("Content-Type") != "application/merge-patch+json":
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	case r.Method == http.MethodPatch:
		var patch struct {
			Data map[string]*string `json:"data"`
		}
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for name, value := range patch.Data {
			if delete(c.data, name); value != nil {
				c.data[name] = *value
			}
		}
	case r.Method != http.MethodGet:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	answer := map[string]any{"kind": "ConfigMap", "apiVersion": "v1", "metadata": map[string]any{"name": configmaptest.Name}}
	if len(c.data) > 0 {
		answer["data"] = c.data
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// newAccount returns a folder as Kubernetes mounts it, and the server's address.
func newAccount(t *testing.T) (folder, url string) {
	t.Helper()
	s := httptest.NewTLSServer(&cluster{data: map[string]string{}})
	t.Cleanup(s.Close)
	folder = t.TempDir()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, text := range map[string]string{"namespace": "ns", "token": "t-1\n", "ca.crt": string(authority)} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder, s.URL
}

func TestStore(t *testing.T) {
	t.Parallel()
	folder, url := newAccount(t)

	configmaptest.Run(t, url, folder)
}

// TestTheTokenIsReadForEachRequest has Kubernetes renew it.
func TestTheTokenIsReadForEachRequest(t *testing.T) {
	t.Parallel()
	folder, url := newAccount(t)
	s, err := configmap.Open(url, folder, configmaptest.Name)
	if err != nil {
		t.Fatal(err)
	}
	for token, works := range map[string]bool{"t-0": false, "t-1": true} {
		if err := os.WriteFile(filepath.Join(folder, "token"), []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(t.Context()); (err == nil) != works || err != nil && strings.Contains(err.Error(), token) {
			t.Errorf("with the token %s: %v", token, err)
		}
	}
}

func TestOpenNeedsAServiceAccount(t *testing.T) {
	t.Parallel()

	_, err := configmap.Open("https://localhost", t.TempDir(), configmaptest.Name)

	if err == nil || !strings.Contains(err.Error(), "service account") {
		t.Errorf("Open = %v", err)
	}
}
