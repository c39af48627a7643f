package message

import (
	"strings"
	"unicode/utf8"
)

// answerPrefixes are the prefixes that mail programs add to the subject of
// replies and forwarded mail.
var answerPrefixes = map[string]bool{
	"re": true, "fw": true, "fwd": true, "aw": true, "wg": true, "tr": true, "sv": true, "vs": true, "rv": true,
	"antw": true, "antwort": true, "odp": true, "ref": true, "rif": true, "res": true, "enc": true, "vb": true, "i": true,
	"r": true, "vl": true, "doorst": true, "ynt": true, "ilt": true, "yn": true, "vá": true, "továbbítás": true, "pd": true,
	"fs": true, "bls": true, "trs": true, "σχετ": true, "πρθ": true, "回复": true, "答复": true, "回覆": true, "转发": true,
	"轉寄": true, "返信": true, "転送": true, "отв": true, "на": true, "atb": true,
}

// ThreadSubject normalises a subject for comparing messages of one thread:
// without the prefixes of replies and forwarded mail, without the leading tag
// of a mailing list, folded.
func ThreadSubject(subject string) string {
	subject = Fold(subject)
	for {
		before := subject
		subject = strings.TrimSpace(withoutPrefix(subject))
		if rest, tagged := withoutTag(subject); tagged && rest != "" {
			subject = rest
		}
		if subject == before {
			return subject
		}
	}
}

// withoutPrefix removes one prefix, which may be numbered as in "Re[2]:".
func withoutPrefix(subject string) string {
	const longest = 24
	i := strings.IndexAny(subject, ":：")
	if i <= 0 || i > longest {
		return subject
	}
	prefix := strings.TrimRight(strings.TrimSpace(subject[:i]), "0123456789[]()^* ")
	if !answerPrefixes[prefix] {
		return subject
	}
	_, size := utf8.DecodeRuneInString(subject[i:])
	return subject[i+size:]
}

// withoutTag removes a name in brackets at the beginning.
func withoutTag(subject string) (string, bool) {
	const longest = 40
	if !strings.HasPrefix(subject, "[") {
		return subject, false
	}
	end := strings.IndexByte(subject, ']')
	if end < 0 || end > longest {
		return subject, false
	}
	return strings.TrimSpace(subject[end+1:]), true
}
