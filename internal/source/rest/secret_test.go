package rest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/source/rest"
)

func TestSecretIsNotPrinted(t *testing.T) {
	t.Parallel()
	s := rest.NewSecret("hush")
	type hidden struct{ inner rest.Secret }
	for _, value := range []any{s, &s, hidden{s}, &hidden{s}, map[string]rest.Secret{"a": s}, []rest.Secret{s}, rest.NewSecrets(map[string]string{"a": "hush"})} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
			if got := fmt.Sprintf(verb, value); strings.Contains(got, "hush") || strings.Contains(got, "68757368") {
				t.Errorf("Sprintf(%s, %T) = %s, want no secret", verb, value, got)
			}
		}
		if raw, err := json.Marshal(value); err == nil && strings.Contains(string(raw), "hush") {
			t.Errorf("Marshal(%T) = %s, want no secret", value, raw)
		}
	}
	if s.Reveal() != "hush" || s.Empty() || !rest.NewSecret("").Empty() || (rest.Secret{}).Reveal() != "" {
		t.Error("a Secret is not what it was made of")
	}
	if !s.FitsHeader() || rest.NewSecret("hush\nhush").FitsHeader() {
		t.Error("a Secret of two lines fits a header, or one of one line does not")
	}
}
