package engine_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/countersign-dev/countersign/internal/triage/mcpmailtest"
)

// stored fails if a statement of a cycle failed: for the account, or for a
// message that was set aside.
func (f *fixture) stored(err error) {
	f.t.Helper()
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		f.t.Errorf("a statement failed: %v", pg)
	}
	if reasons := one[[]string](f, "SELECT coalesce(array_agg(step || ': ' || reason) FILTER (WHERE step = 'store' OR reason LIKE 'the program failed%'), '{}') FROM triage_set_aside"); len(reasons) > 0 {
		f.t.Errorf("set aside: %q", reasons)
	}
}

// hasDecided fails unless a message was decided.
func (f *fixture) hasDecided(id string) {
	f.t.Helper()
	if !one[bool](f, "SELECT EXISTS (SELECT FROM triage_decisions JOIN triage_messages m USING (tenant_id, message_id) WHERE m.header_id = $1)", id) {
		f.t.Errorf("the message %s was not decided", id)
	}
}

// forget deletes what an earlier input left.
func (f *fixture) forget() {
	f.t.Helper()
	f.exec("DELETE FROM triage_folders; DELETE FROM triage_messages; DELETE FROM triage_senders; DELETE FROM triage_set_aside")
}

// FuzzMCPAnswerIsCommitted has an MCP mail server answer any JSON in a member of
// its answers about one message: no statement fails, and the other message is
// decided.
func FuzzMCPAnswerIsCommitted(f *testing.F) {
	ofMessage := []string{"id", "received_at", "size", "flags", "raw", "headers", "text", "html"}
	for i, value := range []string{
		`null`, `true`, `{}`, `[]`, `""`, `"\u0000"`, `"\ud800"`, `"\udfff\ud800"`, `"a\nb"`, `"` + strings.Repeat("k", 500) + `"`, `"` + strings.Repeat("k", 501) + `"`,
		`0`, `-1`, `1e999`, `9223372036854775807`, `9223372036854775808`, `253402300800`, `99999999999999`, `-62135596801`,
		`"0000-01-01T00:00:00Z"`, `"0001-01-01T00:00:00Z"`, `"1970-01-01T00:00:00Z"`, `"9999-12-31T23:59:59.999999999-23:59"`, `"Thu, 05 Mar 2026 16:23:00 +9959"`,
		`["\\Seen", "\u0000", "\ud800", "` + strings.Repeat("f", 1000) + `", 7, null]`, `[{"name": "From", "value": "a@\u0000.example"}, {"name": "Subject", "value": "\ud800\u0000"}]`,
		`{"From": "ann@example.com", "Date": "\u0000", "References": "` + strings.Repeat("<r> ", 2000) + `"}`, `"AA=="`, `"RnJvbTogYUBiLmV4YW1wbGUKClwAdTAwMDA="`, `"m-000002"`, `[["m-000001"]]`,
	} {
		for j, member := range append(ofMessage, "messages", "new", "changed", "gone", "next", "more", "reset", "end", "next_cursor", "folders", "name", "use") {
			if fuzzing() || (i+j)%10 == 0 { // a test of the suite takes a part of them
				f.Add((i+j)%2 == 0, member, value)
			}
		}
	}
	type account struct {
		*fixture
		server *mcpmailtest.Server
	}
	mails := []testMail{newsletter("first@x"), newsletter("second@x")}
	start := func(kind mcpmailtest.Kind) account {
		fx, s := behindMCP(f, kind)
		for _, m := range mails {
			s.Deliver("INBOX", []byte(m.raw()))
		}
		return account{fx, s}
	}
	accounts := map[bool]account{false: start(mcpmailtest.Kind{NoChanges: true, Built: true}), true: start(mcpmailtest.Kind{})}
	f.Fuzz(func(t *testing.T, changes bool, member, value string) {
		if !json.Valid([]byte(value)) {
			t.Skip("not JSON")
		}
		a := accounts[changes]
		a.t = t
		raw := json.RawMessage(value)
		first := map[string]any{"id": "m-000001", "raw": base64.StdEncoding.EncodeToString([]byte(mails[0].raw()))}
		change := func(item map[string]any) {
			item[member] = raw
		}
		a.server.Answers(func(tool string, args, answer map[string]any) {
			if _, ok := answer[member]; ok && !slices.Contains(ofMessage, member) {
				answer[member] = raw
			}
			if id := args["id"]; tool == mcpmailtest.Read && id != "m-000002" {
				if answer["fail"] != nil { // it is asked for by its changed id
					delete(answer, "fail")
					maps.Copy(answer, first)
				}
				change(answer)
			}
			for _, list := range []string{"messages", "new", "changed", "folders"} {
				items, _ := answer[list].([]any)
				for _, item := range items {
					if item := item.(map[string]any); item["id"] == "m-000001" || item["name"] == "Archive" {
						change(item)
					}
				}
			}
		})
		a.forget()

		err := a.engine(nil).Once(t.Context())

		a.stored(err)
		if slices.Contains(ofMessage, member) && value != `"m-000002"` {
			if err != nil {
				t.Errorf("Once = %v, want the account to go on", err)
			}
			a.hasDecided("second@x")
		}
	})
}

// FuzzIMAPAnswerIsCommitted has an IMAP server answer any text as the flags, the
// date and the size of one message and as the UIDVALIDITY of its folder: no
// statement fails.
func FuzzIMAPAnswerIsCommitted(f *testing.F) {
	const date = "05-Mar-2026 16:23:00 +0000"
	for _, flags := range []string{"", `\Seen \Flagged`, "\x00", "\xff", "\xed\xa0\x80", `\*`, strings.Repeat("f ", 1000), strings.Repeat("f", 5000), ")", "&2D0A-"} {
		f.Add(flags, date, "10", "7")
	}
	for _, at := range []string{"01-Jan-0001 00:00:00 +0000", "31-Dec-9999 23:59:59 -2359", " 1-Jan-1970 00:00:00 +1400", "30-Feb-2026 00:00:00 +0000", "05-Mar-2026 16:23:00 +9959", "05-Mar-99999 16:23:00 +0000", "", "\x00"} {
		f.Add("", at, "10", "7")
	}
	for _, number := range []string{"0", "-1", "4294967295", "4294967296", "9223372036854775807", "9223372036854775808", "1e9", "NIL", ""} {
		f.Add("", date, number, "7")
		f.Add("", date, "10", number)
	}
	var change atomic.Pointer[func(line string) string]
	s := newMemory(f)
	for _, id := range []string{"first@x", "second@x"} {
		s.deliver("INBOX", newsletter(id).raw())
	}
	s.through(func(line string) string {
		if change := change.Load(); change != nil {
			return (*change)(line)
		}
		return line
	})
	fx := s.fixture()
	first := regexp.MustCompile(`FETCH \(.*UID 1[ )]`)
	fields := []*regexp.Regexp{regexp.MustCompile(`FLAGS \([^)]*\)`), regexp.MustCompile(`INTERNALDATE "[^"]*"`), regexp.MustCompile(`RFC822\.SIZE \d+`), regexp.MustCompile(`UIDVALIDITY \d+`)}
	// A line break ends the answer. A literal's announcement and an open quote make
	// the client wait for more until its deadline. The tests of package imap have
	// them.
	clean := strings.NewReplacer("\r", "", "\n", "", "{", "", `"`, "")
	f.Fuzz(func(t *testing.T, flags, date, size, validity string) {
		fx.t = t
		values := []string{"FLAGS (" + clean.Replace(flags) + ")", `INTERNALDATE "` + clean.Replace(date) + `"`, "RFC822.SIZE " + clean.Replace(size), "UIDVALIDITY " + clean.Replace(validity)}
		changed := func(line string) string {
			for i, field := range fields {
				if i == len(fields)-1 || first.MatchString(line) {
					line = field.ReplaceAllLiteralString(line, values[i])
				}
			}
			return line
		}
		change.Store(&changed)
		fx.forget()

		fx.stored(fx.engine(nil).Once(t.Context()))
	})
}
