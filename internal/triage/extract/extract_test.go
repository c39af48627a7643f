package extract_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/extract"
)

// example is a labelled mail.
type example struct {
	name, lang, from, subject, kind string
	date, body                      string
	want                            []wanted
}

// wanted is a finding with the fields that it must have.
type wanted struct {
	kind   extract.Kind
	fields map[string]string
}

// held reports whether an example was held back while the rules were written.
func (e example) held() bool { return sha256.Sum256([]byte(e.name))[0]%3 == 0 }

// raw returns the mail.
func (e example) raw() []byte {
	kind, body := "text/plain", e.body
	switch e.kind {
	case "html":
		kind = "text/html"
	case "ics":
		text, calendar, _ := strings.Cut(e.body, "--- ics\n")
		kind = "multipart/mixed; boundary=edge"
		body = "--edge\nContent-Type: text/plain; charset=utf-8\n\n" + text + "\n--edge\nContent-Type: text/calendar; charset=utf-8\n\n" + calendar + "\n--edge--\n"
	}
	at, err := time.Parse(time.RFC3339, e.date)
	if err != nil {
		panic(err)
	}
	return []byte("From: " + e.from + "\nTo: Ada <ada@tallis.example>\nSubject: " + e.subject + "\nDate: " + at.Format(time.RFC1123Z) + "\nMIME-Version: 1.0\nContent-Type: " + kind + "; charset=utf-8\n\n" + body)
}

// examples reads all labelled mail.
func examples(tb testing.TB) (all []example) {
	tb.Helper()
	files, _ := filepath.Glob("testdata/examples/*.txt")
	seen := map[string]bool{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		for _, part := range strings.Split(string(raw), "=== ")[1:] {
			name, rest, _ := strings.Cut(part, "\n")
			header, body, _ := strings.Cut(rest, "\n\n")
			e := example{name: name, body: strings.TrimRight(body, "\n") + "\n", date: "2026-11-20T09:00:00Z"}
			for l := range strings.SplitSeq(header, "\n") {
				key, value, ok := strings.Cut(l, ": ")
				switch key {
				case "lang":
					e.lang = value
				case "from":
					e.from = value
				case "subject":
					e.subject = value
				case "type":
					e.kind = value
				case "date":
					e.date = value
				case "want":
					fields := strings.Split(value, " | ")
					w := wanted{extract.Kind(fields[0]), map[string]string{}}
					for _, f := range fields[1:] {
						key, value, _ := strings.Cut(f, "=")
						w.fields[key] = value
					}
					e.want = append(e.want, w)
				default:
					ok = false
				}
				if !ok {
					tb.Fatalf("%s: %s: invalid line %q", file, name, l)
				}
			}
			if seen[name] {
				tb.Fatalf("two examples %q", name)
			}
			seen[name] = true
			all = append(all, e)
		}
	}
	return all
}

// find returns the findings in an example, with its code.
func (e example) find() []extract.Finding {
	m := message.Parse(e.raw())
	found := extract.Find(m)
	if len(m.From) > 0 {
		if code, ok := extract.OneTimeCode(m.From[0].Addr, m.Subject, m.Body, m.Date); ok {
			found = append(found, code)
		}
	}
	return found
}

// matches reports whether a finding has all wanted fields. A code is compared without
// its separators.
func (w wanted) matches(f extract.Finding) bool {
	if f.Kind != w.kind {
		return false
	}
	for name, value := range w.fields {
		got := f.Get(name)
		if name == "code" {
			value = strings.NewReplacer(" ", "", "-", "").Replace(value)
		}
		if got != value {
			return false
		}
	}
	return true
}

// score counts right, wrong and missed findings.
type score struct{ right, wrong, missed int }

func (s score) precision() float64 { return float64(s.right) / float64(max(1, s.right+s.wrong)) }
func (s score) recall() float64    { return float64(s.right) / float64(max(1, s.right+s.missed)) }

// evaluate counts the findings of each kind, and describes the mistakes.
func evaluate(all []example) (scores map[extract.Kind]score, mistakes []string) {
	scores = map[extract.Kind]score{}
	for _, e := range all {
		left := slices.Clone(e.want)
		for _, f := range e.find() {
			s := scores[f.Kind]
			if i := slices.IndexFunc(left, func(w wanted) bool { return w.matches(f) }); i >= 0 {
				left = slices.Delete(left, i, i+1)
				s.right++
			} else {
				s.wrong++
				mistakes = append(mistakes, fmt.Sprintf("%s: wrong %s %+v", e.name, f.Kind, f.Fields))
			}
			scores[f.Kind] = s
		}
		for _, w := range left {
			s := scores[w.kind]
			s.missed++
			scores[w.kind] = s
			mistakes = append(mistakes, fmt.Sprintf("%s: missed %s %v", e.name, w.kind, w.fields))
		}
	}
	return scores, mistakes
}

var update = flag.Bool("update", false, "write the golden file")

// TestFigures measures the labelled examples, those that the rules were tuned on and
// those held back, each kind with a precision of at least .95 at a recall of .80.
func TestFigures(t *testing.T) {
	t.Parallel()
	var parts [2][]example
	negatives := [2]int{}
	for _, e := range examples(t) {
		i := 0
		if e.held() {
			i = 1
		}
		parts[i] = append(parts[i], e)
		if len(e.want) == 0 {
			negatives[i]++
		}
	}
	var b strings.Builder
	for i, name := range []string{"tuned", "held back"} {
		fmt.Fprintf(&b, "%s: %d mails, %d without a finding\n", name, len(parts[i]), negatives[i])
		scores, mistakes := evaluate(parts[i])
		for _, k := range extract.Kinds() {
			s := scores[k]
			fmt.Fprintf(&b, "  %-8s right %2d wrong %d missed %d precision %.3f recall %.3f\n", k, s.right, s.wrong, s.missed, s.precision(), s.recall())
			if s.precision() < .95 || s.recall() < .80 {
				t.Errorf("%s: %s has precision %.3f and recall %.3f, want .95 and .80", name, k, s.precision(), s.recall())
			}
		}
		for _, m := range mistakes {
			t.Log(m)
		}
	}
	t.Log(b.String())
	const golden = "testdata/figures.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("figures (-want +got):\n%s", diff)
	}
}
