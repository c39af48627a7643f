package request

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/countersign-dev/countersign/internal/server/openapi"
)

// minGzipBytes is the least size of a compressed response: a smaller one fits
// one packet.
const minGzipBytes = 1024

// Gzip compresses responses. It is safe for concurrent use.
//
// The length of a compressed text leaks parts of it to an attacker who can
// measure the traffic and write a part of the text, such as an agent's proposal
// (BREACH). So operations whose responses contain credentials are never
// compressed, and every response is padded by a length derived only from its
// whole content and a key of this process: the same content always has the same
// length, so repeated requests leak nothing more.
type Gzip struct {
	key     [32]byte
	writers sync.Pool
}

// NewGzip returns a Gzip with a key of its own.
func NewGzip() *Gzip {
	g := &Gzip{writers: sync.Pool{New: func() any {
		w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // which is a level
		return w
	}}}
	_, _ = rand.Read(g.key[:]) // it never fails
	return g
}

// compress returns a body in gzip.
func (g *Gzip) compress(body []byte) ([]byte, error) {
	w := g.writers.Get().(*gzip.Writer)
	defer g.writers.Put(w)
	var out bytes.Buffer
	w.Reset(&out)
	w.Comment = g.padding(body)
	if _, err := w.Write(body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// padding returns the text of the comment in the head of the format: up to 255
// characters.
func (g *Gzip) padding(body []byte) string {
	h := sha256.New()
	h.Write(g.key[:])
	h.Write(body)
	return strings.Repeat("0", int(h.Sum(nil)[0]))
}

// compressed returns the compressed body and sets its headers. A response with
// an ETag is not compressed: a strong ETag is that of one representation, and
// clients send these back in If-Match.
func (c *Call) compressed(media string, body []byte) []byte {
	if !c.Compress || media != openapi.JSON {
		return body
	}
	h := c.W.Header()
	h.Add("Vary", "Accept-Encoding")
	if len(body) < minGzipBytes || h.Get("ETag") != "" || !acceptsGzip(c.R) {
		return body
	}
	small, err := c.Gzip.compress(body)
	if err != nil {
		return body
	}
	h.Set("Content-Encoding", "gzip")
	return small
}

// acceptsGzip reports whether a request takes an answer in gzip.
func acceptsGzip(r *http.Request) bool {
	named, any := -1.0, -1.0
	for part := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		coding, parameter, _ := strings.Cut(part, ";")
		quality := 1.0
		if text, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q="); ok {
			var err error
			if quality, err = strconv.ParseFloat(text, 64); err != nil {
				quality = 0
			}
		}
		switch strings.ToLower(strings.TrimSpace(coding)) {
		case "gzip", "x-gzip":
			named = max(named, quality)
		case "*":
			any = quality
		}
	}
	return named > 0 || named < 0 && any > 0
}
