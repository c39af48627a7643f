package subscription

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/redact"
)

const (
	// maxShown bounds the arguments in a message, in bytes of what Slack gets;
	// Slack itself takes 3000 characters in one place.
	maxShown = 2800
	// maxField bounds everything else that is shown of an action.
	maxField = 200
)

// escape escapes a text, so that Slack shows no mention, link or time in it.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// visible replaces invisible characters by their codes: characters of no width,
// that change the direction of text, or that look like a space.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == ' ' || unicode.IsPrint(r) && r != '\u2800' && r != '\u3164' && r != '\uffa0' && !unicode.Is(unicode.Variation_Selector, r):
			b.WriteRune(r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// field returns the first line of a text, truncated and escaped.
func field(text string) string {
	line, rest, _ := strings.Cut(visible(text), "\n")
	if len(line) > maxField {
		cut := maxField
		for !utf8.RuneStart(line[cut]) {
			cut--
		}
		line, rest = line[:cut], "…"
	}
	if rest != "" {
		line += "…"
	}
	return escape(line)
}

// shownArgs formats arguments for a person. whole reports whether nothing was
// truncated and nothing redacted.
func shownArgs(args json.RawMessage) (text string, whole bool) {
	clean := redact.JSON(args)
	whole = bytes.Equal(clean, args)
	var pretty bytes.Buffer
	if json.Indent(&pretty, clean, "", "  ") != nil {
		return "", false
	}
	text = escape(visible(pretty.String()))
	if len(text) <= maxShown {
		return text, whole
	}
	cut := maxShown
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	// Not within an escape sequence.
	if at := strings.LastIndexByte(text[:cut], '&'); at >= 0 && cut-at < len("&amp;") {
		cut = at
	}
	return text[:cut] + "…", false
}

// plainLink reports whether an address may stand behind a button.
func plainLink(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return false
	}
	addr, err := netip.ParseAddr(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || err == nil && addr.IsLoopback())
}
