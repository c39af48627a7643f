// Package speech reads text aloud with the speech synthesizer of the system. The
// text goes to the synthesizer's standard input, never to its command line, which
// other users of the machine can read.
package speech

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/countersign-dev/countersign/internal/visible"
)

// maxSpoken bounds the bytes of a text.
const maxSpoken = 20_000

// ErrMissing is the error for a system without a speech synthesizer.
var ErrMissing = errors.New("no speech synthesizer found on PATH: install espeak-ng or speech-dispatcher (spd-say); macOS has say")

// Synthesizer is a program that reads its standard input aloud.
type Synthesizer struct {
	path string
	args []string
}

// programs returns the known programs in the order of preference, with the
// arguments for reading standard input.
func programs() []Synthesizer {
	return []Synthesizer{
		{"say", []string{"-f", "-"}},
		{"spd-say", []string{"--pipe-mode", "--wait"}},
		{"espeak-ng", []string{"--stdin"}},
		{"espeak", []string{"--stdin"}},
	}
}

// Find returns the synthesizer of the system in the absolute folders of a search
// path; without one the error is ErrMissing.
func Find(searchPath string) (Synthesizer, error) {
	for _, s := range programs() {
		for _, folder := range filepath.SplitList(searchPath) {
			if !filepath.IsAbs(folder) {
				continue
			}
			if path, err := exec.LookPath(filepath.Join(folder, s.path)); err == nil {
				return Synthesizer{path, s.args}, nil
			}
		}
	}
	return Synthesizer{}, ErrMissing
}

// Speak reads a text aloud and returns when that has ended. A long text is cut. The
// error contains none of the text.
func (s Synthesizer) Speak(ctx context.Context, text string) error {
	cmd := exec.CommandContext(ctx, s.path, s.args...)
	cmd.Stdin, cmd.Stdout = strings.NewReader(spoken(text)), io.Discard
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("speech synthesizer %s: %w", filepath.Base(s.path), err)
	}
	return nil
}

// spoken returns a text for a synthesizer: without hidden and control characters,
// and without the commands of synthesizers: [[…]] of say and espeak, and !-! of
// spd-say.
func spoken(text string) string {
	text = strings.Map(func(r rune) rune {
		switch r {
		case '[', ']', '\t':
			return ' '
		case '!':
			return '.'
		}
		return r
	}, visible.Plain(text))
	cut := false
	if text, cut = visible.Cut(text, maxSpoken); cut {
		text += " …"
	}
	return text + "\n"
}
