package intake

import (
	"context"

	"github.com/countersign-dev/countersign/envelope"
)

// AcceptTogether accepts a proposal of each submitter in one transaction, like
// concurrent proposals with spans of their own, and returns their answers.
func (in *Intake) AcceptTogether(spans []context.Context, tenant envelope.TenantID, by []Submitter, proposals []*envelope.Proposal) (answers []Answer, undone bool, err error) {
	all := make([]*submission, len(by))
	for i := range by {
		all[i] = newSubmission(spans[i], by[i], proposals[i:i+1])
	}
	undone, err = in.acceptAll(spans[0], tenant, all)
	answers = make([]Answer, len(by))
	for i, s := range all {
		if err == nil {
			answers[i] = s.answers[0]
		}
	}
	return answers, undone, err
}
