// Package configmaptest has the conformance suite of a server with a ConfigMap: a fake one
// and a real Kubernetes API pass the same.
package configmaptest

import (
	"maps"
	"testing"

	"github.com/countersign-dev/countersign/internal/action/fence/configmap"
)

// Name is that of the ConfigMap, which is empty.
const Name = "countersign-memory"

// Run reads and writes the notes of the ConfigMap Name of a server, with the service
// account of a folder, which may use no other.
func Run(t *testing.T, server, account string) {
	t.Helper()
	s, err := configmap.Open(server, account, Name)
	if err != nil {
		t.Fatal(err)
	}
	want := func(notes map[string]string) {
		t.Helper()
		if got, err := s.Read(t.Context()); err != nil || !maps.Equal(got, notes) {
			t.Errorf("Read = %v, %v, want %v", got, err, notes)
		}
	}
	write := func(name, note string, remove ...string) {
		t.Helper()
		if err := s.Write(t.Context(), name, note, remove); err != nil {
			t.Errorf("Write(%s) = %v", name, err)
		}
	}
	want(nil)
	write("a", `{"n":1}`)
	write("b", "2")
	want(map[string]string{"a": `{"n":1}`, "b": "2"})
	write("b", "3", "a", "not there")
	want(map[string]string{"b": "3"})
	other, err := configmap.Open(server, account, "other")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Read(t.Context()); err == nil {
		t.Error("it reads another ConfigMap")
	}
	if err := other.Write(t.Context(), "a", "1", nil); err == nil {
		t.Error("it writes another ConfigMap")
	}
}
