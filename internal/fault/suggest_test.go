package fault_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/fault"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"mail", "mailing", "notes:notes.create", "notes:notes.read", "slack", "Überweisung"}
	for name, want := range map[string][]string{
		"mal":                         {"mail"},
		"mali":                        {"mail"},
		"MAIL":                        {"mail"},
		"sla":                         {"slack"},
		"notes:notes.craete":          {"notes:notes.create"},
		"notes:":                      {"notes:notes.create", "notes:notes.read"},
		"uberweisung":                 {"Überweisung"},
		"":                            nil,
		"x":                           nil,
		"payroll":                     nil,
		strings.Repeat("mail", 1_000): nil,
	} {
		if got := fault.Nearest(name, known); !slices.Equal(got, want) {
			t.Errorf("Nearest(%.20q) = %q, want %q", name, got, want)
		}
	}
	if got := fault.Nearest("mai", []string{"main", "mair", "mail", "maid"}); !slices.Equal(got, []string{"maid", "mail", "main"}) {
		t.Errorf("Nearest() = %q, want three names", got)
	}
	if got, want := fault.Unknown("bucket", "mal", known).Error(), `no such bucket "mal"; did you mean "mail"?`; got != want {
		t.Errorf("Unknown() = %s, want %s", got, want)
	}
	if got, want := fault.Unknown("bucket", "xyz", known).Error(), `no such bucket "xyz"`; got != want {
		t.Errorf("Unknown() = %s, want %s", got, want)
	}
}
