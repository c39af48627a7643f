// Package configmap keeps the notes of workers in a ConfigMap of Kubernetes: a memory
// outside the database that workers on several nodes share. It reads and patches one
// object of its pod's namespace, with the token of the pod's service account, and nothing
// else.
package configmap

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/safehttp"
)

const (
	// account is where Kubernetes mounts the service account of a pod, and server its own
	// address in every cluster.
	account = "/var/run/secrets/kubernetes.io/serviceaccount"
	server  = "https://kubernetes.default.svc"
	// timeout bounds a request, and mostBytes an answer: a ConfigMap has at most 1 MiB.
	timeout   = 5 * time.Second
	mostBytes = 4 << 20
)

// Store is a ConfigMap.
type Store struct {
	url    string
	token  string // the file of the token, which is renewed
	client *http.Client
}

// InCluster returns the ConfigMap with a name in the namespace of this pod.
func InCluster(name string) (*Store, error) { return Open(server, account, name) }

// Open returns a ConfigMap of another server, with the service account of a folder.
func Open(server, account, name string) (*Store, error) {
	namespace, err := os.ReadFile(filepath.Join(account, "namespace"))
	if err != nil {
		return nil, fmt.Errorf("the pod has no service account: %w", err)
	}
	authority, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("the pod has no service account: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("invalid certificate of the Kubernetes API in %s", account)
	}
	// The cluster's certificate names the server, wherever its network is.
	everywhere := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	transport := safehttp.Guard{Networks: everywhere}.Transport()
	transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	return &Store{
		url:    server + "/api/v1/namespaces/" + url.PathEscape(strings.TrimSpace(string(namespace))) + "/configmaps/" + url.PathEscape(name),
		token:  filepath.Join(account, "token"),
		client: safehttp.NewClient(safehttp.LimitBodies(transport, mostBytes), timeout),
	}, nil
}

// Read returns all notes by their names.
func (s *Store) Read(ctx context.Context) (map[string]string, error) {
	var object struct {
		Data map[string]string `json:"data"`
	}
	err := s.do(ctx, http.MethodGet, nil, &object)
	return object.Data, err
}

// Write sets a note, and removes others.
func (s *Store) Write(ctx context.Context, name, note string, remove []string) error {
	data := map[string]any{name: note}
	for _, other := range remove {
		data[other] = nil
	}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return fmt.Errorf("encode the ConfigMap's patch: %w", err)
	}
	return s.do(ctx, http.MethodPatch, patch, nil)
}

func (s *Store) do(ctx context.Context, method string, body []byte, into any) error {
	token, err := os.ReadFile(s.token)
	if err != nil {
		return fmt.Errorf("the pod has no service account: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, method, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	r.Header.Set("Accept", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := s.client.Do(r)
	if err != nil {
		return fmt.Errorf("the Kubernetes API does not answer: %w", err)
	}
	defer func() { _ = answer.Body.Close() }() // it was read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("the Kubernetes API does not answer: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the Kubernetes API answered %s to %s of the ConfigMap %s", answer.Status, method, s.url[strings.LastIndex(s.url, "/")+1:])
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("invalid ConfigMap from the Kubernetes API: %w", err)
	}
	return nil
}
