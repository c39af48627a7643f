package tools

import (
	"encoding/base64"
	"net/http"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// toolDiff is what changed in a tool since it was accepted.
type toolDiff struct {
	Tool        string        `json:"tool"`
	Drift       catalog.Drift `json:"drift"`
	Drifted     bool          `json:"drifted"`
	Quarantined bool          `json:"quarantined"`
	// Digest is what to accept; Interface is the digest without texts.
	Digest    string `json:"digest"`
	Interface string `json:"interface_digest"`
	// Accepted is null if the tool was never accepted.
	Accepted *string `json:"accepted_digest"`
	// Known says whether the accepted definition is stored; if not, every
	// part of the current one is shown as new.
	Known            bool                 `json:"accepted_known"`
	HiddenCharacters bool                 `json:"hidden_characters"`
	Changes          []catalog.Difference `json:"changes"`
}

// GET /api/v1/tools/{tool}/diff shows what changed in a tool's definition since it was
// accepted.
func Diff(c *request.Call, key policy.Key) error {
	l, err := newListing(c)
	if err != nil {
		return err
	}
	t, ok := l.snap.Tool(key)
	if !ok {
		return errNoTool
	}
	diff := toolDiff{
		Tool: key.String(), Drift: t.Drift, Drifted: t.Drifted(), Quarantined: t.Quarantined,
		Known:  t.AcceptedDefinition != nil || t.Drift == catalog.DriftNone,
		Digest: base64.StdEncoding.EncodeToString(t.Digest), HiddenCharacters: t.HidesCharacters(), Changes: []catalog.Difference{},
	}
	if len(t.Accepted) > 0 {
		diff.Accepted = new(base64.StdEncoding.EncodeToString(t.Accepted))
	}
	face, err := catalog.InterfaceDigest(source.Tool{
		Name: key.Action, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Hints: t.Hints,
	})
	if err != nil {
		return fault.Wrap(err, fault.Conflict, "the tool's schemas cannot be read; ask its source to mend them")
	}
	diff.Interface = base64.StdEncoding.EncodeToString(face)
	if t.Drift != catalog.DriftNone {
		if diff.Changes, err = t.Diff(); err != nil {
			return fault.Wrap(err, fault.Conflict, "the tool's schemas cannot be read; ask its source to mend them")
		}
	}
	return c.JSON(http.StatusOK, diff)
}
