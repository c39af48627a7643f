package suggest_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/mail/maildir"
	"github.com/countersign-dev/countersign/internal/triage/suggest"
)

// fixture is a Maildir.
type fixture struct {
	t   *testing.T
	dir string
	n   int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: t.TempDir()}
	for _, folder := range []string{"", ".Sent"} {
		for _, part := range []string{"cur", "new", "tmp"} {
			if err := os.MkdirAll(filepath.Join(f.dir, folder, part), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	return f
}

// put stores a mail of an age, and returns its Message-ID.
func (f *fixture) put(folder, from, to string, age time.Duration, headers, body string) string {
	f.t.Helper()
	f.n++
	id := fmt.Sprintf("m%d@test.example", f.n)
	raw := fmt.Sprintf("Message-ID: <%s>\nFrom: %s\nTo: %s\nSubject: s\nDate: %s\n%s\n%s\n", id, from, to, time.Now().Add(-age).Format(time.RFC1123Z), headers, body)
	name := filepath.Join(f.dir, folder, "cur", fmt.Sprintf("%d.test:2,S", f.n))
	at := time.Now().Add(-age)
	if err := errors.Join(os.WriteFile(name, []byte(raw), 0o600), os.Chtimes(name, at, at)); err != nil {
		f.t.Fatal(err)
	}
	return id
}

func (f *fixture) from(address string) suggest.Settings {
	f.t.Helper()
	r, err := maildir.NewReader(f.dir, maildir.Config{})
	if err != nil {
		f.t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	got, err := suggest.From(f.t.Context(), r, address, time.Now().AddDate(0, 0, -90))
	if err != nil {
		f.t.Fatal(err)
	}
	return got
}

const (
	ann    = "ann@example.org"
	bulk   = "List-Unsubscribe: <https://x.example/u>\nList-Id: <l.x.example>\n"
	german = "Liebe Mila, vielen Dank für deine Nachricht. Wir können uns gerne am Montag treffen, wenn es dir passt, und dann über den Vertrag sprechen.\n"
)

func TestSettingsComeFromBothDirectionsOfMail(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const day = 24 * time.Hour
	for i := range 3 {
		id := f.put("", "Mila <mila@work.example>", ann, time.Duration(i+2)*day, "", "hello")
		f.put(".Sent", ann, "mila@work.example", time.Duration(i+1)*day, "In-Reply-To: <"+id+">\n", german+"\n-- \nAnn\nExample Ltd\n\nOn Monday Mila wrote:\n> hello\n> -- \n> Mila")
		f.put("", "news@garden.example", ann, time.Duration(i+1)*day, bulk, "plants")
		f.put("", "sales@vendor.example", ann, time.Duration(i+1)*day, "", "buy")               // never answered
		f.put(".Sent", ann, "nag@vendor2.example", time.Duration(i+1)*day, "", "reply please")  // never answers
		f.put("", "noreply@bank.example", ann, time.Duration(i+1)*day, "", "your statement")    // a machine
		f.put(".Sent", "ann@alias.example", "x@y.example", time.Duration(i+1)*day, "", "alias") // another address
		f.put("", "list@project.example", ann, time.Duration(i+1)*day, bulk, "patch")           // a list that she writes to
		f.put(".Sent", ann, "list@project.example", time.Duration(i+1)*day, "", "a patch")      //
		old := f.put("", "old@past.example", ann, time.Duration(i+100)*day, "", "long ago")     //
		f.put(".Sent", ann, "old@past.example", time.Duration(i+99)*day, "In-Reply-To: <"+old+">\n", "long ago")
	}
	f.put("", "once@single.example", ann, day, bulk, "welcome")
	f.put("", "ben@work.example", ann, day, "", "hi")

	got := f.from(ann)

	want := suggest.Settings{
		Addresses: []string{ann, "ann@alias.example"}, VIP: []string{"mila@work.example"}, Newsletters: []string{"garden.example"},
		Signature: "Ann\nExample Ltd", Language: "de", Received: 17, Sent: 12,
	}
	if len(got.Examples) != 3 {
		t.Errorf("Examples = %v, want the 3 with text of their own", got.Examples)
	}
	got.Examples = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestSettingsOfAnEmptyMailboxAreEmpty(t *testing.T) {
	t.Parallel()

	got := newFixture(t).from(ann)

	want := suggest.Settings{Addresses: []string{ann}, VIP: []string{}, Newsletters: []string{}, Examples: []string{}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func TestMailboxIsReadUpToALimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 520 {
		f.put("", fmt.Sprintf("a%d@many.example", i), ann, time.Duration(i)*time.Minute, "", "x")
	}

	if got := f.from(ann); got.Received != 500 {
		t.Errorf("Received = %d, want the limit of 500", got.Received)
	}
}

func TestSignatureOfAWholePageIsNone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 3 {
		f.put(".Sent", ann, "x@y.example", time.Hour, "", "text\n-- \n"+strings.Repeat("a line\n", 30))
	}

	if got := f.from(ann); got.Signature != "" {
		t.Errorf("Signature = %q, want none", got.Signature)
	}
}
