package speech_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/cli/speech"
)

// program writes a script under the name of a synthesizer, and returns the search
// path with its folder alone.
func program(t *testing.T, name, script string) (searchPath string) {
	t.Helper()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}

func find(t *testing.T, searchPath string) speech.Synthesizer {
	t.Helper()
	s, err := speech.Find(searchPath)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// hostile is a text with everything that must not reach a synthesizer: escapes,
// hidden characters, and commands of synthesizers.
const hostile = "Two are urgent.\x1b]0;owned\a\u202e\x00\n!-!QUIT\r\n[[rate 900]] [[[[volm 0]]]]\n--stdout $(id) `id` Zwölf Uhr 三"

func TestTextGoesByStandardInputAlone(t *testing.T) {
	t.Parallel()
	for name, args := range map[string]string{"say": "-f -", "spd-say": "--pipe-mode --wait", "espeak-ng": "--stdin", "espeak": "--stdin"} {
		out := t.TempDir()
		s := find(t, program(t, name, `echo "$@" > `+out+`/args; env > `+out+`/env; cat > `+out+`/text`))

		if err := s.Speak(t.Context(), hostile); err != nil {
			t.Fatalf("%s: %v", name, err)
		}

		if got := strings.TrimSpace(read(t, out+"/args")); got != args {
			t.Errorf("%s was called with %q, want %q", name, got, args)
		}
		if strings.Contains(read(t, out+"/env"), "urgent") {
			t.Errorf("%s has the text in its environment", name)
		}
		text := read(t, out+"/text")
		if strings.ContainsAny(text, "\x1b\x00\a\r[]!") || strings.ContainsRune(text, '\u202e') || !strings.Contains(text, "Zwölf Uhr 三") {
			t.Errorf("%s was given %q", name, text)
		}
	}
}

func TestLongTextIsCut(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "text")
	s := find(t, program(t, "espeak-ng", "cat > "+out))

	if err := s.Speak(t.Context(), strings.Repeat("äöü ", 100_000)); err != nil {
		t.Fatal(err)
	}

	if text := read(t, out); len(text) > 20_100 || !strings.HasSuffix(text, " …\n") {
		t.Errorf("the synthesizer was given %d bytes", len(text))
	}
}

func TestNoSynthesizer(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "espeak-ng"), []byte("#!/bin/sh\n"), 0o600); err != nil { // not executable
		t.Fatal(err)
	}
	for _, searchPath := range []string{"", folder, ".", "relative:" + t.TempDir()} {
		if _, err := speech.Find(searchPath); !errors.Is(err, speech.ErrMissing) {
			t.Errorf("Find(%q) = %v, want ErrMissing", searchPath, err)
		}
	}
}

func TestFailuresHaveNoText(t *testing.T) {
	t.Parallel()
	s := find(t, program(t, "espeak-ng", "cat >&2; exit 3"))
	if err := s.Speak(t.Context(), "Two are urgent."); err == nil || strings.Contains(err.Error(), "urgent") {
		t.Errorf("Speak() = %v, want an error without the text", err)
	}

	// A synthesizer that reads nothing, and a person who stops it.
	s = find(t, program(t, "espeak-ng", "exec sleep 600"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Speak(ctx, strings.Repeat("w ", 200_000)); !errors.Is(err, context.Canceled) {
		t.Errorf("Speak(canceled) = %v", err)
	}
}

// TestRealSynthesizer has espeak-ng speak into a file instead of a loudspeaker.
func TestRealSynthesizer(t *testing.T) {
	t.Parallel()
	espeak, err := exec.LookPath("espeak-ng")
	if err != nil {
		t.Skip("espeak-ng is not installed")
	}
	out := filepath.Join(t.TempDir(), "brief.wav")
	s := find(t, program(t, "espeak-ng", `exec `+espeak+` "$@" -w `+out))

	if err := s.Speak(t.Context(), "Two messages are urgent. [[_:60000]]"); err != nil {
		t.Fatal(err)
	}

	// Two seconds of speech at 22 kHz and 16 bits; the command for a minute of
	// silence is not obeyed.
	if wav := read(t, out); !strings.HasPrefix(wav, "RIFF") || len(wav) < 40_000 || len(wav) > 400_000 {
		t.Errorf("espeak-ng wrote %d bytes", len(wav))
	}
}
