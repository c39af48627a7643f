package cli

import (
	"context"
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Names of sources' tools reach a shell that inserts them as they are.
func TestCompletionOffersPlainWordsAlone(t *testing.T) {
	t.Parallel()
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	list := func(context.Context, *client.Client) ([]string, error) {
		return []string{"crm:note", "crm:$(reboot)", "crm:a b", "--token", "crm:`x`", "crm:a;b", "crm:a\nb", "", "crm:x\tan evil text", "crm:y\tcrm:y", "mail:note"}, nil
	}

	got, _ := complete(cmd, &command.App{URL: "http://127.0.0.1:1", Token: "x"}, list, []string{"crm:used"}, "crm:")

	if want := []string{"crm:note", "crm:y\tcrm:y"}; !slices.Equal(got, want) {
		t.Errorf("complete() = %q, want %q", got, want)
	}
}
