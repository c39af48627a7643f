package extract

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/triage/signal"
	"github.com/countersign-dev/countersign/internal/triage/span"
)

var (
	// holdForm is how long a code holds.
	holdForm = regexp.MustCompile(`(?i)(\d{1,3})\s*(minut|min\b|stunde|hour|heure|hora|分|時間)`)
	// bookedForm are words of a booking.
	bookedForm = regexp.MustCompile(`(?i)\b(?:check-?in|check-?out|your stay|your flight|your booking|reservation confirmed|anreise|abflug)\b`)
	// japaneseForm is a code behind its Japanese name, which has no spaces.
	japaneseForm = regexp.MustCompile(`(?:認証|確認|セキュリティ)コード[^0-9\n]{0,12}([0-9]{4,8})`)
)

// usualHold is how long a code holds that names no time, and maxHold the longest.
const (
	usualHold = 15 * time.Minute
	maxHold   = 24 * time.Hour
)

// OneTimeCode returns the one-time code in a mail and when it ends. It is computed for
// each reader and never stored. sender is an address.
func OneTimeCode(sender, subject, body string, sent time.Time) (Finding, bool) {
	_, domain, _ := strings.Cut(sender, "@")
	if domain == "" || signal.Freemail(domain) {
		return Finding{}, false
	}
	var own strings.Builder // the body with spaces in place of quoted lines
	for l := range strings.Lines(clip(body, maxBody)) {
		if strings.HasPrefix(strings.TrimSpace(l), ">") {
			l = strings.Repeat(" ", len(l)-1) + "\n"
		}
		own.WriteString(l)
	}
	subject = clip(subject, maxLine)
	text := subject + "\n\n" + own.String()
	code, from, to := signal.CodeIn(text)
	if code == "" && strings.Contains(text, "コード") {
		if m := japaneseForm.FindStringSubmatchIndex(text); m != nil {
			code, from, to = text[m[2]:m[3]], m[2], m[3]
		}
	}
	if code == "" || bookedForm.MatchString(text) { // the number of a booking is no code
		return Finding{}, false
	}
	field := Field{Name: "code", Value: code, Part: Body}
	of := subject
	if before := len(subject) + 2; from < before {
		field.Part = Subject
	} else {
		of, from, to = body, from-before, to-before
	}
	if at := (span.Span{From: from, To: to}); strings.HasSuffix(strings.NewReplacer(" ", "", "-", "").Replace(at.Of(of)), code) {
		field.Span = at
	}
	ends := sent.Add(hold(text))
	return Finding{Kind: Code, At: sent, Ends: ends, Fields: []Field{field, {Name: "ends", Value: ends.UTC().Format(time.RFC3339), Part: Header}}}, true
}

// hold returns how long a code holds.
func hold(text string) time.Duration {
	m := holdForm.FindStringSubmatch(text)
	if m == nil {
		return usualHold
	}
	n, _ := strconv.Atoi(m[1]) // at most three digits
	unit := time.Minute
	if low := strings.ToLower(m[2]); strings.HasPrefix(low, "h") || strings.HasPrefix(low, "s") || low == "時間" {
		unit = time.Hour
	}
	if n == 0 {
		return usualHold
	}
	return min(time.Duration(n)*unit, maxHold)
}
