package model

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/internal/check"
	"github.com/countersign-dev/countersign/internal/visible"
)

const (
	// MaxAudio limits the bytes of a recording.
	MaxAudio = 25 << 20
	// maxTranscript limits the characters of a transcript.
	maxTranscript = 20_000
)

// Recordings returns the extensions of the formats of recordings.
func Recordings() []string {
	return []string{"wav", "flac", "mp3", "mp4", "mpeg", "mpga", "m4a", "ogg", "webm"}
}

// DictationConfig is the model that transcribes recordings.
type DictationConfig struct {
	// Server is a name in Config.Servers; "" means that no model does.
	Server string
	Model  string
}

// Transcriber transcribes recordings. Its server is called under the same guard
// as those of the tiers.
type Transcriber struct {
	host  *host
	model string
}

// OpenTranscriber returns the Transcriber of a configuration, or nil if it has
// none. It does not connect.
func OpenTranscriber(c Config) (*Transcriber, error) { return openTranscriber(c, usualLimits()) }

func openTranscriber(c Config, l limits) (*Transcriber, error) {
	if c.Dictation.Server == "" {
		return nil, nil
	}
	server, ok := c.Servers[c.Dictation.Server]
	if !ok {
		return nil, fmt.Errorf("dictation: unknown server %s", c.Dictation.Server)
	}
	h, err := newHost(c.Dictation.Server, server, l)
	if err != nil {
		return nil, fmt.Errorf("model server %s: %w", c.Dictation.Server, err)
	}
	return &Transcriber{h, c.Dictation.Model}, nil
}

// Close closes idle connections.
func (t *Transcriber) Close() { t.host.client.CloseIdleConnections() }

// Transcribe returns the text of a recording in a format of Recordings. The text
// is data: hidden characters are removed. The error is an *Error.
func (t *Transcriber) Transcribe(ctx context.Context, audio []byte, format string) (string, error) {
	text, err := t.transcribe(ctx, audio, format)
	if e := asError(err); e != nil {
		e.Server, e.Model = t.host.name, t.model
	}
	return text, err
}

func (t *Transcriber) transcribe(ctx context.Context, audio []byte, format string) (string, error) {
	switch {
	case !slices.Contains(Recordings(), format):
		return "", fail(Invalid, "unknown format of a recording")
	case len(audio) == 0:
		return "", fail(Invalid, "the recording is empty")
	case len(audio) > MaxAudio:
		return "", fail(TooLong, "the recording is longer than 25 MiB")
	}
	body, contentType, err := t.form(audio, format)
	if err != nil {
		return "", &Error{Kind: Invalid, Why: "the request cannot be encoded", cause: err}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, t.host.limit.first, errSlow)
	defer cancel()
	status, answer, err := t.host.send(ctx, http.MethodPost, "v1/audio/transcriptions", contentType, body)
	switch {
	case err != nil:
		return "", err
	case status != http.StatusOK:
		return "", failStatus(status)
	}
	return readTranscript(answer)
}

// form returns the body of a request. The name of the file is a constant, since
// servers only read its extension.
func (t *Transcriber) form(audio []byte, format string) (body []byte, contentType string, err error) {
	var b bytes.Buffer
	form := multipart.NewWriter(&b)
	for _, field := range [][2]string{{"model", t.model}, {"response_format", "json"}} {
		if err := form.WriteField(field[0], field[1]); err != nil {
			return nil, "", err
		}
	}
	file, err := form.CreateFormFile("file", "recording."+format)
	if err != nil {
		return nil, "", err
	}
	if _, err := file.Write(audio); err != nil {
		return nil, "", err
	}
	err = form.Close()
	return b.Bytes(), form.FormDataContentType(), err
}

// readTranscript returns the text of an answer.
func readTranscript(answer []byte) (string, error) {
	var a struct {
		Text *string `json:"text"`
		remoteMarks
	}
	switch {
	case check.JSON(answer) != nil || json.Unmarshal(answer, &a) != nil || a.Text == nil:
		return "", &Error{Kind: Invalid, Why: "the answer is not a transcript", answered: true}
	case a.remote():
		return "", refuse(RefusedAnswer, "the answer was made by another host")
	}
	text := strings.TrimSpace(visible.Plain(*a.Text))
	switch {
	case text == "":
		return "", &Error{Kind: Invalid, Why: "the recording has no words", answered: true}
	case utf8.RuneCountInString(text) > maxTranscript:
		return "", &Error{Kind: Invalid, Why: fmt.Sprintf("the transcript is longer than %d characters", maxTranscript), answered: true}
	}
	return text, nil
}
