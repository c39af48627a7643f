package contact_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/tenant/contact"
)

// readCSV returns all entries and errors.
func readCSV(text string) (entries []contact.Entry, wrong []string, err error) {
	r, err := contact.NewCSVReader(strings.NewReader(text), contact.Options{})
	if err != nil {
		return nil, nil, err
	}
	for {
		e, _, err := r.Read()
		if errors.Is(err, io.EOF) {
			return entries, wrong, nil
		}
		if bad, ok := errors.AsType[*contact.LineError](err); ok {
			wrong = append(wrong, bad.Error())
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, e)
	}
}

func TestCSVReader(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)

	for name, tt := range map[string]struct {
		text string
		want []contact.Entry
	}{
		"only values":       {"value\na@b.org\n\n c@d.org \n", []contact.Entry{{Value: "a@b.org"}, {Value: "c@d.org"}}},
		"a mark and CRLF":   {"\uFEFFvalue\r\na@b.org\r\n", []contact.Entry{{Value: "a@b.org"}}},
		"any order":         {"Reason,VALUE\n\"said \"\"no\"\", twice\",a@b.org\n", []contact.Entry{{Value: "a@b.org", Reason: `said "no", twice`}}},
		"every column":      {"kind,value,reason,source,expires_at\nDomain,b.org,r,s,2027-01-31\n", []contact.Entry{{Kind: contact.Domain, Value: "b.org", Reason: "r", Source: "s", ExpiresAt: &at}}},
		"a time":            {"value,expires_at\na@b.org,2027-01-31T01:00:00+01:00\n", []contact.Entry{{Value: "a@b.org", ExpiresAt: &at}}},
		"fields left out":   {"value,reason\na@b.org\n", []contact.Entry{{Value: "a@b.org"}}},
		"nothing but names": {"value\n", nil},
	} {
		got, wrong, err := readCSV(tt.text)
		if diff := cmp.Diff(tt.want, got); diff != "" || err != nil || wrong != nil {
			t.Errorf("%s: %v, %v (-want +got):\n%s", name, err, wrong, diff)
		}
	}
}

// TestNoFieldIsAFormula writes texts that a spreadsheet would evaluate, and
// reads them back.
func TestNoFieldIsAFormula(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`=HYPERLINK("https://evil.example","x")`, "+1", "-2+3", "@SUM(1)", "'=1", "''+1", "plain", "it's", "'quoted'"} {
		var file bytes.Buffer
		w, err := contact.NewCSVWriter(&file)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(contact.Entry{Kind: contact.Email, Value: "ana@example.org", Reason: text, Source: text}); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(bytes.NewReader(file.Bytes())).ReadAll()
		if err != nil || len(rows) != 2 {
			t.Fatalf("the file is %q, %v", file.String(), err)
		}
		for _, field := range rows[1] {
			if field != "" && strings.ContainsAny(field[:1], "=+-@\t\r") {
				t.Errorf("%q is written as %q, which is a formula", text, field)
			}
		}

		got, wrong, err := readCSV(file.String())
		if err != nil || wrong != nil || len(got) != 1 || got[0].Reason != text || got[0].Source != text {
			t.Errorf("%q reads back as %+v, %v, %v", text, got, wrong, err)
		}
	}
}

func TestCSVReaderReportsThePlace(t *testing.T) {
	t.Parallel()

	for name, tt := range map[string]struct{ text, want string }{
		"no address":       {"value,reason\na@b.org,x\nno address at @,y\n", "line 3, column 1 (value)"},
		"a kind":           {"reason,kind,value\n,post,a@b.org\n", "line 2, column 2 (kind)"},
		"a time":           {"value,expires_at\na@b.org,tomorrow\n", "line 2, column 9 (expires_at)"},
		"too many fields":  {"value\na@b.org,b@b.org\n", "line 2, column 9"},
		"a quote":          {"value\na\"b@b.org\n", "line 2, column 2"},
		"an open quote":    {"value\n\"a@b.org\n" + strings.Repeat("x\n", 1<<16), "line 2, column 1"},
		"no value":         {"value,reason\n,x\n", "line 2, column 1 (value)"},
		"a line too short": {"reason,value\nx\n", "line 2, column 1 (value)"},
		"not UTF-8":        {"value,reason\na@b.org,\xff\n", "line 2, column 9 (reason)"},
	} {
		_, wrong, err := readCSV(tt.text)
		if err != nil || len(wrong) == 0 || !strings.HasPrefix(wrong[0], tt.want+":") {
			t.Errorf("%s: %v, wrong %q, want one at %s", name, err, wrong, tt.want)
		}
	}
	for name, tt := range map[string]struct{ text, want string }{
		"an unknown column": {"value,mail\n", "line 1, column 7"},
		"a column twice":    {"value,Value\n", "line 1, column 7"},
		"no value":          {"kind,reason\n", "line 1, column 1"},
		"no names":          {"a@b.org\n", "line 1, column 1"},
		"nothing":           {"", "EOF"},
	} {
		_, _, err := readCSV(tt.text)
		if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%s: %v, want one at %s", name, err, tt.want)
		}
	}
}

func TestCSVContinuesAfterAnError(t *testing.T) {
	t.Parallel()

	got, wrong, err := readCSV("value\nx@\na@b.org\n\"x\"y\nc@d.org\n")

	want := []contact.Entry{{Value: "a@b.org"}, {Value: "c@d.org"}}
	if diff := cmp.Diff(want, got); diff != "" || len(wrong) != 2 || err != nil {
		t.Errorf("%v, wrong %q (-want +got):\n%s", err, wrong, diff)
	}
}

func FuzzCSV(f *testing.F) {
	for _, seed := range []string{"value\na@b.org\n", "kind,value,reason,source,expires_at\nphone,+4930123456,\"a, b\",s,2027-01-31\n", "\uFEFFvalue\r\n@ana\r\n", "value\n\"\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		entries, _, err := readCSV(text)
		if err != nil {
			return
		}
		var out bytes.Buffer
		w, err := contact.NewCSVWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(entries...); err != nil {
			t.Fatal(err)
		}
		again, wrong, err := readCSV(out.String())
		if diff := cmp.Diff(entries, again); diff != "" || wrong != nil || err != nil {
			t.Errorf("what was written reads back differently: %v, %v (-want +got):\n%s", err, wrong, diff)
		}
	})
}
