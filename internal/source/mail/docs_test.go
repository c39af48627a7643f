package mail_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/reference/mail-tools.md")

// TestToolsAreDocumented compares docs/reference/mail-tools.md with the
// definitions of the tools.
func TestToolsAreDocumented(t *testing.T) {
	t.Parallel()
	const page = "../../../docs/reference/mail-tools.md"
	tools, err := newFixture(t).source.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	want.WriteString("# Tools of mailboxes\n\nGenerated from `internal/source/mail` by `go test ./internal/source/mail -update`. [Mailboxes](../catalog.md#mailboxes)\n" +
		"has the rules of all calls, `countersign tools get mailbox:message.label` the arguments of one.\n\n" +
		"| tool | class | does | reverted by |\n| --- | --- | --- | --- |\n")
	for _, tool := range tools {
		reversal := ""
		if tool.Reversal != nil {
			reversal = "`" + tool.Reversal.Tool + "`"
		}
		fmt.Fprintf(&want, "| `%s` | `%s` | %s | %s |\n", tool.Name, tool.Effect, tool.Description, reversal)
	}

	if *update {
		if err := os.WriteFile(page, []byte(want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("%s differs from the definitions; go test -update rewrites it (-want +got):\n%s", page, diff)
	}
}
