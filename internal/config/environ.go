package config

import (
	"os"
	"strings"
)

// secrets are the variables that are hidden from other programs.
var secrets = [...]string{"DATABASE_URL", prefix + "SECRET_KEY", prefix + "TOKEN"}

// TakeEnviron returns the environment of this process, in the form of
// os.Environ, and hides its secrets from other programs: child processes do not
// inherit them, and on Linux programs of the same user cannot read this
// process's environment and memory in /proc. A program that runs as root can.
// Call it once, before anything else.
func TakeEnviron() []string {
	environ := os.Environ()
	hideProcess()
	for _, name := range secrets {
		_ = os.Unsetenv(name) // fails only for a name that cannot be one
	}
	return environ
}

// Lookup returns a function like os.Getenv for an environment in the form of
// os.Environ.
func Lookup(environ []string) func(name string) string {
	values := make(map[string]string, len(environ))
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	return func(name string) string { return values[name] }
}
