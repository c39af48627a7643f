package mail

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/source"
)

// briefArgs are the arguments of ToolBrief. A grant fixes Account and To.
type briefArgs struct{ Account, To, Subject, Text string }

// brief sends a mail to one of the owner's own addresses.
func (s *Source) brief(ctx context.Context, call source.Call, in briefArgs) source.Observation {
	return s.with(ctx, in.Account, func(on *session) source.Observation {
		own := slices.IndexFunc(on.own(), func(a string) bool { return a != "" && strings.EqualFold(a, in.To) })
		if own < 0 {
			return s.refuse(source.CodeRejected, "the recipient is not one of the owner's addresses in the source's configuration")
		}
		to := []string{on.own()[own]}
		return on.deliver(ctx, draftID(call.Key, in.Account, on.From), to, func(id string) ([]byte, error) {
			return compose(on.From, id, draftArgs{To: to, Subject: in.Subject, Text: in.Text, automatic: "auto-generated"}, time.Now())
		})
	})
}
