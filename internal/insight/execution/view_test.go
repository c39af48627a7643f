package execution_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/insight/execution"
)

// TestInputsOfTagsAreRedacted checks that the log shows text of a tagged mail to
// nobody.
func TestInputsOfTagsAreRedacted(t *testing.T) {
	t.Parallel()
	token := uuid.New()
	e := wire.Execution{ExternalID: "triage:tag:0", User: &wire.TokenName{ID: token}, Inputs: json.RawMessage(`{"phones":["+49 30 1234567"]}`), Proposed: json.RawMessage(`{"phones":["+49 30 7654321"]}`)}

	for _, by := range []uuid.UUID{token, uuid.New()} {
		got := execution.ViewFor(by, e)

		if shown := string(got.Inputs) + string(got.Proposed); strings.Contains(shown, "+49") || !got.Redacted {
			t.Errorf("ViewFor() shows %s, redacted: %t", shown, got.Redacted)
		}
	}
}
