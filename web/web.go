// Package web serves the operator's page, whose built files are embedded.
//
// The files keep their names from one build to the next. The digest of all of
// them is part of their path instead, so that browsers may keep them forever;
// only the document itself is asked for again.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed all:dist
var dist embed.FS

// policy is the page's Content-Security-Policy: nothing from elsewhere, nothing
// inline, and no string that becomes script or markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
	"connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// permissions switches off the features of a browser that the page never uses.
const permissions = "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), " +
	"identity-credentials-get=(), magnetometer=(), microphone=(), midi=(), payment=(), serial=(), usb=()"

// file is an embedded file as it is sent.
type file struct {
	media        string
	plain, small []byte
}

// Page is the operator's page. It is safe for concurrent use.
type Page struct {
	digest   string
	document file
	assets   map[string]file
}

// New reads and compresses the embedded files. The error says that the build
// has no page.
func New() (*Page, error) {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		return nil, err
	}
	return load(files)
}

// load reads and compresses files.
func load(files fs.FS) (*Page, error) {
	p := &Page{assets: make(map[string]file)}
	whole, contents := sha256.New(), make(map[string][]byte)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		contents[name] = content
		fmt.Fprintf(whole, "%s\x00%d\x00", name, len(content))
		whole.Write(content)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	index, found := contents["index.html"]
	if !found {
		return nil, fmt.Errorf("the page has no index.html: run make web")
	}
	p.digest = base64.RawURLEncoding.EncodeToString(whole.Sum(nil))[:16]
	delete(contents, "index.html")
	for name, content := range contents {
		if p.assets["/-/"+p.digest+"/"+name], err = newFile(name, content); err != nil {
			return nil, err
		}
	}
	index = bytes.ReplaceAll(index, []byte(`="./`), []byte(`="/-/`+p.digest+`/`))
	p.document, err = newFile("index.html", index)
	return p, err
}

// newFile compresses content once.
func newFile(name string, content []byte) (file, error) {
	var small bytes.Buffer
	to, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err == nil {
		_, err = to.Write(content)
	}
	if err == nil {
		err = to.Close()
	}
	return file{media: mediaType(name), plain: content, small: small.Bytes()}, err
}

// mediaType names the types that the page has itself: those of the mime package
// depend on the machine.
func mediaType(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".webmanifest":
		return "application/manifest+json"
	case ".woff2":
		return "font/woff2"
	}
	return mime.TypeByExtension(path.Ext(name))
}

// reserved lists the paths below which nothing is the page's document.
func reserved() []string {
	return []string{"/api", "/auth", "/mcp", "/oauth", "/.well-known", "/-", "/healthz", "/readyz", "/metrics"}
}

// Wants reports whether the page answers a request: one for a file of this
// build, or one of a browser for a document. All else stays the API's, whose
// errors are JSON.
func (p *Page) Wants(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	if _, found := p.assets[r.URL.Path]; found {
		return true
	}
	for _, prefix := range reserved() {
		if r.URL.Path == prefix || strings.HasPrefix(r.URL.Path, prefix+"/") {
			return false
		}
	}
	return accepts(r.Header.Get("Accept"), "text/html")
}

// ServeHTTP answers a request that the page wants: with a file of this build,
// which never changes, else with the document.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", policy)
	h.Set("Permissions-Policy", permissions)
	if asset, found := p.assets[r.URL.Path]; found {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		asset.send(w, r)
		return
	}
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `W/"`+p.digest+`"`)
	h.Add("Vary", "Accept")
	if r.Header.Get("If-None-Match") == h.Get("ETag") {
		h.Add("Vary", "Accept-Encoding")
		w.WriteHeader(http.StatusNotModified)
		return
	}
	p.document.send(w, r)
}

// send writes a file, compressed where the client reads that.
func (f file) send(w http.ResponseWriter, r *http.Request) {
	content, h := f.plain, w.Header()
	h.Set("Content-Type", f.media)
	h.Add("Vary", "Accept-Encoding")
	if len(f.small) < len(f.plain) && accepts(r.Header.Get("Accept-Encoding"), "gzip") {
		content = f.small
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(content)))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = w.Write(content)
	}
}

// accepts reports whether an Accept or Accept-Encoding header names value with
// a weight that is not zero.
func accepts(header, value string) bool {
	for one := range strings.SplitSeq(header, ",") {
		name, parameters, _ := strings.Cut(one, ";")
		if !strings.EqualFold(strings.TrimSpace(name), value) {
			continue
		}
		_, weight, weighted := strings.Cut(strings.ReplaceAll(parameters, " ", ""), "q=")
		q, err := strconv.ParseFloat(weight, 64)
		return !weighted || err != nil || q > 0
	}
	return false
}
