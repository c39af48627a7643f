package envelope_test

import (
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/envelope"
)

// typical is an envelope of 300 bytes.
const typical = `{"external_id":"digest-2026-07-01-000042","type":"mcp.exec","tool":{"name":"chat.postMessage","source":"slack"},` +
	`"args":{"channel":"#cs","text":"Daily digest: 12 tickets, 3 late","thread":{"ts":1719820800.1234,"reply":true}},` +
	`"risk":"low","constraints":{"rate_bucket":"slack.minute","must_run_before":"2026-07-01T10:00:00Z"}}`

func BenchmarkParse(b *testing.B) {
	raw := []byte(typical)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := envelope.Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseMany(b *testing.B) {
	const items = 500
	raw := []byte("[" + strings.TrimSuffix(strings.Repeat(typical+",", items), ",") + "]")
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := envelope.ParseMany(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	p, err := envelope.Parse([]byte(typical))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Digest(); err != nil {
			b.Fatal(err)
		}
	}
}
