package rest

import "github.com/countersign-dev/countersign/internal/server/access"

// Routes returns the table of routes.
func Routes() access.Table { return accessTable() }

// IsCompressed reports whether the answers of an operation may be compressed.
func IsCompressed(operation string) bool { return isCompressed(operation) }
