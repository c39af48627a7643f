package tools

import (
	"encoding/base64"
	"net/http"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// Diff handles GET /api/v1/tools/{tool}/diff. It shows the changes of a tool's
// definition since it was accepted.
func Diff(c *request.Call, key policy.Key) error {
	l, err := newListing(c)
	if err != nil {
		return err
	}
	t, ok := l.snap.Tool(key)
	if !ok {
		return catalog.ErrNoTool
	}
	diff := wire.ToolDiff{
		Tool: key.String(), Drift: string(t.Drift), Drifted: t.Drifted(), Quarantined: t.Quarantined,
		// An accepted definition that is not stored has every part of the current
		// one shown as new.
		AcceptedKnown: t.AcceptedDefinition != nil || t.Drift == catalog.DriftNone,
		Digest:        base64.StdEncoding.EncodeToString(t.Digest), HiddenCharacters: t.HidesCharacters(), Changes: []wire.ToolDifference{},
	}
	if len(t.Accepted) > 0 {
		diff.AcceptedDigest = new(base64.StdEncoding.EncodeToString(t.Accepted))
	}
	face, err := catalog.InterfaceDigest(source.Tool{
		Name: key.Action, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Hints: t.Hints,
	})
	if err != nil {
		return fault.Wrap(err, fault.Conflict, "the tool's schemas cannot be read; correct them at its source")
	}
	diff.InterfaceDigest = base64.StdEncoding.EncodeToString(face)
	if t.Drift != catalog.DriftNone {
		if diff.Changes, err = t.Diff(); err != nil {
			return fault.Wrap(err, fault.Conflict, "the tool's schemas cannot be read; correct them at its source")
		}
	}
	return c.JSON(http.StatusOK, diff)
}
