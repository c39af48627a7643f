package classify

import _ "embed" // the weights

//go:embed model.bin
var embedded []byte

// Embedded returns the model that is shipped. model.md says what it was made of.
// Opening takes some milliseconds: keep the result.
func Embedded() (*Model, error) { return Open(embedded) }
