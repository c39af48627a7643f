package subscription

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"
)

// SlackTolerance is how far a request's time may be from now.
const SlackTolerance = 5 * time.Minute

// ErrSignature says that a request did not come from the Slack app that it
// claims to be of, or not now. Which of them is not told.
var ErrSignature = errors.New("the request is not signed, or not now")

// VerifySlack checks that a request came from Slack just now: the time and the
// signature that its headers say, over its body as it came. An error is
// ErrSignature.
func VerifySlack(secret, timestamp, signature string, body []byte, now time.Time) error {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || secret == "" || strconv.FormatInt(seconds, 10) != timestamp {
		return ErrSignature
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > SlackTolerance || age < -SlackTolerance {
		return ErrSignature
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + timestamp + ":"))
	mac.Write(body)
	if !hmac.Equal([]byte("v0="+hex.EncodeToString(mac.Sum(nil))), []byte(signature)) {
		return ErrSignature
	}
	return nil
}
