package intake

import (
	"context"

	"github.com/countersign-dev/countersign/envelope"
)

// AcceptTogether accepts a proposal of each submitter in one transaction, as those
// that arrive at the same time, and returns the answers to them.
func (in *Intake) AcceptTogether(ctx context.Context, tenant envelope.TenantID, by []Submitter, proposals []*envelope.Proposal) ([]Answer, error) {
	all := make([]*submission, len(by))
	for i := range by {
		all[i] = &submission{by: by[i], proposals: proposals[i : i+1]}
	}
	err := in.acceptAll(ctx, tenant, all)
	answers := make([]Answer, len(by))
	for i, s := range all {
		if err == nil {
			answers[i] = s.answers[0]
		}
	}
	return answers, err
}
