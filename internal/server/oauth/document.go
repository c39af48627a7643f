package oauth

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// maxDocument bounds a metadata document in bytes.
	maxDocument = 5 << 10
	// A document is fetched again after as long as its server allows, between these.
	leastCached, mostCached = time.Minute, 24 * time.Hour
	// maxDocuments bounds the documents that are remembered.
	maxDocuments = 1000
)

// documents fetches the metadata documents of programs, and remembers them. If a
// document cannot be had any more, the last valid one counts for a day. It is safe for
// concurrent use.
type documents struct {
	http *http.Client

	mu    sync.Mutex
	known map[string]document
}

type document struct {
	client
	// fresh is until when it is not fetched again, good until when it counts.
	fresh, good time.Time
}

func newDocuments(client *http.Client) *documents {
	return &documents{http: client, known: make(map[string]document)}
}

// get returns the program of an address. The error is a refusal.
func (d *documents) get(ctx context.Context, id string, now time.Time) (client, error) {
	d.mu.Lock()
	found, ok := d.known[id]
	d.mu.Unlock()
	if ok && now.Before(found.fresh) {
		return found.client, nil
	}
	c, age, err := d.fetch(ctx, id)
	if err != nil {
		if ok && now.Before(found.good) {
			return found.client, nil
		}
		return client{}, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.known) >= maxDocuments {
		clear(d.known) // each is fetched again
	}
	d.known[id] = document{c, now.Add(age), now.Add(mostCached)}
	return c, nil
}

func (d *documents) fetch(ctx context.Context, id string) (client, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	missing := refusal{"invalid_client", "the metadata document of the client cannot be fetched; register instead"}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return client{}, 0, missing
	}
	r.Header.Set("Accept", "application/json")
	answer, err := d.http.Do(r)
	if err != nil {
		return client{}, 0, missing
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK { // redirects are not followed
		return client{}, 0, missing
	}
	c, err := parseDocument(id, answer.Body)
	return c, maxAge(answer.Header.Get("Cache-Control")), err
}

// maxAge returns how long an answer may be kept.
func maxAge(control string) time.Duration {
	age := 10 * time.Minute
	for part := range strings.SplitSeq(control, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch strings.ToLower(name) {
		case "no-store", "no-cache":
			return leastCached
		case "max-age":
			if seconds, err := strconv.Atoi(value); err == nil {
				age = time.Duration(seconds) * time.Second
			}
		}
	}
	return min(max(age, leastCached), mostCached)
}
