package subscription

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/approval"
	"github.com/countersign-dev/countersign/internal/action/outbox"
	"github.com/countersign-dev/countersign/internal/redact"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/visible"
)

const (
	// maxShown bounds the arguments in a message, in bytes as sent; Slack accepts
	// 3000 characters in one block.
	maxShown = 2800
	// maxField bounds everything else that is shown of an action.
	maxField = 200
)

// escape escapes a text, so that Slack shows no mention, link or time in it.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// field returns the first line of a text, truncated and escaped.
func field(text string) string {
	line, rest, _ := strings.Cut(visible.Text(text), "\n")
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
	text = escape(visible.Text(pretty.String()))
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

// plainLink reports whether an address may be the target of a button.
func plainLink(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Hostname() != "" && u.User == nil && safehttp.Protected(u)
}

// messageOf returns the channel and ts of a delivery's message, and false if it
// has not been sent.
func messageOf(delivery *outbox.View) (channel, ts string, out bool) {
	r := delivery.Envelope.Result
	if r.ProviderID == nil || r.Status != envelope.StatusSent && r.Status != envelope.StatusConflict {
		return "", "", false
	}
	return strings.Cut(*r.ProviderID, "/")
}

// current reports whether a message, as it was sent, shows the current version of
// an action.
func current(delivery, about *outbox.View) bool {
	return about.Review.Given == 0 && bytes.Contains(delivery.Envelope.Args, []byte(approval.ETag(*about)))
}

// stateOf returns the version of a pending action that a message shows.
func stateOf(about *outbox.View) string {
	return approval.ETag(*about) + "." + strconv.Itoa(about.Review.Given)
}

// HasMessage reports whether one of some deliveries sent the message of an
// interaction. A button in any other message is not Countersign's.
func HasMessage(deliveries []outbox.View, in Interaction) bool {
	for i := range deliveries {
		if channel, ts, out := messageOf(&deliveries[i]); out && channel == in.Channel && ts == in.TS {
			return true
		}
	}
	return false
}

// slackTolerance bounds the difference between a request's time and now.
const slackTolerance = 5 * time.Minute

// VerifySlack reports whether the timestamp and the signature of a request from Slack
// are valid for its unchanged body.
func VerifySlack(secret, timestamp, signature string, body []byte, now time.Time) bool {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || secret == "" || strconv.FormatInt(seconds, 10) != timestamp {
		return false
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > slackTolerance || age < -slackTolerance {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + timestamp + ":"))
	mac.Write(body)
	return hmac.Equal([]byte("v0="+hex.EncodeToString(mac.Sum(nil))), []byte(signature))
}

// SlackInteractionsPath is the path, below the public address, to which Slack sends
// the interactions with messages of a subscription.
func SlackInteractionsPath(id uuid.UUID) string {
	return "/api/v1/slack/interactions/" + id.String()
}
