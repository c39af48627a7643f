package deadletter_test

import (
	"testing"

	"github.com/countersign-dev/countersign/internal/action/outbox/outboxtest"
)

type fixture struct{ outboxtest.Fixture }

// newFixture returns a tenant in a transaction of its own.
func newFixture(t testing.TB) fixture { return fixture{outboxtest.New(t)} }

// newSharedFixture returns a tenant in a database of its own.
func newSharedFixture(t testing.TB) fixture { return fixture{outboxtest.NewShared(t)} }
