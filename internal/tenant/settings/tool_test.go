package settings_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/countersign-dev/countersign/internal/fault"
)

func TestAToolWhoseSchemaIsNoneIsListedAndRefused(t *testing.T) {
	t.Parallel()
	s := newFixture(t)
	s.List("src", as(`{"type":"nonsense"}`))

	src, _ := s.fresh("src")
	err := s.act().Check(json.RawMessage(`{}`))

	if src.LeftOut != 0 || !errors.Is(err, fault.Conflict) {
		t.Errorf("left out %d, Check() = %v, want none and fault.Conflict", src.LeftOut, err)
	}
}
