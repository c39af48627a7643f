package model_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-dev/countersign/internal/triage/model"
)

// dictation returns the configuration of a server that transcribes recordings by the documented protocol: a
// form with the file, the model and the format of the answer, and a JSON object
// with the text.
func dictation(t *testing.T, answer http.HandlerFunc) model.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/v1/audio/transcriptions" {
			http.Error(w, `{"detail":"Not Found"}`, http.StatusNotFound)
			return
		}
		if r.ParseMultipartForm(model.MaxAudio) != nil || r.FormValue("model") == "" {
			http.Error(w, `{"error":{"message":"model is required"}}`, http.StatusUnprocessableEntity)
			return
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return model.Config{
		Servers:   map[string]model.ServerConfig{"here": {URL: server.URL + "/v1"}},
		Dictation: model.DictationConfig{Server: "here", Model: "whisper-small"},
	}
}

func transcriber(t *testing.T, c model.Config) *model.Transcriber {
	t.Helper()
	tr, err := model.OpenTranscriber(c)
	if err != nil || tr == nil {
		t.Fatalf("OpenTranscriber() = %v, %v", tr, err)
	}
	t.Cleanup(tr.Close)
	return tr
}

func answers(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestTranscribe(t *testing.T) {
	t.Parallel()
	c := dictation(t, func(w http.ResponseWriter, r *http.Request) {
		f, header, err := r.FormFile("file")
		if err != nil {
			http.Error(w, `{"error":{"message":"file is required"}}`, http.StatusBadRequest)
			return
		}
		audio, _ := io.ReadAll(f)
		if r.FormValue("model") != "whisper-small" || r.FormValue("response_format") != "json" || path.Ext(header.Filename) != ".wav" || string(audio) != "RIFF" {
			t.Errorf("the form has %v, file %q with %q", r.Form, header.Filename, audio)
		}
		answers(http.StatusOK, `{"text":" Tuesday at ten.\u001b[2J\u202e\n","task":"transcribe"}`)(w, r)
	})

	got, err := transcriber(t, c).Transcribe(t.Context(), []byte("RIFF"), "wav")

	if want := "Tuesday at ten.[2J"; err != nil || got != want {
		t.Errorf("Transcribe() = %q, %v, want %q", got, err, want)
	}
}

func TestTranscribeWithFaults(t *testing.T) {
	t.Parallel()
	elsewhere, reached := elsewhere(t)
	for name, row := range map[string]struct {
		answer http.HandlerFunc
		want   model.Kind
	}{
		"a status of the server's own": {answers(http.StatusTeapot, `{"text":"x"}`), model.Invalid},
		"loading":                      {answers(http.StatusServiceUnavailable, `{"error":"loading"}`), model.Unavailable},
		"no such model":                {answers(http.StatusNotFound, `{"error":{"message":"no model"}}`), model.WrongModel},
		"too long":                     {answers(http.StatusRequestEntityTooLarge, ``), model.TooLong},
		"not JSON":                     {answers(http.StatusOK, `Tuesday`), model.Invalid},
		"no text":                      {answers(http.StatusOK, `{"transcription":"Tuesday"}`), model.Invalid},
		"another type":                 {answers(http.StatusOK, `{"text":["Tuesday"]}`), model.Invalid},
		"text twice":                   {answers(http.StatusOK, `{"text":"a","text":"b"}`), model.Invalid},
		"no words":                     {answers(http.StatusOK, `{"text":" \u200b "}`), model.Invalid},
		"a long transcript":            {answers(http.StatusOK, `{"text":"`+strings.Repeat("w ", 20_000)+`"}`), model.Invalid},
		"a huge answer":                {answers(http.StatusOK, `{"text":"`+strings.Repeat("w", 3<<20)+`"}`), model.Invalid},
		"an answer from elsewhere":     {answers(http.StatusOK, `{"text":"a","remote_host":"https://example.com"}`), model.Remote},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"text":"Tue`)
		}, model.Unavailable},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+elsewhere.String()+"/", http.StatusTemporaryRedirect)
		}, model.Remote},
		"silence": {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, model.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := transcriber(t, dictation(t, row.answer))
			if name == "silence" {
				tr.Hasten(20 * time.Millisecond)
			}

			_, err := tr.Transcribe(t.Context(), []byte("RIFF"), "wav")

			wantKind(t, err, row.want)
			if err != nil && strings.Contains(err.Error(), "Tuesday") {
				t.Errorf("the error has text of the answer: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		if reached.Load() != 0 {
			t.Error("a redirect was followed")
		}
	})
}

func TestTranscribeIsLocal(t *testing.T) {
	t.Parallel()
	elsewhere, reached := elsewhere(t)
	c := model.Config{
		Servers:   map[string]model.ServerConfig{"there": {URL: "http://" + elsewhere.String()}},
		Dictation: model.DictationConfig{Server: "there", Model: "whisper-small"},
	}

	_, err := transcriber(t, c).Transcribe(t.Context(), []byte("RIFF"), "wav")

	wantKind(t, err, model.Remote)
	if reached.Load() != 0 {
		t.Error("an address outside the allowed networks was reached")
	}
}

func TestTranscribeChecksTheRecording(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	tr := transcriber(t, dictation(t, func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	for _, row := range []struct {
		audio  []byte
		format string
		want   model.Kind
	}{{nil, "wav", model.Invalid}, {[]byte("x"), "exe", model.Invalid}, {make([]byte, model.MaxAudio+1), "wav", model.TooLong}} {
		_, err := tr.Transcribe(t.Context(), row.audio, row.format)
		wantKind(t, err, row.want)
	}
	if asked.Load() != 0 {
		t.Errorf("the server was asked %d times", asked.Load())
	}
}

func TestNoTranscriber(t *testing.T) {
	t.Parallel()
	if tr, err := model.OpenTranscriber(model.Config{}); tr != nil || err != nil {
		t.Errorf("OpenTranscriber(none) = %v, %v", tr, err)
	}
	if _, err := model.OpenTranscriber(model.Config{Dictation: model.DictationConfig{Server: "away", Model: "m"}}); err == nil {
		t.Error("OpenTranscriber accepts an unknown server")
	}
}
