package mailsetup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Brief is the first brief about an account: messages by bucket, and those that need
// its owner now.
type Brief struct {
	Since   time.Time      `json:"since"`
	Buckets map[string]int `json:"buckets"`
	// Attention are at most ten messages: urgent and actionable ones first, then those
	// with a question to their owner.
	Attention []wire.TriageMessage `json:"attention"`
}

// maxAttention bounds the messages of a brief.
const maxAttention = 10

// buckets are the buckets in their order.
func buckets() []string { return []string{"urgent", "actionable", "informational", "archived"} }

// brief returns the brief about what triage stored since a time.
func brief(ctx context.Context, c *client.Client, name string, since time.Time) (Brief, error) {
	b := Brief{Since: since.UTC(), Buckets: map[string]int{}, Attention: []wire.TriageMessage{}}
	filter := client.TriageMessageFilter{Account: name, Since: since, Limit: 100}
	for {
		page, err := c.TriageMessages(ctx, filter)
		if err != nil {
			return b, err
		}
		for _, m := range page.Items {
			b.Buckets[m.Bucket]++
			if m.Bucket == "urgent" || m.Bucket == "actionable" || m.Question {
				b.Attention = append(b.Attention, m)
			}
		}
		if page.NextCursor == nil {
			break
		}
		filter.Cursor = *page.NextCursor
	}
	slices.SortStableFunc(b.Attention, func(x, y wire.TriageMessage) int {
		return slices.Index(buckets(), x.Bucket) - slices.Index(buckets(), y.Bucket)
	})
	b.Attention = b.Attention[:min(len(b.Attention), maxAttention)]
	return b, nil
}

// text returns the brief for people.
func (b Brief) text() string {
	var out strings.Builder
	total := 0
	for _, n := range b.Buckets {
		total += n
	}
	fmt.Fprintf(&out, "Your mail since %s: %d messages\n", b.Since.Local().Format(time.DateOnly), total)
	for _, name := range buckets() {
		fmt.Fprintf(&out, "  %-14s %d\n", name, b.Buckets[name])
	}
	if len(b.Attention) == 0 {
		out.WriteString("\nNothing needs you now.\n")
		return out.String()
	}
	out.WriteString("\nNeeds you now:\n")
	for _, m := range b.Attention {
		what := m.Bucket
		if m.Question {
			what += " ?"
		}
		fmt.Fprintf(&out, "  %-16s  %-28s  %s\n", what, command.Line(m.Sender), command.Line(m.Subject))
	}
	return out.String()
}
