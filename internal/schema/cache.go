package schema

import (
	"container/list"
	"context"
	"crypto/sha256"
	"sync"

	"github.com/countersign-dev/countersign/internal/slot"
)

// maxCached bounds the texts of the cached schemas, in bytes. A compiled schema
// takes about twenty times its text.
const maxCached = 8 << 20

// cache holds the most recently used schemas in compiled form, for all tenants
// together, so that memory does not grow with the number of tools.
type cache struct {
	mu    sync.Mutex
	byKey map[[sha256.Size]byte]*list.Element
	// used holds entries, the most recently used first.
	used *list.List
	size int
}

type entry struct {
	key    [sha256.Size]byte
	size   int
	schema *Schema
	err    error
}

var compiledSchemas = sync.OnceValue(func() *cache {
	return &cache{byKey: make(map[[sha256.Size]byte]*list.Element), used: list.New()}
})

// Text is the text of a schema. It is compiled when first needed. The zero value
// is an empty text, which does not compile.
type Text struct {
	raw []byte
	key func() [sha256.Size]byte
}

// NewText returns the text of a schema. raw must not be modified afterwards.
func NewText(raw []byte) Text {
	return Text{raw, sync.OnceValue(func() [sha256.Size]byte { return sha256.Sum256(raw) })}
}

// Compile returns the compiled schema, from the cache if possible. The error may
// also be that of ctx.
func (t Text) Compile(ctx context.Context) (*Schema, error) {
	c := compiledSchemas()
	key := t.key()
	if e := c.get(key); e != nil {
		return e.schema, e.err
	}
	if len(t.raw) > maxShortText {
		end, err := slot.Begin(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	e := &entry{key: key, size: len(t.raw)}
	e.schema, e.err = Compile(t.raw)
	c.put(e)
	return e.schema, e.err
}

// maxShortText is the maximum length, in bytes, of a text that is compiled
// without a slot for long work.
const maxShortText = 8 << 10

func (c *cache) get(key [sha256.Size]byte) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.byKey[key]
	if !ok {
		return nil
	}
	c.used.MoveToFront(at)
	return at.Value.(*entry)
}

func (c *cache) put(e *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.byKey[e.key]; there || e.size > maxCached {
		return
	}
	c.byKey[e.key] = c.used.PushFront(e)
	c.size += e.size
	for c.size > maxCached {
		last := c.used.Remove(c.used.Back()).(*entry)
		delete(c.byKey, last.key)
		c.size -= last.size
	}
}
