package signal

import (
	"strings"

	"github.com/countersign-dev/countersign/internal/lookalike"
)

const manyLinks = 10

func (f *finder) bulk() {
	h := f.fields
	if h.listID != "" {
		f.add(ListID, h.listID)
	}
	if h.unsubscribe != "" {
		f.add(ListUnsubscribe, h.unsubscribe)
	}
	if strings.Contains(strings.ToLower(h.unsubscribe), "<https://") &&
		strings.EqualFold(strings.ReplaceAll(h.unsubscribePost, " ", ""), "List-Unsubscribe=One-Click") {
		f.add(OneClick, h.unsubscribe)
	}
	switch strings.ToLower(h.precedence) {
	case "bulk", "list", "junk":
		f.add(PrecedenceBulk, h.precedence)
	}
	if h.autoSubmitted != "" && !strings.HasPrefix(strings.ToLower(h.autoSubmitted), "no") {
		f.add(AutoSubmitted, h.autoSubmitted)
	}
	if noReply(lookalike.LocalOf(f.from.Addr)) {
		f.add(NoReplySender, f.from.Addr)
	}
	if f.found.has(unsubscribe) {
		f.add(UnsubscribeText, f.found[unsubscribe].evidence)
	}
	if f.m.Pixels > 0 {
		f.add(TrackingPixel, "")
	}
	if len(f.m.Links) >= manyLinks {
		f.add(ManyLinks, "")
	}
}

// noReply reports whether the local part of an address marks it as not
// accepting replies.
func noReply(local string) bool {
	plain := strings.NewReplacer("-", "", "_", "", ".", "", "+", "").Replace(strings.ToLower(local))
	for _, word := range []string{"noreply", "donotreply", "dontreply", "nepasrepondre", "nichtantworten", "noresponder", "mailerdaemon"} {
		if strings.Contains(plain, word) {
			return true
		}
	}
	return false
}
