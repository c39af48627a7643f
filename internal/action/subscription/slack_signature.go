package subscription

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"
)

// SlackTolerance bounds the difference between a request's time and now.
const SlackTolerance = 5 * time.Minute

// ErrSignature is the error of a request without a valid signature or with a
// wrong time. It does not say which.
var ErrSignature = errors.New("the request is not signed, or not now")

// VerifySlack checks the timestamp and the signature of a request from Slack over
// its unchanged body. An error is ErrSignature.
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
