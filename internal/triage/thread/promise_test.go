package thread_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/thread"
)

// TestPromises tells promises, their fulfilment and other sentences apart.
func TestPromises(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ promises, delivers bool }{
		"I will send it by Friday.":                                  {true, false},
		"Thanks! I'll quickly get back to you tomorrow":              {true, false},
		"We are going to review the draft.":                          {true, false},
		"Ich schicke dir den Vertrag bis Freitag.":                   {true, false},
		"Den Bericht schicke ich morgen.":                            {true, false},
		"Ich werde Ihnen die Unterlagen bis Montag zusenden.":        {true, false},
		"I will send it attached to the next mail.":                  {true, false},
		"I will not send it.":                                        {},
		"I will never pay for this.":                                 {},
		"Ich schicke es nicht.":                                      {},
		"If you like, I will send it.":                               {},
		"Wenn du magst, schicke ich es dir.":                         {},
		"Will you send it by Friday?":                                {},
		"You said you will send it.":                                 {},
		"> I will send it by Friday.\nNoted.":                        {},
		"The bank will transfer it.":                                 {},
		"":                                                           {},
		"Please find the report below.":                              {false, true},
		"Here is the draft. More next week.":                         {false, true},
		"Anbei der Vertrag, wie versprochen.":                        {false, true},
		"Nothing is attached yet, it is not attached.":               {},
		"Thanks, see you.":                                           {},
		strings.Repeat("I will ", 200_000):                           {},
		strings.Repeat("x ", 20_000) + "I will send it.":             {},
		"\xff\xfe I will send it \xff":                               {true, false},
		"Here is the first half. I will send the rest by Wednesday.": {true, true},
	} {
		if got := thread.Promises(text); got != want.promises {
			t.Errorf("Promises(%.60q) = %v", text, got)
		}
		if got := thread.Delivers(&message.Message{Body: text}); got != want.delivers {
			t.Errorf("Delivers(%.60q) = %v", text, got)
		}
	}
	if !thread.Delivers(&message.Message{Attachments: []message.Attachment{{Name: "report.pdf"}}}) {
		t.Error("a mail with a file delivers nothing")
	}
}
