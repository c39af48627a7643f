package rest

import "github.com/countersign-dev/countersign/internal/server/access"

// Routes returns the table of routes.
func Routes() access.Table { return accessTable() }
