package thread

import (
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/triage/extract"
)

// Finding is a finding in a message, as it is stored: text of the mail.
type Finding struct {
	Message  uuid.UUID       `json:"message_id"`
	Number   int             `json:"finding_no"`
	Kind     extract.Kind    `json:"kind"`
	Key      string          `json:"key"`
	Sequence int             `json:"sequence"`
	Cancels  bool            `json:"cancels"`
	Starts   *Instant        `json:"starts_at"`
	Ends     *Instant        `json:"ends_at"`
	Fields   []extract.Field `json:"fields"`
}

// Findings returns the findings in a message with an id.
func Findings(m *message.Message, id uuid.UUID) (rows []Finding) {
	at := func(t time.Time) *Instant {
		if t.IsZero() {
			return nil
		}
		return new(InstantOf(t))
	}
	for i, f := range extract.Find(m) {
		sequence, _ := strconv.ParseInt(f.Get("sequence"), 10, 32) // "" is 0
		rows = append(rows, Finding{
			Message: id, Number: i + 1, Kind: f.Kind, Key: postgres.Text(f.Key), Sequence: int(sequence), Cancels: f.Get("status") == extract.Cancelled,
			Starts: at(f.At), Ends: at(f.Ends), Fields: f.Fields,
		})
	}
	return rows
}
