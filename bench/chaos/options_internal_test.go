package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestParseRefuses(t *testing.T) {
	t.Parallel()

	for _, args := range []string{
		"-class neither", "-n -1", "-fault unheard", "-fault kill,", "-workers 0", "-concurrency 0", "-kill-every 0s", "-lease 10ms", "-call 0s", "-busy 0.9", "more",
		"-unheard",
	} {
		if _, err := parse(strings.Fields(args), new(bytes.Buffer)); err == nil {
			t.Errorf("parse(%q) = nil, want an error", args)
		}
	}
}
