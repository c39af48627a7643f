//go:build unix && !linux

package embedded

// inMemory returns nothing: there is no usual place.
func inMemory() []string { return nil }
