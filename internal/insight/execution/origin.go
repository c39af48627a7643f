package execution

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"unicode/utf8"
)

// Via is the way by which a proposal came in.
type Via string

// The ways.
const (
	ViaAPI      Via = "api"
	ViaMCP      Via = "mcp"
	ViaUI       Via = "ui"
	ViaWebhook  Via = "webhook"
	ViaWorkflow Via = "workflow"
	ViaSystem   Via = "system"
)

// Valid says that v is one of the constants.
func (v Via) Valid() bool {
	switch v {
	case ViaAPI, ViaMCP, ViaUI, ViaWebhook, ViaWorkflow, ViaSystem:
		return true
	}
	return false
}

// Origin is the request that a proposal came with.
type Origin struct {
	// IP is the client's, past the proxies that are trusted.
	IP string `json:"ip,omitzero"`
	// UserAgent is what the client calls itself, cut to MaxAgentBytes.
	UserAgent string `json:"user_agent,omitzero"`
	Via       Via    `json:"via"`
	// RequestID is the one in logs and problems.
	RequestID string `json:"request_id,omitzero"`
}

// MaxAgentBytes bounds Origin.UserAgent.
const MaxAgentBytes = 200

// OriginOf notes where a request comes from. The header X-Forwarded-For counts
// as far as trusted proxies wrote it: the client is the last address in it
// that is none of theirs.
func OriginOf(r *http.Request, via Via, requestID string, trusted []netip.Prefix) Origin {
	return Origin{IP: clientOf(r, trusted), UserAgent: printable(r.UserAgent()), Via: via, RequestID: requestID}
}

// JSON is the origin as an action keeps it.
func (o Origin) JSON() json.RawMessage {
	text, err := json.Marshal(o)
	if err != nil { // it is made of strings alone
		return nil
	}
	return text
}

// clientOf finds the client's address; "" if there is none, as in a test.
func clientOf(r *http.Request, trusted []netip.Prefix) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return ""
	}
	client, err := netip.ParseAddr(host)
	if err != nil {
		return ""
	}
	client = client.Unmap().WithZone("")
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && within(client, trusted); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break // a proxy that writes anything else says nothing
		}
		client = next.Unmap().WithZone("")
	}
	return client.String()
}

func within(addr netip.Addr, prefixes []netip.Prefix) bool {
	for _, p := range prefixes {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

// printable keeps what a line of a log can show, as much of it as there is
// room for.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, text)
	if len(text) <= MaxAgentBytes {
		return text
	}
	cut := MaxAgentBytes
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}
