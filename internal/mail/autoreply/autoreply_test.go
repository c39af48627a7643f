package autoreply_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/autoreply"
	"github.com/countersign-dev/countersign/internal/mail/message"
)

const head = "Return-Path: <bob@example.com>\nFrom: Bob <Bob@example.com>\nTo: ada@example.org\nSubject: Lunch\nMessage-ID: <1@example.com>\n"

func recipient(header string) (string, error) {
	return autoreply.Recipient(message.Parse([]byte(header+"\nHello\n")), []string{"ADA@example.org", "ada.l@example.net"})
}

func TestRecipient(t *testing.T) {
	t.Parallel()
	for name, header := range map[string]string{
		"a message":              head,
		"without a Return-Path":  strings.Replace(head, "Return-Path: <bob@example.com>\n", "", 1),
		"another address in Cc":  strings.Replace(head, "To: ada@example.org", "To: eve@example.com\nCc: Ada <ada.l@example.net>", 1),
		"not automatic":          head + "Auto-Submitted: No (a person)\n",
		"a precedence of people": head + "Precedence: first-class\n",
		"a Sender":               head + "Sender: office@example.com\n",
	} {
		if got, err := recipient(header); err != nil || got != "bob@example.com" {
			t.Errorf("%s: Recipient() = %q, %v, want bob@example.com", name, got, err)
		}
	}
}

func TestNobodyIsAnswered(t *testing.T) {
	t.Parallel()
	from := func(address string) string {
		return strings.ReplaceAll(strings.ReplaceAll(head, "bob@example.com", address), "Bob@example.com", address)
	}
	tests := map[string]string{
		"a null return path":          strings.Replace(head, "<bob@example.com>", "<>", 1),
		"another return path":         strings.Replace(head, "<bob@example.com>", "<bounce-17@lists.example.com>", 1),
		"a second return path":        "Return-Path: <>\n" + head,
		"two senders":                 strings.Replace(head, "Bob <Bob@example.com>", "bob@example.com, eve@example.com", 1),
		"two From fields":             head + "From: bob@example.com\n",
		"no sender":                   strings.Replace(head, "From: Bob <Bob@example.com>\n", "", 1),
		"the owner":                   from("ada.l@example.net"),
		"not to the owner":            strings.Replace(head, "To: ada@example.org", "To: team@example.org", 1),
		"a machine by its Sender":     head + "Sender: team-bounces@example.com\n",
		"a report":                    head + "Content-Type: multipart/report; report-type=delivery-status; boundary=b\n",
		"a header that hides a field": head + strings.Repeat("X-Field: 1\n", 600),
	}
	for _, field := range []string{
		"List-Id: <a.example.com>", "List-Unsubscribe: <mailto:a@example.com>", "List-Post: NO", "list-help: <mailto:a@example.com>", "Precedence: bulk", "Precedence: LIST",
		"Precedence: junk", "Auto-Submitted: auto-replied", "Auto-Submitted: auto-generated; a=b", "auto-submitted: yes", "Auto-Submitted: no-way", "X-Auto-Response-Suppress: OOF, AutoReply",
		"X-Autoreply: yes", "X-Loop: ada", "Mailing-List: list a", "Feedback-ID: 1:2", "X-Failed-Recipients: a@example.com",
	} {
		tests[field] = head + field + "\n"
	}
	for _, address := range []string{
		"noreply@example.com", "no-reply@example.com", "do_not_reply@example.com", "MAILER-DAEMON@example.com", "postmaster@example.com", "bounces+17@example.com",
		"team-request@example.com", "owner-team@example.com", "shop.noreply@example.com", "listserv@example.com", "root@example.com",
	} {
		tests[address] = from(address)
	}
	for name, header := range tests {
		if got, err := recipient(header); err == nil || got != "" {
			t.Errorf("%s: Recipient() = %q, %v, want an error", name, got, err)
		}
	}
}
