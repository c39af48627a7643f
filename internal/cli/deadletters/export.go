package deadletters

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

const exportHelp = `Write dead letters as JSON, one a line, the newest actions first: what was
proposed, and how it ended. What looks like a credential is taken out of the
arguments. "countersign dlq replay --from" reads such a file, whole or in part.`

// exportPage is the largest page of an export.
const exportPage = 100

func letterExport(a *command.App) *cobra.Command {
	var filter letterFilter
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write dead letters as JSON, one a line",
		Long:  exportHelp,
		Example: `  countersign dlq export --tool send_email > dead.jsonl
  countersign dlq export --since 24h | jq -c 'select(.args.to == "a@example.org")' > some.jsonl
  countersign dlq replay --from some.jsonl`,
		Args: command.Arguments(0, 0, ""),
		RunE: a.WithClient(func(ctx context.Context, c *client.Client, _ []string) error {
			f, err := filter.read()
			if err != nil {
				return err
			}
			return runLetterExport(ctx, a, c, f)
		}),
	}
	filter.flags(cmd)
	return cmd
}

func runLetterExport(ctx context.Context, a *command.App, c *client.Client, f client.LetterFilter) error {
	f.Limit = exportPage
	written := 0
	for {
		page, err := c.ExportLetters(ctx, f)
		if err != nil {
			return err
		}
		for _, letter := range page.Items {
			if _, err := fmt.Fprintf(a.Out, "%s\n", letter); err != nil {
				return fmt.Errorf("write the output: %w", err)
			}
		}
		written += len(page.Items)
		if page.NextCursor == nil {
			a.Note("%d exported", written)
			return nil
		}
		f.Cursor = *page.NextCursor
	}
}
