package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestRunReturnsTheExitCode(t *testing.T) {
	t.Setenv(testURL, "postgres://set.example/already")
	rows := map[string]struct {
		args []string
		want int
	}{
		"success":            {[]string{"--", "true"}, 0},
		"failure":            {[]string{"--", "sh", "-c", "exit 7"}, 7},
		"signal":             {[]string{"--", "sh", "-c", "kill -KILL $$"}, 137},
		"URL is unchanged":   {[]string{"--", "sh", "-c", `[ "$TEST_DATABASE_URL" = postgres://set.example/already ]`}, 0},
		"no such program":    {[]string{"--", "/no/such/program"}, exitNotStarted},
		"no command":         {nil, exitUsage},
		"a flag that is not": {[]string{"-nope", "--", "true"}, exitUsage},
		"help":               {[]string{"-help"}, 0},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			if got := run(row.args, io.Discard); got != row.want {
				t.Errorf("run(%q) = %d, want %d", row.args, got, row.want)
			}
		})
	}
}

func TestRunStartsAServer(t *testing.T) {
	t.Setenv(testURL, "")
	rows := map[string]struct {
		live   string
		flags  string
		script string
		want   int
	}{
		"both URLs":              {"", "-fast=false", `[ "$DATABASE_URL" = "$TEST_DATABASE_URL" ]`, 0},
		"DATABASE_URL is set":    {"kept", "-fast=false", `[ "$DATABASE_URL" = kept ]`, 0},
		"fast is for tests only": {"", "-fast -tx", `[ -z "$DATABASE_URL" ] && [ -n "$TEST_TX_DATABASE_URL" ] && [ "$TEST_TX_DATABASE_URL" != "$TEST_DATABASE_URL" ]`, 0},
		"failure":                {"", "-fast", `exit 3`, 3},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Setenv(liveURL, row.live)
			var stderr bytes.Buffer
			script := `case "$TEST_DATABASE_URL" in postgres://*/countersign*) ;; *) exit 9 ;; esac; ` + row.script

			got := run(append(strings.Fields(row.flags), "--", "sh", "-c", script), &stderr)

			if got != row.want || stderr.Len() > 0 {
				t.Errorf("run() = %d and prints %q, want %d and nothing", got, stderr.String(), row.want)
			}
		})
	}
}

func TestRunWithoutAServer(t *testing.T) {
	t.Setenv(testURL, "")
	var stderr bytes.Buffer

	got := run([]string{"-bin", t.TempDir(), "--", "true"}, &stderr)

	if got != exitNoServer || !strings.Contains(stderr.String(), "does not hold both postgres and initdb") {
		t.Errorf("run() = %d and prints %q, want %d and the reason", got, stderr.String(), exitNoServer)
	}
}
