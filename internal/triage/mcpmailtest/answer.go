package mcpmailtest

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// page is the largest number of messages in a listing: few, so that tests have
// several pages.
const page = 4

func (m *message) item(kind Kind, listed bool) map[string]any {
	item := map[string]any{"id": m.id, "size": len(m.raw), "flags": m.flags}
	if !kind.NoTimes || !listed {
		item["received_at"] = m.received.Format(time.RFC3339Nano)
	}
	return item
}

// list lists messages, newest first; its cursor is the number of messages
// before.
func (f *folder) list(kind Kind, args map[string]any) map[string]any {
	bound := func(name string) time.Time {
		text, _ := args[name].(string)
		at, _ := time.Parse(time.RFC3339Nano, text) // an invalid time is no bound
		return at
	}
	since, before := bound("since"), bound("before")
	var found []*message
	for _, m := range f.messages {
		if !m.received.Before(since) && (before.IsZero() || m.received.Before(before)) {
			found = append(found, m)
		}
	}
	slices.SortStableFunc(found, func(a, b *message) int { return b.received.Compare(a.received) })
	text, _ := args["cursor"].(string)
	from, _ := strconv.Atoi(text)
	found = found[min(from, len(found)):]
	answer := map[string]any{"end": fmt.Sprintf("%d:%d", f.validity, f.seq)}
	if limit, ok := args["limit"].(float64); ok && len(found) > min(int(limit), page) {
		found = found[:min(int(limit), page)]
		answer["next_cursor"] = strconv.Itoa(from + len(found))
	}
	answer["messages"] = itemsOf(found, kind)
	return answer
}

func itemsOf(messages []*message, kind Kind) []any {
	items := []any{}
	for _, m := range messages {
		items = append(items, m.item(kind, true))
	}
	return items
}

// changes returns the changes since a cursor, with a limit for new messages.
func (f *folder) changes(kind Kind, args map[string]any) map[string]any {
	since, reset := 0, false
	if text, _ := args["cursor"].(string); text != "" {
		v, at, _ := strings.Cut(text, ":")
		since, _ = strconv.Atoi(at)
		if reset = v != strconv.Itoa(f.validity); reset {
			since = 0
		}
	}
	next := f.seq
	var fresh []*message
	for _, m := range f.messages {
		if m.added > since {
			fresh = append(fresh, m)
		}
	}
	limit, _ := args["limit"].(float64)
	more := len(fresh) > int(limit)
	if more {
		fresh = fresh[:int(limit)]
		next = fresh[len(fresh)-1].added
	}
	changed, gone := []any{}, []any{}
	for _, m := range f.messages {
		if m.added <= since && m.changed > since && m.changed <= next {
			changed = append(changed, m.item(kind, true))
		}
	}
	for _, d := range f.gone {
		if d.added <= since && d.at > since && d.at <= next {
			gone = append(gone, d.id)
		}
	}
	return map[string]any{
		"new": itemsOf(fresh, kind), "changed": changed, "gone": gone, "next": fmt.Sprintf("%d:%d", f.validity, next), "more": more, "reset": reset,
	}
}

// read returns a message: the original, or fields and text.
func (f *folder) read(kind Kind, id string) map[string]any {
	i := slices.IndexFunc(f.messages, func(m *message) bool { return m.id == id })
	if i < 0 {
		return map[string]any{"fail": "message not found: it has another text of the canary"}
	}
	m := f.messages[i]
	answer := m.item(kind, false)
	if !kind.Built {
		answer["raw"] = base64.StdEncoding.EncodeToString(m.raw)
		return answer
	}
	header, body, _ := bytes.Cut(bytes.ReplaceAll(m.raw, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
	headers := []any{}
	for line := range strings.SplitSeq(string(header), "\n") {
		name, value, _ := strings.Cut(line, ": ")
		headers = append(headers, map[string]any{"name": name, "value": value})
	}
	answer["headers"], answer["text"] = headers, string(body)
	return answer
}
