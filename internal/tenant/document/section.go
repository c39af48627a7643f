package document

import (
	"fmt"
	"maps"
	"slices"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/check"
)

// Section is a section of a tenant's settings that is being changed.
type Section[E any] struct {
	// Name is the section's name in the document and in changes.
	Name string
	// Noun names the kind of entry in messages and events.
	Noun string
	// Key returns the key of an entry within the section.
	Key func(E) string
	// Stored holds the entries by key, after the changes so far.
	Stored map[string]E
	// Prepare checks an entry and returns its stored form; nil if entries are
	// stored unchanged.
	Prepare func(E) (E, error)
	// Empty reports whether an entry is equivalent to none; nil if no entry is.
	Empty func(E) bool
	// Put stores an entry, Remove deletes one.
	Put, Remove func(E) error
}

// Store sets all the stored entries.
func (s *Section[E]) Store(all []E) {
	s.Stored = make(map[string]E, len(all))
	for _, e := range all {
		s.Stored[s.Key(e)] = e
	}
}

// Set stores an entry, replacing that with the same key.
func (s *Section[E]) Set(c *Changes, e E) error {
	if s.Prepare != nil {
		var err error
		if e, err = s.Prepare(e); err != nil {
			return err
		}
	}
	key := s.Key(e)
	if s.Empty != nil && s.Empty(e) {
		return s.Delete(c, key, nil)
	}
	var was any
	if old, ok := s.Stored[key]; ok {
		was = old
	}
	s.Stored[key] = e
	return c.Record(s.Name, s.Noun, key, was, e, func() error { return s.Put(e) })
}

// Delete deletes the entry with a key. If it does not exist, the error is
// missing.
func (s *Section[E]) Delete(c *Changes, key string, missing error) error {
	old, ok := s.Stored[key]
	if !ok {
		return missing
	}
	delete(s.Stored, key)
	return c.Record(s.Name, s.Noun, key, old, nil, func() error { return s.Remove(old) })
}

// Apply deletes stored entries that are not in wanted, and sets those in wanted.
// A nil wanted leaves the section unchanged. The pointers of an
// *envelope.InvalidError lead into the document.
func (s *Section[E]) Apply(c *Changes, wanted []E) error {
	if wanted == nil {
		return nil
	}
	keep := make(map[string]bool, len(wanted))
	for _, e := range wanted {
		keep[s.Key(e)] = true
	}
	for _, key := range slices.Sorted(maps.Keys(s.Stored)) {
		if keep[key] {
			continue
		}
		if err := s.Delete(c, key, nil); err != nil {
			return err
		}
	}
	for i, e := range wanted {
		if err := Within(fmt.Sprintf("/%s/%d", s.Name, i), s.Set(c, e)); err != nil {
			return err
		}
	}
	return nil
}

// Within prefixes the pointers of an *envelope.InvalidError with a place in the
// document.
func Within(pointer string, err error) error {
	var p check.Problems
	if err := p.Below(pointer, err); err != nil {
		return err
	}
	return p.Err()
}

// Check adds the errors of a section's entries to p: those that valid returns,
// and duplicate keys. A section may have up to most entries.
func Check[E any](p *check.Problems, section, noun string, most int, entries []E, key func(E) string, valid func(E) error) {
	if len(entries) > most {
		p.Add("/"+section, envelope.RuleMaxItems, "must have at most %d items", most)
		return
	}
	first := make(map[string]int, len(entries))
	for i, e := range entries {
		at := fmt.Sprintf("/%s/%d", section, i)
		_ = p.Below(at, valid(e)) // it has no other kind of error
		if before, ok := first[key(e)]; ok {
			p.Add(at, envelope.RuleDuplicateKey, "must not be of the same %s as item %d", noun, before)
			continue
		}
		first[key(e)] = i
	}
}
