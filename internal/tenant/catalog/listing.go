package catalog

import (
	"regexp"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/source"
)

// listed is what a listing changed of a tool.
type listed struct {
	tool   string
	change listedWord
}

// listedWord says what became of a tool in a listing.
type listedWord string

const (
	// listedNew is a tool of a source that had others before.
	listedNew listedWord = "new"
	// listedChanged is one whose definition is another than last time.
	listedChanged listedWord = "changed"
	// listedGone is one that the source lists no more, listedAgain one that was
	// gone and is back.
	listedGone  listedWord = "gone"
	listedAgain listedWord = "back"
)

// maxNoted bounds the tools that one event names.
const maxNoted = 100

// listingEvent is the event of what a listing changed, so that operators hear
// of tools that nobody here has changed.
func listingEvent(tenant envelope.TenantID, source string, changed []listed) audit.Event {
	event := audit.Event{Tenant: tenant, Kind: audit.Configured, Actor: envelope.Actor("source/" + source)}
	for _, l := range changed[:min(len(changed), maxNoted)] {
		event.Items = append(event.Items, audit.Item{
			Subject: "tool " + source + ":" + l.tool + " " + string(l.change), Detail: map[string]any{"listing": string(l.change)},
		})
	}
	if more := len(changed) - maxNoted; more > 0 {
		event.Items = append(event.Items, audit.Item{Subject: "source " + source + " listed", Detail: map[string]any{"more_changes": more}})
	}
	return event
}

// namePattern is what an envelope can name a tool by.
var namePattern = regexp.MustCompile(`^[\p{L}\p{M}\p{N}\p{P}\p{S} ]{1,200}$`)

// usable reports whether an envelope could name a tool, that it has a schema, and
// that the database can keep its texts.
func usable(t source.Tool) bool {
	return namePattern.MatchString(t.Name) && len(t.InputSchema) > 0 && storable(t.Title) && storable(t.Description)
}

// listedTool is a tool of a listing with its full digest.
type listedTool struct {
	source.Tool
	digest []byte
}

// namedOnce returns the tools that an envelope can name and whose definition
// has a canonical form; of several with one name the first.
func namedOnce(tools []source.Tool) []listedTool {
	taken := make(map[string]bool, len(tools))
	kept := make([]listedTool, 0, len(tools))
	for _, t := range tools {
		digest, err := Digest(t)
		if err != nil || !usable(t) || taken[t.Name] {
			continue
		}
		taken[t.Name] = true
		kept = append(kept, listedTool{t, digest})
	}
	return kept
}

// ListingDigests returns the full digests of the tools of a listing by name,
// without those that PutListing leaves out.
func ListingDigests(tools []source.Tool) map[string][]byte {
	digests := make(map[string][]byte, len(tools))
	for _, t := range namedOnce(tools) {
		digests[t.Name] = t.digest
	}
	return digests
}
