package authenticate

import (
	"net"
	"strings"
)

// received is a parsed Received field.
type received struct {
	helo, by string
	ip       net.IP
}

// parseReceived reads the clauses of a Received field. A clause that cannot be
// parsed stays empty.
func parseReceived(value string) received {
	var r received
	value, _, _ = strings.Cut(value, ";")
	words := strings.Fields(value)
	for i, w := range words {
		if i+1 >= len(words) {
			break
		}
		next := strings.ToLower(strings.Trim(words[i+1], "(),"))
		switch strings.ToLower(w) {
		case "from":
			if r.helo == "" && i == 0 {
				r.helo = strings.Trim(next, "[]")
			}
		case "by":
			if r.by == "" {
				r.by = strings.Trim(strings.TrimSuffix(next, "."), "[]")
			}
		}
	}
	before, _, _ := strings.Cut(value, " by ")
	r.ip = lastIP(before)
	return r
}

// lastIP returns the last IP address in brackets. Receiving hosts write the
// address of the connection after the name from HELO.
func lastIP(text string) net.IP {
	end := strings.LastIndexByte(text, ']')
	if end < 0 {
		return nil
	}
	start := strings.LastIndexByte(text[:end], '[')
	if start < 0 {
		return nil
	}
	return net.ParseIP(strings.TrimPrefix(strings.ToLower(text[start+1:end]), "ipv6:"))
}
