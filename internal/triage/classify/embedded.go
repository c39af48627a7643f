package classify

import _ "embed" // the weights

//go:embed model.bin
var embedded []byte

// Embedded returns the shipped model, which model.md describes. Opening takes
// some milliseconds: keep the result.
func Embedded() (*Model, error) { return Open(embedded) }
