//go:build !linux

package config

// hideProcess has nothing to do where other programs of the same user are kept
// from a process by the system, or by nothing.
func hideProcess() {}
