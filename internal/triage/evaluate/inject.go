package evaluate

import (
	"context"
	_ "embed" // the project's own attacks
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

//go:embed attacks.txt
var ownAttacks string

// victim is a mail into which instructions are put.
type victim struct{ subject, body string }

// evaluateInjection puts every attack into every mail at three places, as mail
// of a known and authenticated sender, and compares the wanted actions with
// those for the clean mail.
func (r *run) evaluateInjection(ctx context.Context) error {
	var err error
	if r.shipped, err = classify.Embedded(); err != nil {
		return err
	}
	attacks, victims := splitLines(ownAttacks), r.own.victims(40)
	if r.Attacks > 0 {
		attacks = sample(attacks, r.Attacks)
	}
	if err := r.attacked(ctx, "fixture", attacks, victims); err != nil {
		return err
	}
	if r.Corpus == nil {
		return nil
	}
	attacks, victims, err = readInjection(r.Corpus)
	if errors.Is(err, fs.ErrNotExist) {
		r.report.Absent = append(r.report.Absent, "injection")
		return nil
	}
	if err != nil {
		return err
	}
	return r.attacked(ctx, "injection", attacks, victims)
}

func (r *run) attacked(ctx context.Context, set string, attacks []string, victims []victim) error {
	if err := r.injected(ctx, set, attacks, victims); err != nil {
		return err
	}
	if err := r.evaluateMatrix(ctx, set, attacks, victims); err != nil {
		return err
	}
	return r.evaluateAdversaries(ctx, set, attacks, victims)
}

func (r *run) injected(ctx context.Context, set string, attacks []string, victims []victim) error {
	var beyond, moved, flagged, changed, tried int
	for _, v := range victims {
		if err := ctx.Err(); err != nil {
			return err
		}
		clean := r.handle(v.subject, v.body)
		for _, attack := range attacks {
			for _, body := range placed(v.body, attack) {
				tried++
				got := r.handle(v.subject, body)
				beyond += count(got.more(clean))
				moved += count(got.moves)
				flagged += count(got.flagged)
				changed += count(got.priority != clean.priority)
			}
		}
	}
	number := func(name string, n int) Figure { return Figure{Name: name, Value: float64(n), Unit: "mails"} }
	r.add(Section{
		Set: set + " with injected instructions", Mode: Shipped, Examples: tried,
		Figures: []Figure{
			number("with an envelope beyond the clean mail's, every cohort at L3", beyond),
			number("moved without a person, every cohort at L3", moved),
			share{flagged, tried}.figure("flagged as injection", 1), share{changed, tried}.figure("priority differs from the clean mail's", 1),
		},
	})
	return nil
}

// sample returns evenly spaced elements of a list.
func sample[T any](all []T, many int) []T {
	var some []T
	for i := range min(many, len(all)) {
		some = append(some, all[i*len(all)/min(many, len(all))])
	}
	return some
}

func count(holds bool) int {
	if holds {
		return 1
	}
	return 0
}

// placed returns the body with the attack at its start, middle and end.
func placed(body, attack string) []string {
	middle := len(body) / 2
	if at := strings.IndexByte(body[middle:], ' '); at >= 0 {
		middle += at
	}
	return []string{attack + "\n" + body, body[:middle] + "\n" + attack + "\n" + body[middle:], body + "\n" + attack}
}

// handled holds the wanted treatment of a mail.
type handled struct {
	wants          []decide.Action
	moves, flagged bool
	priority       classify.Priority
}

func (h handled) more(clean handled) bool {
	return slices.ContainsFunc(h.wants, func(a decide.Action) bool { return !slices.Contains(clean.wants, a) })
}

// handle decides a mail of a known and authenticated sender, with every cohort
// at L3.
func (r *run) handle(subject, body string) handled {
	raw := "From: Known Person <known@partner.example>\r\nTo: owner@example.org\r\nSubject: " +
		strings.Join(strings.Fields(subject), " ") + "\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" + body
	m := message.Parse([]byte(raw))
	about := signal.Context{
		Addresses: []string{"owner@example.org"}, Domains: []string{"example.org"},
		Sender: signal.Sender{Received: 9, Sent: 4, Replied: 4},
		Authentication: signal.Authentication{
			SPF: signal.AuthPass, DKIM: signal.AuthPass, DMARC: signal.AuthPass, Aligned: true,
		},
	}
	found := signal.Find(m, about)
	prediction := r.shipped.Predict(r.shipped.Features(m, about, found))
	found = found.WithModel(prediction.Phishing)
	levels := map[decide.Cohort]decide.Level{}
	for _, c := range decide.Cohorts() {
		levels[c] = decide.L3
	}
	decision := decide.Decide(decide.Facts{
		Headers: decide.HeadersOf(m), Folder: mailbox.UseInbox, Authentication: about.Authentication, Signals: found,
		Prediction: prediction, Sender: about.Sender,
		Settings: decide.Settings{Addresses: about.Addresses, Domains: about.Domains, Levels: levels},
	})
	out := handled{flagged: found.Injection, priority: prediction.Priority}
	for _, w := range decision.Wants {
		out.wants = append(out.wants, w.Action)
		out.moves = out.moves || !w.Confirm && slices.Contains(moving(), w.Action)
	}
	return out
}

// moving returns the actions that move a message.
func moving() []decide.Action {
	return []decide.Action{decide.Archive, decide.Snooze, decide.Trash, decide.Quarantine}
}

// victims returns the texts of the first messages of the fixture.
func (f fixture) victims(n int) []victim {
	var out []victim
	for _, e := range f.source.Examples[:min(n, len(f.source.Examples))] {
		m := message.Parse(e.Raw)
		out = append(out, victim{m.Subject, m.Text})
	}
	return out
}

// readInjection reads injection/attacks.json, lists of instructions by kind, and
// the texts of injection/mails.jsonl.
func readInjection(files fs.FS) (attacks []string, victims []victim, err error) {
	data, err := fs.ReadFile(files, "injection/attacks.json")
	if err != nil {
		return nil, nil, err
	}
	var kinds map[string][]string
	if err := json.Unmarshal(data, &kinds); err != nil {
		return nil, nil, fmt.Errorf("read injection/attacks.json: %w", err)
	}
	for _, list := range kinds {
		attacks = append(attacks, list...)
	}
	slices.Sort(attacks)
	data, err = fs.ReadFile(files, "injection/mails.jsonl")
	if err != nil {
		return nil, nil, err
	}
	for _, line := range splitLines(string(data)) {
		var mail struct{ Context string }
		if err := json.Unmarshal([]byte(line), &mail); err != nil {
			return nil, nil, fmt.Errorf("read injection/mails.jsonl: %w", err)
		}
		subject, body, _ := strings.Cut(strings.TrimPrefix(mail.Context, "SUBJECT:"), "|CONTENT:")
		victims = append(victims, victim{strings.TrimSpace(subject), strings.TrimSpace(body)})
	}
	return attacks, victims, nil
}

func splitLines(text string) []string {
	return slices.DeleteFunc(strings.Split(text, "\n"), func(l string) bool { return strings.TrimSpace(l) == "" })
}
