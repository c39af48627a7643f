package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"strings"
	"time"
)

// ErrAbsent is returned if a folder does not contain the requested set.
var ErrAbsent = errors.New("the set is not in the folder")

// fields is a message of a labelled set that has no headers of its own.
type fields struct {
	ID       string   `json:"id"`
	Sender   string   `json:"sender"`
	To       []string `json:"to"`
	Cc       []string `json:"cc"`
	Subject  string   `json:"subject"`
	Date     string   `json:"date"`
	Body     string   `json:"body"`
	Category string   `json:"category"`
	Phishing bool     `json:"is_phishing"`
}

// Messages reads mail-labelled/messages.jsonl of a folder: priorities, and
// whether a message is unwanted. Without that file it reads the messages with a
// priority in files of their own.
func Messages(files fs.FS) (Source, error) {
	source := Source{Name: NameMessages, Licence: "MIT"}
	data, err := readSet(files, "mail-labelled/messages.jsonl", &source)
	if errors.Is(err, ErrAbsent) {
		source.Licence = ""
		return filed(files, source, func(l Labels) bool { return l.Priority != "" })
	}
	if err != nil {
		return source, err
	}
	err = lines(data, func(line []byte) error {
		var f fields
		if err := json.Unmarshal(line, &f); err != nil {
			return err
		}
		owner := ""
		if len(f.To) > 0 {
			owner = f.To[0]
		}
		priority := strings.ToLower(f.Category)
		source.Examples = append(source.Examples, Example{
			ID: f.ID, Raw: f.raw(), Owner: owner,
			Labels: Labels{Priority: priority, Unwanted: new(f.Phishing)},
		})
		return nil
	})
	if err != nil {
		return source, fmt.Errorf("messages.jsonl: %w", err)
	}
	return source, nil
}

// Phishing reads mail-labelled/phishing.json of a folder, or else the messages
// in files of their own that are labelled as phishing or not.
func Phishing(files fs.FS) (Source, error) {
	source := Source{Name: NamePhishing, Licence: "MIT"}
	data, err := readSet(files, "mail-labelled/phishing.json", &source)
	if errors.Is(err, ErrAbsent) {
		source.Licence = ""
		return filed(files, source, func(l Labels) bool { return l.Phishing != nil })
	}
	if err != nil {
		return source, err
	}
	var all []fields
	if err := json.Unmarshal(data, &all); err != nil {
		return source, fmt.Errorf("phishing.json: %w", err)
	}
	for _, f := range all {
		source.Examples = append(source.Examples, Example{
			ID: f.ID, Raw: f.raw(), Labels: Labels{Phishing: new(f.Phishing)},
		})
	}
	return source, nil
}

// Requests reads request-sentences/train.tsv of a folder.
func Requests(files fs.FS) (Source, error) {
	source := Source{Name: NameRequests, Licence: "Apache-2.0"}
	data, err := readSet(files, "request-sentences/train.tsv", &source)
	if err != nil {
		return source, err
	}
	err = lines(data, func(line []byte) error {
		example, err := parseSentence(line)
		source.Examples = append(source.Examples, example)
		return err
	})
	if err != nil {
		return source, fmt.Errorf("train.tsv: %w", err)
	}
	return source, nil
}

func parseSentence(line []byte) (Example, error) {
	label, sentence, ok := strings.Cut(string(line), "\t")
	if !ok || label != "Yes" && label != "No" {
		return Example{}, errors.New("want Yes or No, a tab and a sentence")
	}
	return Example{ID: sentence, Sentence: sentence, Labels: Labels{Request: new(label == "Yes")}}, nil
}

func readSet(files fs.FS, name string, source *Source) ([]byte, error) {
	data, err := fs.ReadFile(files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", name, ErrAbsent)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	digest := newDigest()
	_, _ = digest.Write(data)
	source.Digest = hexDigest(digest)
	return data, nil
}

// raw writes the message in RFC 5322 format with the known headers.
func (f fields) raw() []byte {
	var b bytes.Buffer
	header := func(name, value string) {
		if value == "" {
			return
		}
		value = strings.Join(strings.Fields(value), " ")
		fmt.Fprintf(&b, "%s: %s\r\n", name, value)
	}
	header("From", encodeName(f.Sender))
	header("To", strings.Join(f.To, ", "))
	header("Cc", strings.Join(f.Cc, ", "))
	if at, err := time.Parse(time.RFC3339, f.Date); err == nil {
		header("Date", at.Format(time.RFC1123Z))
	} else {
		header("Date", f.Date)
	}
	header("Subject", mime.QEncoding.Encode("utf-8", strings.Join(strings.Fields(f.Subject), " ")))
	header("MIME-Version", "1.0")
	header("Content-Type", "text/plain; charset=utf-8")
	header("Content-Transfer-Encoding", "8bit")
	b.WriteString("\r\n")
	b.WriteString(strings.ReplaceAll(strings.ReplaceAll(f.Body, "\r\n", "\n"), "\n", "\r\n"))
	return b.Bytes()
}

// encodeName encodes the display name of an address if it is not ASCII.
func encodeName(address string) string {
	name, rest, ok := strings.Cut(address, "<")
	if !ok || strings.IndexFunc(name, func(r rune) bool { return r > 126 }) < 0 {
		return address
	}
	return mime.QEncoding.Encode("utf-8", strings.TrimSpace(strings.Trim(strings.TrimSpace(name), `"`))) + " <" + rest
}
