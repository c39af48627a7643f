package reader

import (
	"maps"
	"slices"

	"github.com/google/uuid"
)

// recentBytes limits the mail that a run keeps, by the sizes of the messages.
const recentBytes = 4 << 20

// recent keeps recently read mail with open questions, so that it need not be
// read again for the decision with the answers.
type recent struct {
	mails map[uuid.UUID]mail
	bytes int64
}

// keep keeps the messages of a chunk with open questions. It evicts those that
// are asked last.
func (r *recent) keep(c *chunk) {
	wanted := map[uuid.UUID]bool{}
	for _, d := range c.decisions {
		wanted[d.Message] = len(d.Wanted) > 0
	}
	for _, m := range c.mails {
		if _, kept := r.mails[m.id]; kept || !wanted[m.id] {
			continue
		}
		if r.mails == nil {
			r.mails = map[uuid.UUID]mail{}
		}
		r.mails[m.id] = m
		r.bytes += weight(m)
	}
	if r.bytes <= recentBytes {
		return
	}
	oldest := slices.SortedFunc(maps.Values(r.mails), func(a, b mail) int { return a.item.Received.Compare(b.item.Received) })
	for _, m := range oldest {
		if r.bytes <= recentBytes {
			return
		}
		r.remove(m.id)
	}
}

// take removes and returns a message if it was kept, with its current place and
// flags.
func (r *recent) take(d Stored) (mail, bool) {
	m, ok := r.mails[d.ID]
	if !ok || d.item.Key == "" {
		return m, false
	}
	r.remove(d.ID)
	m.item.Location, m.item.Flags = d.item.Location, d.item.Flags
	return m, true
}

func (r *recent) remove(id uuid.UUID) {
	if m, ok := r.mails[id]; ok {
		r.bytes -= weight(m)
		delete(r.mails, id)
	}
}

// weight estimates the memory of a message.
func weight(m mail) int64 { return max(m.item.Size, int64(len(m.message.Raw))) + 4<<10 }
