package catalog

import (
	"encoding/hex"
	"encoding/json"
	"testing"

	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// TestOlderSchemesStillMatch compares a definition with its digest of every
// scheme so far.
func TestOlderSchemesStillMatch(t *testing.T) {
	t.Parallel()
	of := source.Tool{Name: "send", Title: "Send", Description: "Sends.", InputSchema: json.RawMessage(`{"type":"object","properties":{
		"to":{"type":"string","description":"who"},"n":{"type":"integer","default":1},"mode":{"type":"string","enum":["a","b"]}},
		"required":["to"],"additionalProperties":false}`)}
	// Written by a release that had only this scheme.
	const first = "01f1bc4065a18d4a98a4a934e1d7cf074f0de7ef5c160c0b8c711e0c0d02e9d64e"
	older, err := hex.DecodeString(first)
	if err != nil {
		t.Fatal(err)
	}
	present, err := Digest(of)
	if err != nil {
		t.Fatal(err)
	}
	tool := func(digest []byte) *Tool {
		return &Tool{
			Key: policy.Key{Source: "mail", Action: of.Name}, Definition: definitionOf(of), Digest: digest,
		}
	}
	other := tool(present)
	other.Description, other.Digest = "Sends it elsewhere.", nil

	for name, listed := range map[string]*Tool{"of the present scheme": tool(present), "of the older scheme": tool(older), "not listed": tool(nil)} {
		if !listed.Lists(older) || !listed.Lists(present) {
			t.Errorf("a digest %s: Lists(older) = %t, Lists(present) = %t, want true", name, listed.Lists(older), listed.Lists(present))
		}
		changed := append([]byte{}, older...)
		changed[5]++
		if listed.Lists(changed) || listed.Lists(nil) || listed.Lists([]byte{}) || listed.Lists(append([]byte{9}, older[1:]...)) {
			t.Errorf("a digest %s: Is() is true of what is none of its digests", name)
		}
	}
	if other.Lists(older) || other.Lists(present) {
		t.Error("another definition has the same digests")
	}
	if got := partsDigest("send", Definition{Description: "{a brace"}); got != nil {
		t.Errorf("partsDigest of what the scheme could not read = %x, want none", got)
	}
}
