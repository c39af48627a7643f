package cascade

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// maxPacked is the size of a body in bytes from which it is asked about alone,
// since its excerpt would displace several others.
const maxPacked = 4800

// kind is the common property of the messages of a pack.
type kind struct {
	account uuid.UUID
	cohort  decide.Cohort
}

func kindOf(m Mail) kind { return kind{m.Account, m.Decision.Cohort} }

// alone reports whether a message is never asked about with others: text that
// tries to change answers could change those about others.
func alone(m Mail) bool {
	return !m.Signals.Restriction().Allows(signal.Pack) || m.Decision.Cohort == decide.FirstContact || len(m.Body) > maxPacked
}

// packs splits messages into packs of at most the given size, each of one kind.
// The packs do not depend on the order of the messages.
func packs(all []*turn, most int) [][]*turn {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b *turn) int {
		x, y := kindOf(a.mail), kindOf(b.mail)
		return cmp.Or(bytes.Compare(x.account[:], y.account[:]), cmp.Compare(x.cohort, y.cohort), bytes.Compare(a.mail.ID[:], b.mail.ID[:]))
	})
	var out [][]*turn
	// open is the pack to which the next message of its kind is added.
	open := -1
	for _, t := range sorted {
		switch {
		case alone(t.mail):
			out = append(out, []*turn{t})
		case open >= 0 && len(out[open]) < most && kindOf(out[open][0].mail) == kindOf(t.mail):
			out[open] = append(out[open], t)
		default:
			out = append(out, []*turn{t})
			open = len(out) - 1
		}
	}
	return out
}
