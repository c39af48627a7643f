package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
)

// letterFilter is the flags that narrow a choice of dead letters.
type letterFilter struct {
	reason, source, tool, code string
	since, until               string
}

func (f *letterFilter) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.reason, "reason", "", "only those of this `reason`: refused, exhausted or unknown")
	flags.StringVar(&f.source, "source", "", "only those of the source of this `id`")
	flags.StringVar(&f.tool, "tool", "", "only those of the tool of this `name`")
	flags.StringVar(&f.code, "code", "", "only those whose last attempt came to this `word`, such as timeout")
	flags.StringVar(&f.since, "since", "", "only those made since this `time`: 24h ago, 2026-01-02 or 2026-01-02T03:04:05Z")
	flags.StringVar(&f.until, "until", "", "only those made before this `time`")
	fixed(cmd, "reason", reasonRefused, reasonExhausted, reasonUnknown)
}

// given says whether any flag narrows the choice.
func (f *letterFilter) given() bool { return *f != letterFilter{} }

// read checks the flags.
func (f *letterFilter) read() (client.LetterFilter, error) {
	out := client.LetterFilter{Reason: f.reason, Source: f.source, Tool: f.tool, Code: f.code}
	if err := oneOf("reason", f.reason, reasonRefused, reasonExhausted, reasonUnknown); err != nil {
		return out, err
	}
	now := time.Now()
	var err error
	if out.Since, err = timeFlag("since", f.since, now); err != nil {
		return out, err
	}
	if out.Until, err = timeFlag("until", f.until, now); err != nil {
		return out, err
	}
	if !out.Until.IsZero() && !out.Since.Before(out.Until) {
		return out, misuse("--until must be later than --since")
	}
	return out, nil
}

// timeFlag reads a time, a day that begins where the user is, or how long ago
// it was. Nothing is the zero time.
func timeFlag(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if at, err := time.ParseInLocation(time.DateOnly, text, now.Location()); err == nil {
		return at, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	return time.Time{}, misuse("--%s must be a time such as 2026-01-02T03:04:05Z, a day such as 2026-01-02, or how long ago it was, such as 24h", flag)
}
