package authenticate

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// Resolver queries DNS, with the methods of net.Resolver.
type Resolver interface {
	LookupTXT(ctx context.Context, name string) ([]string, error)
	LookupMX(ctx context.Context, name string) ([]*net.MX, error)
	LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error)
	LookupAddr(ctx context.Context, addr string) ([]string, error)
}

// errTooMany is the error for a message that needs too many queries.
var errTooMany = errors.New("the message needs more DNS lookups than are allowed")

// bounded is a resolver with a limit on the number of queries. It is safe for
// concurrent use, since DKIM queries from several goroutines.
type bounded struct {
	resolver  Resolver
	mu        sync.Mutex
	remaining int
}

func (b *bounded) take() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.remaining == 0 {
		return errTooMany
	}
	b.remaining--
	return nil
}

func (b *bounded) LookupTXT(ctx context.Context, name string) ([]string, error) {
	if err := b.take(); err != nil {
		return nil, err
	}
	return b.resolver.LookupTXT(ctx, name)
}

func (b *bounded) LookupMX(ctx context.Context, name string) ([]*net.MX, error) {
	if err := b.take(); err != nil {
		return nil, err
	}
	return b.resolver.LookupMX(ctx, name)
}

func (b *bounded) LookupIPAddr(ctx context.Context, host string) ([]net.IPAddr, error) {
	if err := b.take(); err != nil {
		return nil, err
	}
	return b.resolver.LookupIPAddr(ctx, host)
}

func (b *bounded) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	if err := b.take(); err != nil {
		return nil, err
	}
	return b.resolver.LookupAddr(ctx, addr)
}

// Cache is a Resolver that caches TXT records, which are the records that the
// mail of one sender shares. It also caches that a name does not exist, but no
// other errors. It is safe for concurrent use.
type Cache struct {
	Resolver
	lifetime time.Duration
	size     int
	now      func() time.Time
	mu       sync.Mutex
	known    map[string]answer
}

type answer struct {
	records []string
	err     error
	until   time.Time
}

// NewCache returns a cache of at most size answers, each kept for a lifetime.
func NewCache(resolver Resolver, size int, lifetime time.Duration, now func() time.Time) *Cache {
	return &Cache{Resolver: resolver, lifetime: lifetime, size: size, now: now, known: make(map[string]answer)}
}

// LookupTXT returns the TXT records of a name.
func (c *Cache) LookupTXT(ctx context.Context, name string) ([]string, error) {
	now := c.now()
	c.mu.Lock()
	known, ok := c.known[name]
	c.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.records, known.err
	}
	records, err := c.Resolver.LookupTXT(ctx, name)
	if err != nil && !absent(err) {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= c.size {
		for old, one := range c.known {
			if len(c.known) >= c.size || !now.Before(one.until) {
				delete(c.known, old)
			}
		}
	}
	c.known[name] = answer{records, err, now.Add(c.lifetime)}
	return records, err
}

// absent reports whether DNS answered that the record does not exist.
func absent(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns) && dns.IsNotFound
}
