package classify

import (
	_ "embed" // the weights
	"sync"
)

//go:embed model.bin
var embedded []byte

var opened = sync.OnceValues(func() (*Model, error) { return Open(embedded) })

// Embedded returns the shipped model, which model.md describes. Its first call in a
// process takes some milliseconds; all return the same.
func Embedded() (*Model, error) { return opened() }
