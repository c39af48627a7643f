package catalog

import (
	"context"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/schema"
	"github.com/countersign-dev/countersign/internal/source"
)

// listed is a change of a tool by a listing.
type listed struct {
	tool   string
	change listedWord
}

// listedWord is the kind of a listed change.
type listedWord string

const (
	// listedNew is a new tool of a source that had others before.
	listedNew listedWord = "new"
	// listedChanged is a tool with a changed definition.
	listedChanged listedWord = "changed"
	// listedGone is a tool that the source no longer lists, listedAgain one that
	// is listed again.
	listedGone  listedWord = "gone"
	listedAgain listedWord = "back"
)

// maxNoted bounds the tools in one event.
const maxNoted = 100

// listingEvent returns the event for the changes by a listing, so that operators
// learn of changes made by the source.
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

// nameable reports whether a name is valid in an envelope. A regular expression for
// it would need megabytes in every program.
func nameable(name string) bool {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	return utf8.RuneCountInString(name) <= 200 && !strings.ContainsFunc(name, unprintable)
}

// maxLeftOut bounds the omitted tools that are listed by name.
const maxLeftOut = 20

// unusable returns the reason why a tool cannot be used, or "".
func unusable(t source.Tool) string {
	switch {
	case t.Name == "":
		return "it has no name"
	case !nameable(t.Name):
		return "an action cannot have this name"
	case t.Unusable != "":
		return t.Unusable
	case len(t.InputSchema) == 0:
		return "it has no input schema"
	case !storable(t.Title) || !storable(t.Description):
		return "its texts cannot be stored"
	}
	_, err := schema.NewText(t.InputSchema).Compile(context.Background())
	if why, ok := errors.AsType[*fault.Error](err); ok {
		return "its input schema " + why.Text
	}
	return ""
}

// maxUnchecked bounds the regular expressions that are listed per tool.
const maxUnchecked = 5

// uncheckedTools returns the first few tools of a listing whose input schema has
// regular expressions that no engine supports.
func uncheckedTools(tools []listedTool) []wire.UncheckedTool {
	found := []wire.UncheckedTool{}
	for _, t := range tools {
		if len(found) == maxLeftOut {
			break
		}
		compiled, err := schema.NewText(t.InputSchema).Compile(context.Background()) // cached: the listing compiled it
		if err != nil {
			continue
		}
		if patterns := compiled.Unchecked(); len(patterns) > 0 {
			found = append(found, wire.UncheckedTool{Name: shownName(t.Name), Patterns: patterns[:min(len(patterns), maxUnchecked)]})
		}
	}
	return found
}

// listedTool is a tool of a listing with its full digest.
type listedTool struct {
	source.Tool
	digest []byte
}

// namedOnce returns the usable tools, the first one of each name, and the first
// few of the omitted tools.
func namedOnce(tools []source.Tool) ([]listedTool, []wire.LeftOutTool) {
	taken := make(map[string]bool, len(tools))
	kept := make([]listedTool, 0, len(tools))
	leftOut := []wire.LeftOutTool{}
	for _, t := range tools {
		digest, err := Digest(t)
		why := unusable(t)
		switch {
		case why != "":
		case err != nil:
			why = "its definition cannot be read"
		case taken[t.Name]:
			why = "another tool has the same name"
		}
		if why == "" {
			taken[t.Name] = true
			kept = append(kept, listedTool{t, digest})
		} else if len(leftOut) < maxLeftOut {
			leftOut = append(leftOut, wire.LeftOutTool{Name: shownName(t.Name), Reason: why})
		}
	}
	return kept, leftOut
}

// shownName returns a tool's name in a form that can be stored, truncated.
func shownName(name string) string {
	const most = 100
	name = strings.ReplaceAll(strings.ToValidUTF8(name, "\ufffd"), "\x00", "\ufffd")
	if runes := []rune(name); len(runes) > most {
		name = string(runes[:most]) + "…"
	}
	return name
}

// ListingDigests returns the full digests of the tools of a listing by name,
// without those that PutListing omits.
func ListingDigests(tools []source.Tool) map[string][]byte {
	digests := make(map[string][]byte, len(tools))
	kept, _ := namedOnce(tools)
	for _, t := range kept {
		digests[t.Name] = t.digest
	}
	return digests
}
