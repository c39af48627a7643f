//go:build !linux

package config

// unmapProgram does nothing on other systems.
func unmapProgram() {}
