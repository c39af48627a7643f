package envelope

import "flag"

// Update has the tests rewrite golden files instead of comparing with them.
var Update = flag.Bool("update", false, "rewrite golden files")
