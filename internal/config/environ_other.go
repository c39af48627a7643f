//go:build !linux

package config

// hideProcess does nothing on other systems.
func hideProcess() {}
