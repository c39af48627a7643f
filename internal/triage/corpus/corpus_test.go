package corpus_test

import (
	"bytes"
	"errors"
	"io/fs"
	"net/mail"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/countersign-dev/countersign/internal/triage/corpus"
)

func TestOwn(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"a.jsonl": {Data: []byte(`{"id":"1","raw":"Subject: x\n\nbody\n","owner":"o@a.example","labels":{"act":"fyi","unwanted":false},"second":{"act":"deliver"}}` + "\n\n")},
		"b.tsv":   {Data: []byte("Yes\tCan you send it?\nNo\tIt was sent.\n")},
		"c.txt":   {Data: []byte("not read")},
	}

	got, err := corpus.Own(files, "own")

	if err != nil || len(got.Examples) != 3 {
		t.Fatalf("Own = %d examples, %v, want 3", len(got.Examples), err)
	}
	first := got.Examples[0]
	if string(first.Raw) != "Subject: x\r\n\r\nbody\r\n" || first.Labels.Act != "fyi" || *first.Labels.Unwanted || first.Second.Act != "deliver" {
		t.Errorf("first example = %+v", first)
	}
	if second := got.Examples[1]; second.Sentence != "Can you send it?" || !*second.Labels.Request || second.Raw != nil {
		t.Errorf("second example = %+v", second)
	}
	if got.Digest == "" {
		t.Error("the source has no digest")
	}
}

func TestOwnRefuses(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]fstest.MapFS{
		"no file":          {},
		"no JSON":          {"a.jsonl": {Data: []byte("{")}},
		"no id":            {"a.jsonl": {Data: []byte(`{"raw":"x"}`)}},
		"nothing to label": {"a.jsonl": {Data: []byte(`{"id":"x"}`)}},
		"no answer":        {"a.tsv": {Data: []byte("Maybe\tthis\n")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got, err := corpus.Own(files, "own"); err == nil {
				t.Errorf("Own = %+v, want an error", got)
			}
		})
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"mail-labelled/messages.jsonl": {Data: []byte(
		`{"id":"m","sender":"Zoë Quill <z@b.example>","to":["o@a.example","p@a.example"],"cc":null,"subject":"Grüße\r\nBcc: x@y.example","date":"2026-03-01T09:30:00Z","body":"Hallo\n","category":"NEEDS_RESPONSE","is_phishing":false}`)}}

	got, err := corpus.Messages(files)

	if err != nil || len(got.Examples) != 1 {
		t.Fatalf("Messages = %+v, %v, want one example", got, err)
	}
	e := got.Examples[0]
	m, err := mail.ReadMessage(bytes.NewReader(e.Raw))
	if err != nil {
		t.Fatalf("ReadMessage(%q): %v", e.Raw, err)
	}
	if m.Header.Get("Bcc") != "" {
		t.Error("a line break in the subject became a header")
	}
	from, err := m.Header.AddressList("From")
	if err != nil || from[0].Name != "Zoë Quill" || from[0].Address != "z@b.example" {
		t.Errorf("From = %v, %v", from, err)
	}
	if at, err := m.Header.Date(); err != nil || at.Hour() != 9 {
		t.Errorf("Date = %v, %v", at, err)
	}
	if e.Labels.Priority != "needs_response" || e.Owner != "o@a.example" || *e.Labels.Unwanted {
		t.Errorf("example = %+v", e)
	}
}

func TestAbsentSets(t *testing.T) {
	t.Parallel()
	empty := fstest.MapFS{}
	for name, read := range map[string]func() error{
		"messages":     func() error { _, err := corpus.Messages(empty); return err },
		"phishing":     func() error { _, err := corpus.Phishing(empty); return err },
		"requests":     func() error { _, err := corpus.Requests(empty); return err },
		"SpamAssassin": func() error { _, err := corpus.SpamAssassin(empty); return err },
	} {
		if err := read(); !errors.Is(err, corpus.ErrAbsent) {
			t.Errorf("%s of an empty folder: %v, want ErrAbsent", name, err)
		}
	}
}

func TestSpamAssassin(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{}
	for _, folder := range []string{"easy-ham-1", "easy-ham-2", "hard-ham-1", "spam-1", "spam-2"} {
		files["data/"+folder+"/1.txt"] = &fstest.MapFile{Data: []byte("From a@b.example Thu Aug 22\nSubject: x\n\ny\n")}
		files["data/"+folder+"/1.json"] = &fstest.MapFile{Data: []byte("{}")}
	}

	got, err := corpus.SpamAssassin(files)

	if err != nil || len(got.Examples) != 5 {
		t.Fatalf("SpamAssassin = %d examples, %v, want 5", len(got.Examples), err)
	}
	for _, e := range got.Examples {
		if *e.Labels.Unwanted != strings.HasPrefix(e.ID, "spam") || !bytes.HasPrefix(e.Raw, []byte("Subject:")) {
			t.Errorf("example = %s %v %q", e.ID, *e.Labels.Unwanted, e.Raw)
		}
	}
}

// TestLabelledLayouts reads the same sets from the layout with a folder for each
// set, from that without, and messages from files.
func TestLabelledLayouts(t *testing.T) {
	t.Parallel()
	const messages = `{"id":"m","sender":"z@b.example","to":["o@a.example"],"subject":"x","body":"y","category":"FYI"}`
	const lures = `[{"id":"p","sender":"x@y.example","subject":"a","body":"verify","is_phishing":true}]`
	mail := func(to string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("From: z@b.example\nTo: " + to + "\nSubject: x\n\ny\n")}
	}
	type found struct{ messages, phishing, requests int }
	for name, row := range map[string]struct {
		files fstest.MapFS
		want  found
	}{
		"a folder for each set": {fstest.MapFS{
			"mail-labelled/messages.jsonl": {Data: []byte(messages)}, "mail-labelled/phishing.json": {Data: []byte(lures)},
			"request-sentences/train.tsv": {Data: []byte("Yes\tCan you?\n")},
		}, found{1, 1, 1}},
		"no folders": {fstest.MapFS{
			"messages.jsonl": {Data: []byte(messages)}, "phishing.json": {Data: []byte(lures)}, "train.tsv": {Data: []byte("Yes\tCan you?\n")},
		}, found{1, 1, 1}},
		"the folder of one set": {fstest.MapFS{"messages.jsonl": {Data: []byte(messages)}}, found{messages: 1}},
		"labels beside messages": {fstest.MapFS{
			"labels.jsonl": {Data: []byte(`{"file":"in/1.eml","owner":"o@a.example","labels":{"priority":"urgent","phishing":false}}` + "\n" + `{"file":"2","labels":{"phishing":true}}`)},
			"in/1.eml":     mail("x@a.example"), "2": mail("o@a.example"),
		}, found{messages: 1, phishing: 2}},
		"files by class": {fstest.MapFS{
			"urgent/1.eml": mail("o@a.example"), "urgent/notes.txt": mail("o@a.example"), "fyi/cur/17.M1:2,S": mail("o@a.example"), "fyi/new/18.M2": mail("o@a.example"),
			"fyi/tmp/19": mail("o@a.example"), "phishing/3.eml": mail("o@a.example"), "harmless/4.eml": mail("o@a.example"),
		}, found{messages: 3, phishing: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, err := corpus.Labelled(row.files)
			if err != nil {
				t.Fatal(err)
			}
			count := func(read func(fs.FS) (corpus.Source, error)) int {
				source, err := read(files)
				if err != nil && !errors.Is(err, corpus.ErrAbsent) {
					t.Fatal(err)
				}
				for _, e := range source.Examples {
					if e.Labels.Priority != "" && e.Owner != "o@a.example" {
						t.Errorf("the owner of %s is %q, want o@a.example", e.ID, e.Owner)
					}
				}
				return len(source.Examples)
			}

			got := found{count(corpus.Messages), count(corpus.Phishing), count(corpus.Requests)}

			if got != row.want {
				t.Errorf("read %+v, want %+v", got, row.want)
			}
		})
	}
}

func TestFolderWithoutASetIsAnError(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		files fstest.MapFS
		want  string
	}{
		"empty":         {fstest.MapFS{}, "mail-labelled/messages.jsonl"},
		"other mail":    {fstest.MapFS{"inbox/1.eml": {}, "urgent/readme.txt": {}}, "by class: urgent, needs_response"},
		"another layer": {fstest.MapFS{"data/mail-labelled/messages.jsonl": {}}, "files of messages with labels.jsonl"},
	} {
		if _, err := corpus.Labelled(row.files); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: Labelled = %v, want an error with %q", name, err, row.want)
		}
	}
	for name, list := range map[string]string{"a missing file": `{"file":"1.eml","labels":{"priority":"fyi"}}`, "a file elsewhere": `{"file":"../1.eml","labels":{"priority":"fyi"}}`, "no JSON": `{`} {
		files := fstest.MapFS{"labels.jsonl": {Data: []byte(list)}}
		if _, err := corpus.Messages(files); err == nil || errors.Is(err, corpus.ErrAbsent) {
			t.Errorf("labels.jsonl with %s: %v, want an error", name, err)
		}
	}
}
