// Package webhook is the source of one tool that delivers messages to an address
// of the tenant. They are signed according to Standard Webhooks, with a message
// id that is the same for every attempt, so that the receiver can detect
// duplicates. Requests are sent only to the configured address.
package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/source/rest"
)

// ToolDeliver delivers one message.
const ToolDeliver = "deliver"

// defaultTimeout bounds one delivery.
const defaultTimeout = 15 * time.Second

// maxAnswer bounds the part of an answer that is read; only the status is used.
const maxAnswer = 64 << 10

// Config configures a source of one receiver.
type Config struct {
	// Name is the source's name in errors.
	Name string
	// URL is the receiver's address: https, or http to a loopback address.
	URL string
	// Secrets sign each message, the current one first; at least one. Include
	// the previous one until the receiver uses the new one.
	Secrets []rest.Secret
	// Networks are allowed in addition to the public internet, such as
	// 10.1.0.0/16.
	Networks []netip.Prefix
	// Timeout bounds one delivery; 0 means defaultTimeout.
	Timeout time.Duration
	// Transport sends the requests in tests; nil means one that connects only as
	// Networks allows.
	Transport http.RoundTripper
}

// CheckURL checks a receiver's address. The error is fault.Invalid and does not
// repeat it.
func CheckURL(address string) error {
	_, err := parseURL(address)
	return err
}

func parseURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Opaque != "":
		return nil, fault.New(fault.Invalid, "must be an absolute address without user and fragment")
	case !safehttp.Protected(u):
		return nil, fault.New(fault.Invalid, "must be https; http is allowed for the local machine only: localhost, 127.0.0.1 or [::1]")
	}
	return u, nil
}

// New returns a source for the receiver in cfg. It checks cfg and does not
// connect yet. The error is fault.Invalid.
func New(cfg Config) (*rest.Source, error) {
	at, err := parseURL(cfg.URL)
	if err != nil {
		return nil, fault.New(fault.Invalid, "webhook source %s: url %s", cfg.Name, err)
	}
	sign, err := newSigner(cfg.Secrets)
	if err != nil {
		return nil, fault.New(fault.Invalid, "webhook source %s: %s", cfg.Name, err)
	}
	guard := safehttp.Guard{Networks: cfg.Networks, LoopbackOnly: at.Scheme == "http"}
	if err := guard.Check(); err != nil {
		return nil, fault.New(fault.Invalid, "webhook source %s: %s", cfg.Name, err)
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	r := &receiver{
		client: rest.New(cfg.Name, rest.Config{
			Guard: guard, Transport: cfg.Transport, CallTimeout: cfg.Timeout, MaxBodyBytes: maxAnswer,
		}),
		at: cfg.URL, sign: sign,
	}
	return rest.ParseSource(r.client, document, map[string]rest.Run{ToolDeliver: r.deliver})
}

// receiver is the receiver of messages.
type receiver struct {
	client *rest.Client
	at     string
	sign   signer
}

// document defines the tool. It allows additional members of data, for new
// versions.
//
//go:embed tools.json
var document []byte

// deliver sends the arguments unchanged. The headers count the attempts, and how
// often people had the message sent again. It ignores the body of the answer: any
// status 2xx accepts the message.
func (r *receiver) deliver(ctx context.Context, call source.Call) source.Observation {
	now := time.Now()
	header := http.Header{
		"Content-Type":        {"application/json"},
		"Webhook-Id":          {call.Key},
		"Webhook-Timestamp":   {strconv.FormatInt(now.Unix(), 10)},
		"Webhook-Signature":   {r.sign.header(call.Key, now, call.Args)},
		"Countersign-Attempt": {strconv.Itoa(call.Attempt)},
	}
	if call.Repeat > 0 {
		header.Set("Countersign-Resend", strconv.Itoa(call.Repeat))
	}
	reply := r.client.Send(ctx, rest.Request{Method: http.MethodPost, URL: r.at, Body: call.Args, Header: header})
	o := reply.Observe()
	o.Result = nil
	switch {
	case reply.Succeeded():
		o.Answered, o.Code = true, ""
		o.Result = json.RawMessage(`{"status":` + strconv.Itoa(reply.Status) + `}`)
	case reply.Status == http.StatusGone:
		o = o.Permanently(source.CodeGone)
		o.Message = "the receiver wants no more messages"
	}
	return o
}

// Bounds of a signing secret, in bytes, and its prefix.
const (
	minSecret    = 24
	maxSecret    = 64
	secretPrefix = "whsec_"
)

// CheckSecret checks the text of a signing secret. The error is fault.Invalid
// and does not repeat it.
func CheckSecret(text string) error {
	_, err := parseSecret(text)
	return err
}

func parseSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(text, secretPrefix)
	key, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
		return nil, fault.New(fault.Invalid, "a signing secret must be whsec_ and 24 to 64 bytes in base64; make one with: echo whsec_$(openssl rand -base64 32)")
	}
	return key, nil
}

// signer signs with all secrets of a receiver. It prints as the address of a
// function.
type signer struct{ macs func(content string) [][]byte }

func newSigner(secrets []rest.Secret) (signer, error) {
	if len(secrets) == 0 {
		return signer{}, fault.New(fault.Invalid, "needs a signing secret")
	}
	keys := make([][]byte, len(secrets))
	for i, s := range secrets {
		var err error
		if keys[i], err = parseSecret(s.Reveal()); err != nil {
			return signer{}, err
		}
	}
	return signer{func(content string) [][]byte {
		sums := make([][]byte, len(keys))
		for i, key := range keys {
			mac := hmac.New(sha256.New, key)
			mac.Write([]byte(content))
			sums[i] = mac.Sum(nil)
		}
		return sums
	}}, nil
}

// header returns the value of webhook-signature: one signature per secret,
// separated by spaces.
func (s signer) header(id string, at time.Time, body []byte) string {
	var signatures []string
	for _, sum := range s.macs(id + "." + strconv.FormatInt(at.Unix(), 10) + "." + string(body)) {
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(sum))
	}
	return strings.Join(signatures, " ")
}
