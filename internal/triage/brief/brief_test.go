package brief_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/triage/brief"
)

var update = flag.Bool("update", false, "rewrite golden files")

func list[T any](total int, items ...T) wire.TriageBriefList[T] {
	return wire.TriageBriefList[T]{Total: total, Items: append([]T{}, items...)}
}

func owes(overdue int, of wire.TriageBriefList[wire.TriageFollowUp]) wire.TriageBriefFollowUps {
	return wire.TriageBriefFollowUps{Total: of.Total, Items: of.Items, Overdue: overdue}
}

// example is a brief with text of a hostile mail.
func example() wire.TriageBrief {
	at := func(text string) time.Time {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			panic(err)
		}
		return t
	}
	return wire.TriageBrief{
		Account: "work", Kind: "morning", Zone: "Europe/Berlin", Since: at("2026-11-26T17:00:00Z"), Until: at("2026-11-27T06:30:00Z"), ShowsMail: true,
		Late: new(at("2026-11-27T05:30:00Z")), Total: 14,
		Buckets: []wire.TriageBriefCount{{Name: "urgent", Count: 1}, {Name: "actionable", Count: 2}, {Name: "informational", Count: 4}, {Name: "archived", Count: 6}, {Name: "undecided", Count: 1}},
		Attention: list(14,
			wire.TriageBriefMessage{Bucket: "urgent", Sender: "mila@work.example", SenderName: "Mila", Subject: "The site is down"},
			wire.TriageBriefMessage{Bucket: "actionable", Sender: "eve@evil.example", Subject: "[Click](https://evil.example) *now* <!channel> <https://evil.example|bank> `x`\nBcc: a@b.example \x1b[31m\u202egnp.exe"},
			wire.TriageBriefMessage{Bucket: "informational", Question: true, Sender: "k@example.org", SenderName: "# Kōki 光希", Subject: ""}),
		Calendar: &wire.TriageBriefCalendar{Source: "home", Unread: 1, Events: list(2,
			wire.TriageBriefEvent{WholeDay: true, Start: at("2026-11-27T00:00:00Z"), End: at("2026-11-28T00:00:00Z"), Summary: "Anniversary"},
			wire.TriageBriefEvent{Start: at("2026-11-27T08:00:00Z"), End: at("2026-11-27T08:30:00Z"), Summary: "Standup", Location: "Room 4"})},
		Owed: owes(1, list(2,
			wire.TriageFollowUp{OwedBy: "me", With: "tom@example.org", WithName: "Tom", Subject: "Contract", Since: at("2026-11-20T10:00:00Z"), Due: new(at("2026-11-26T22:59:59Z")), DueText: "November 26", WholeDay: true},
			wire.TriageFollowUp{OwedBy: "me", With: "una@example.org", Subject: "Slides", Since: at("2026-11-22T10:00:00Z"), Due: new(at("2026-11-30T13:00:00Z")), DueText: "30 Nov at 14:00"})),
		Awaited: owes(0, list(1, wire.TriageFollowUp{OwedBy: "them", With: "vic@example.org", WithName: "Vic", Subject: "Invoice", Since: at("2026-11-19T10:00:00Z")})),
		Found: wire.TriageBriefFound{
			Total: 14, Items: []wire.TriageBriefItem{
				{Kind: "receipt", Text: "Bike Shop, 45.00 EUR", At: new(at("2026-11-26T12:00:00Z"))},
				{Kind: "meeting", Text: "Call [me](https://evil.example) (Room 4)", At: new(at("2026-11-27T13:00:00Z"))},
				{Kind: "task", Text: "Tom: Contract", At: new(at("2026-11-29T23:00:00Z")), WholeDay: true},
				{Kind: "travel", Text: "flight LH123 from FRA to JFK"},
			},
			Kinds: []wire.TriageBriefCount{{Name: "meeting", Count: 1}, {Name: "receipt", Count: 11}, {Name: "task", Count: 1}, {Name: "travel", Count: 1}},
		},
		Moved: []wire.TriageBriefCount{{Name: "archived", Count: 6}, {Name: "junk", Count: 1}},
	}
}

// counts is the same brief without mail, and with a calendar that was not read.
func counts() wire.TriageBrief {
	b := example()
	b.Kind, b.ShowsMail, b.Late = "evening", false, nil
	b.Attention.Items, b.Found.Items = nil, nil
	for _, items := range [][]wire.TriageFollowUp{b.Owed.Items, b.Awaited.Items} {
		for i := range items {
			items[i].With, items[i].WithName, items[i].Subject, items[i].DueText = "", "", "", ""
		}
	}
	b.Calendar = &wire.TriageBriefCalendar{Source: "home", Problem: "the server did not answer in time", Events: list[wire.TriageBriefEvent](0)}
	return b
}

// TestRenderings compares the renderings of briefs with golden files.
func TestRenderings(t *testing.T) {
	t.Parallel()
	empty := wire.TriageBrief{Account: "a", Kind: "morning", Zone: "UTC", Since: time.Unix(0, 0), Until: time.Unix(86400, 0), Calendar: &wire.TriageBriefCalendar{Source: "home"}}
	busy := counts()
	busy.Calendar = &wire.TriageBriefCalendar{Source: "home", Events: list[wire.TriageBriefEvent](3)}
	for name, b := range map[string]wire.TriageBrief{"mail": example(), "counts": counts(), "busy": busy, "empty": empty} {
		slack, err := json.MarshalIndent(brief.Slack(b), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.MarshalIndent(b, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		for file, got := range map[string]string{name + ".txt": brief.Text(b), name + ".md": brief.Markdown(b), name + ".slack.json": string(slack) + "\n", name + ".json": string(data) + "\n"} {
			path := filepath.Join("testdata", file)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || got != string(want) {
				t.Errorf("%s (%v):\n%s\nwant\n%s", file, err, got, want)
			}
		}
	}
}

// TestCountsHaveNoMail renders a brief without mail: no sender, no subject, no span.
func TestCountsHaveNoMail(t *testing.T) {
	t.Parallel()
	b := counts()
	slack, err := json.Marshal(brief.Slack(b))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{brief.Text(b), brief.Markdown(b), string(slack)} {
		for _, mail := range []string{"Mila", "mila", "site is down", "Tom", "tom@", "Contract", "November 26", "Bike", "LH123", "Room 4"} {
			if strings.Contains(text, mail) {
				t.Errorf("the brief has %q:\n%s", mail, text)
			}
		}
	}
}

// TestSlackBounds renders briefs that exceed the bounds of Slack.
func TestSlackBounds(t *testing.T) {
	t.Parallel()
	b := example()
	long := strings.Repeat("😀 wörd ", 100)
	b.Account = strings.Repeat("x", 500)
	for range 1000 {
		b.Attention.Items = append(b.Attention.Items, wire.TriageBriefMessage{Bucket: "urgent", SenderName: long, Subject: long})
	}

	m := brief.Slack(b)

	if len(m.Blocks) != 50 {
		t.Errorf("%d blocks, want 50", len(m.Blocks))
	}
	for i, block := range m.Blocks {
		most := 3000
		if block.Type == "header" {
			most = 150
		}
		if n := len(utf16.Encode([]rune(block.Text.Text))); n > most || n == 0 || block.Text.Type != "plain_text" {
			t.Errorf("block %d is a %s of %d characters, %s", i, block.Type, n, block.Text.Type)
		}
	}
	if last := m.Blocks[49].Text.Text; !strings.Contains(last, "does not fit") {
		t.Errorf("the last block is %q", last)
	}
}
