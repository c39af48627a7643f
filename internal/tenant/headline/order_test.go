package headline_test

import (
	"encoding/json"
	"testing"

	"github.com/countersign-dev/countersign/internal/tenant/headline"
)

func TestOrdered(t *testing.T) {
	t.Parallel()
	schema := `{"properties":{"to":{},"items":{"items":{"properties":{"sku":{},"n":{}}}},"who":{"properties":{"name":{},"id":{}}}}}`
	for args, want := range map[string]string{
		`{"a":1,"items":[{"n":9007199254740993,"sku":"x"}],"to":"b","who":{"id":1,"name":"c"}}`: `{"to":"b","items":[{"sku":"x","n":9007199254740993}],"who":{"name":"c","id":1},"a":1}`,
		`{}`:       `{}`,
		`[2,1]`:    `[2,1]`,
		`{"to":`:   `{"to":`,
		`{"to":1}`: `{"to":1}`,
	} {
		if got := headline.Ordered(json.RawMessage(args), json.RawMessage(schema)); string(got) != want {
			t.Errorf("%s:\n got %s\nwant %s", args, got, want)
		}
	}
}
