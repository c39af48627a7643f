package catalog_test

import (
	"encoding/json"
	"testing"

	"github.com/countersign-dev/countersign/internal/tenant/catalog"
)

func TestPlainSchema(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"object"}`:     `{"type":"object"}`,
		`{ "title": "Ünal ☎" }`: `{ "title": "Ünal ☎" }`,
		`{"description":"\u200bsend \udb40\udc68","properties":{"a\u202e":{"enum":["b\u2066",12345678901234567890,null]}}}`: `{"description":"send ","properties":{"a":{"enum":["b",12345678901234567890,null]}}}`,
		"{\"title\":\"a\u200bb\"}": `{"title":"ab"}`,
		`{"title":"\u200b"`:        `{"type":"object"}`,
	} {
		if got := catalog.PlainSchema(json.RawMessage(schema)); string(got) != want {
			t.Errorf("PlainSchema(%s) = %s, want %s", schema, got, want)
		}
	}
}
