package lookalike

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of the names that are found in arguments.
const (
	maxNames     = 1_000
	maxText      = 64 << 10
	maxTexts     = 256 << 10
	maxDepth     = 32
	maxName      = 320
	maxHost      = 253
	schemeSuffix = "://"
)

// Name is a mail address or a host in a value.
type Name struct {
	// Pointer is the JSON Pointer of the value, or of the member whose name it is.
	Pointer string
	// Written is the name in the value; Local and Host are its parts, in lower case
	// and with letters in place of punycode. Local is empty for a host.
	Written, Local, Host string
	// Claimed is another address or host that stands before it, as the name of a
	// person or as the user of a URL.
	Claimed string
	// Bare reports whether nothing but its form makes it a host, Beside whether it
	// is Claimed of another name.
	Bare, Beside bool
}

// escape escapes a name for a JSON Pointer (RFC 6901).
var escape = strings.NewReplacer("~", "~0", "/", "~1")

// Names returns the mail addresses and hosts in arguments, at most 1,000.
func Names(args json.RawMessage) []Name {
	var value any
	if json.Unmarshal(args, &value) != nil {
		return nil
	}
	f := &names{left: maxTexts}
	f.value("", value, 0)
	return f.found
}

type names struct {
	found []Name
	left  int
	// title reports whether the text stands before an address in brackets.
	title bool
}

func (f *names) value(pointer string, value any, depth int) {
	if depth > maxDepth || len(f.found) >= maxNames {
		return
	}
	switch v := value.(type) {
	case string:
		f.text(pointer, v)
	case []any:
		for i, item := range v {
			f.value(pointer+"/"+strconv.Itoa(i), item, depth+1)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := pointer + "/" + escape.Replace(name)
			f.text(at, name)
			f.value(at, v[name], depth+1)
		}
	}
}

// add adds a name with a valid host.
func (f *names) add(n Name) {
	n.Local = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cc, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, n.Local)
	n.Host = hostOf(n.Host)
	if len(f.found) >= maxNames || len(n.Written) > maxName || n.Host == "" || len(n.Host) > maxHost {
		return
	}
	f.found = append(f.found, n)
}

// hostOf returns a host in lower case, with letters; "" if it has no dot or no
// letter.
func hostOf(text string) string {
	if strings.Contains(text, "%") {
		if plain, err := url.PathUnescape(text); err == nil && utf8.ValidString(plain) {
			text = plain
		}
	}
	text = strings.ToLower(strings.Map(func(r rune) rune {
		switch {
		case r == '。' || r == '．' || r == '｡':
			return '.'
		case unicode.Is(unicode.Cc, r):
			return -1
		}
		return r
	}, text))
	text = Shown(strings.Trim(text, ".-"))
	if !strings.Contains(text, ".") || strings.Contains(text, "..") || !strings.ContainsFunc(text, unicode.IsLetter) {
		return ""
	}
	return text
}

func (f *names) text(pointer, text string) {
	text = text[:min(len(text), maxText, f.left)]
	f.left -= len(text)
	if text = strings.ToValidUTF8(text, ""); !strings.ContainsAny(text, ".。．｡") {
		return
	}
	before, authority := len(f.found), 0
	for at := 0; at < len(text) && len(f.found) < maxNames; at++ {
		switch {
		case text[at] == '@' && at >= authority:
			f.address(pointer, text, at)
		case strings.HasPrefix(text[at:], schemeSuffix):
			at += len(schemeSuffix)
			authority = f.url(pointer, text, at)
			at--
		}
	}
	if whole := strings.TrimSpace(text); len(f.found) == before && bare(whole) {
		f.add(Name{Pointer: pointer, Written: whole, Host: whole, Bare: true})
	}
}

// address adds the mail address around an @, and the one before it in brackets.
func (f *names) address(pointer, text string, at int) {
	begin := at
	for begin > 0 {
		r, size := utf8.DecodeLastRuneInString(text[:begin])
		if unicode.IsSpace(r) || strings.ContainsRune(`<>()[],;:"'@\/=?&|`, r) {
			break
		}
		begin -= size
	}
	end := at + 1
	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
		if !inHost(r) {
			break
		}
		end += size
	}
	written := strings.TrimRight(text[begin:end], ".-")
	local, host, ok := strings.Cut(written, "@")
	if !ok || local == "" {
		return
	}
	n := Name{Pointer: pointer, Written: written, Local: local, Host: host}
	if title, bracket := strings.CutSuffix(text[max(0, begin-maxName):begin], "<"); bracket && !f.title {
		title = title[strings.LastIndexAny(title, ",;>\n")+1:]
		inTitle := &names{left: maxName, title: true}
		if strings.Contains(title, "@") {
			inTitle.text("", title)
		}
		if len(inTitle.found) > 0 && !strings.EqualFold(inTitle.found[0].Written, written) {
			n.Claimed = inTitle.found[0].Written
			if last := len(f.found) - 1; last >= 0 && f.found[last].Written == n.Claimed {
				f.found[last].Beside = true
			}
		}
	}
	f.add(n)
}

// url adds the host of a URL whose authority begins at a place, and returns its end.
func (f *names) url(pointer, text string, begin int) int {
	end := begin
	for end < len(text) {
		r, size := utf8.DecodeRuneInString(text[end:])
		if unicode.IsSpace(r) || strings.ContainsRune(`/\?#"'<>()`, r) {
			break
		}
		end += size
	}
	authority := text[begin:end]
	n := Name{Pointer: pointer, Written: authority, Host: authority}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		n.Written, n.Host = authority[i+1:], authority[i+1:]
		if user, _, _ := strings.Cut(authority[:i], ":"); strings.Contains(user, ".") {
			n.Claimed = user
		}
	}
	if host, port, ok := strings.Cut(n.Host, ":"); ok && strings.Trim(port, "0123456789") == "" {
		n.Written, n.Host = host, host
	}
	n.Written, n.Host = strings.TrimRight(n.Written, ".,;:!"), strings.TrimRight(n.Host, ".,;:!")
	f.add(n)
	return end
}

func inHost(r rune) bool {
	return r == '-' || r == '.' || r == '_' || r == '。' || r == '．' || r == '｡' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r) || unicode.Is(unicode.Cf, r)
}

// bare reports whether a whole value has the form of a host under a top-level domain of
// letters.
func bare(text string) bool {
	if len(text) > maxHost || strings.ContainsFunc(text, func(r rune) bool { return !inHost(r) || r == '_' }) {
		return false
	}
	host := hostOf(text)
	return host != "" && !strings.HasPrefix(text, ".") && len(TopLevel(host)) > 1 && !strings.ContainsFunc(TopLevel(host), unicode.IsDigit)
}
