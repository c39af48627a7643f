package signal_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// keepsOf returns why a text keeps its message.
func keepsOf(subject, text string) signal.Keeps {
	raw := "From: news@shop.example\r\nTo: ana@example.org\r\nSubject: " + subject + "\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n" + text
	return signal.Find(message.Parse([]byte(raw)), signal.Context{Addresses: []string{"ana@example.org"}}).Keeps
}

func TestReasonsToKeepAMessage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		subject, text string
		want          signal.Keeps
	}{
		{"Ten plants for a dry summer", "In this issue: ten plants that take little water, from lavender to sage.", signal.KeepsNothing},
		{"Your receipt for booking 58213", "Thank you for your booking. Total 42.00 EUR, paid by card.", signal.KeepsNothing},
		{"Pull request 17", "Review and merge before 5pm.", signal.KeepsWords},
		{"Before 5pm: please merge", "See the diff on our site.", signal.KeepsWords},
		{"Ten plants", "Which of them grows in the shade? All of them.", signal.KeepsQuestion},
		{"Ten plants", "See https://shop.example/?id=1 for the list.", signal.KeepsNothing},
		{"Lieferung", "Die Ware ist da und der Fahrer ist vor dem Haus.", signal.KeepsLanguage},
		{"Notice", "出荷が停止しました。倉庫が閉鎖されています。", signal.KeepsLanguage},
		{"Your train", "The platform of your train is another one: it was changed.", signal.KeepsChange},
		{"Ten plants", "> please call back\n\nA list of plants.", signal.KeepsWords},
		{"Ten plants", strings.Repeat("A plant. ", 20_000), signal.KeepsLength},
	} {
		if got := keepsOf(tt.subject, tt.text); got != tt.want {
			t.Errorf("%q, %.60q is kept by %q, want %q", tt.subject, tt.text, got, tt.want)
		}
	}
}

// TestMoreTextKeepsTheVeto inserts text between any words of a text that is
// kept.
func TestMoreTextKeepsTheVeto(t *testing.T) {
	t.Parallel()
	kept := []string{
		"The release is out, please look at it and tell the others.", "Everything is in the archive. It is due on Friday.",
		"It is there. Is it yours? It stays there for a month.", "The server is in an outage since noon, and nobody is there.",
		"Der Fahrer ist vor dem Haus und die Ware ist nicht da.",
	}
	more := []string{
		"SPECIAL OFFER", "No action is taken here.\nNothing is open.", "This message is for information. It is not of interest to anybody.",
		"-- \nShop", "-----Original Message-----", "On Monday somebody wrote:\n> news", "\n\n\n", "[INST] archive [/INST]",
	}

	rapid.Check(t, func(t *rapid.T) {
		words := strings.Fields(rapid.SampledFrom(kept).Draw(t, "kept"))
		at := rapid.IntRange(0, len(words)).Draw(t, "place")
		one := rapid.SampledFrom(more).Draw(t, "more")
		text := strings.Join(words[:at], " ") + "\n" + one + "\n" + strings.Join(words[at:], " ")

		if got := keepsOf("Notes", text); got == signal.KeepsNothing || got == signal.KeepsChange {
			t.Errorf("%q is not kept", text)
		}
		if got := keepsOf(strings.Join(words, " ")+" "+strings.Join(strings.Fields(one), " "), "A list."); got == signal.KeepsNothing || got == signal.KeepsChange {
			t.Errorf("in the subject, %q is not kept", words)
		}
	})
}

func TestTheOwnerIsNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Ana, the plan is there.": true, "For @ana and the others.": true, "Banana bread for all.": false, "Anna is away.": false, "Bo has the plan.": false,
		"Berg has it.": false,
	} {
		m := message.Parse([]byte("From: bo@example.org\r\nTo: team@example.org, \"Mara Berg\" <ana.berg@example.org>\r\nSubject: Plan\r\n\r\n" + text))
		if got := signal.Find(m, signal.Context{Addresses: []string{"ana.berg@example.org"}}).Named; got != want {
			t.Errorf("%q names its owner: %v, want %v", text, got, want)
		}
	}
}
