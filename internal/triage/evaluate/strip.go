package evaluate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/message"
)

// evaluateStripping measures whether the body of replies from a dozen mail
// clients is exactly the new text of their authors.
func (r *run) evaluateStripping(context.Context) error {
	if r.Corpus == nil {
		return nil
	}
	plain, err := replies(r.Corpus, "replies/talon/standard_replies", ".eml", func(data []byte) []byte { return data }, "Hello")
	if err != nil {
		return err
	}
	html, err := replies(r.Corpus, "replies/talon/html_replies", ".html", asMail, "Hi.Iamfine.")
	if err != nil {
		return err
	}
	if plain.of+html.of == 0 {
		r.report.Absent = append(r.report.Absent, "replies/talon")
		return nil
	}
	r.add(Section{
		Set: "replies/talon", Mode: Rules, Examples: plain.of + html.of,
		Figures: []Figure{plain.figure("plain replies exact", 1), html.figure("HTML replies exact", 1)},
		Note:    "what remains, without white space, is what was written; a closing and a name may remain too",
	})
	return nil
}

func asMail(html []byte) []byte {
	const header = "From: a@example.org\r\nTo: b@example.org\r\nSubject: Re: x\r\nMIME-Version: 1.0\r\n" +
		"Content-Type: text/html; charset=utf-8\r\n\r\n"
	return append([]byte(header), html...)
}

// replies counts the files of a folder whose body is the wanted text.
func replies(files fs.FS, folder, suffix string, mail func([]byte) []byte, want string) (share, error) {
	var s share
	entries, err := fs.ReadDir(files, folder)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("list %s: %w", folder, err)
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), suffix) {
			continue
		}
		data, err := fs.ReadFile(files, folder+"/"+entry.Name())
		if err != nil {
			return s, err
		}
		got := strings.Join(strings.Fields(message.Parse(mail(data)).Body), "")
		s.add(got == want || got == want+"Thanks,Alex")
	}
	return s, nil
}
