// Package mcpmail reads mailboxes through MCP mail servers. A table lists the
// reading tools of each kind of server; no others can be called, nor any that
// the server declares as writing. A server's answers are data: they are
// bounded, their shape is checked, and errors contain none of them.
package mcpmail

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/quota"
	"github.com/countersign-dev/countersign/internal/safehttp"
	"github.com/countersign-dev/countersign/internal/source/mcp"
)

const (
	defaultMaxSize = 8 << 20
	// maxKept limits the bytes of messages that were read for a listing.
	maxKept = 32 << 20
	// maxEmpty limits consecutive answers that report more and return nothing.
	maxEmpty = 20
	// listed is the number of messages requested per listing.
	listed = 100
)

// Config configures an account. URL or Command is required.
type Config struct {
	// Name is the server's name in errors.
	Name string
	// URL is the server's address for streamable HTTP. Without TLS it must be
	// on the local machine.
	URL string
	// Command is the program of a server over standard input and output.
	Command []string
	// Secret returns the credential, or ""; it is called once. A server over
	// HTTP receives it in the header SecretName, or as a bearer token if that
	// is empty; a program receives it in the variable SecretName.
	Secret     func(context.Context) (string, error)
	SecretName string
	// Networks are allowed addresses of the server in addition to the public
	// internet.
	Networks []netip.Prefix
	Profile  Profile
	// MaxSize limits the bytes of a message; 0 means 8 MiB.
	MaxSize int64
	// Interval is how long Wait waits; 0 means a minute.
	Interval time.Duration
	// Timeout bounds a call; 0 means half a minute.
	Timeout time.Duration
	// Quota is the bucket of the profile's provider; if nil, the reader has its
	// own.
	Quota *quota.Bucket
}

// Reader reads an account through an MCP server.
type Reader struct {
	config  Config
	server  *server
	folders []mailbox.Folder
	// kept holds messages that had to be read for a listing.
	kept      map[mailbox.Location]content
	keptBytes int
	// maxPages is that of the server.
	maxPages int
}

// content is the content of a message.
type content struct {
	raw   []byte
	built bool
}

// NewReader returns a reader of an account. It connects on first use.
func NewReader(c Config) (*Reader, error) {
	if c.Profile.server == "" {
		return nil, fmt.Errorf("MCP server %s has no profile: %w", c.Name, mailbox.ErrInvalid)
	}
	if len(c.Command) == 0 {
		u, err := url.Parse(c.URL)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return nil, fmt.Errorf("MCP server %s: invalid http or https address: %w", c.Name, mailbox.ErrInvalid)
		}
	}
	c.MaxSize = cmp.Or(max(c.MaxSize, 0), defaultMaxSize)
	c.Interval = cmp.Or(max(c.Interval, 0), time.Minute)
	if c.Quota == nil {
		c.Quota = quota.New(c.Profile.Provider())
	}
	return &Reader{config: c, maxPages: maxPages}, nil
}

// Close ends the session.
func (r *Reader) Close() error {
	if r.server == nil {
		return nil
	}
	return r.server.source.Close()
}

// open connects on first use, and lists the tools each time: a tool that is
// declared as writing later is not called again.
func (r *Reader) open(ctx context.Context) (*server, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if r.server == nil {
		made, err := r.config.connect(ctx)
		if err != nil {
			return nil, err
		}
		made.maxPages = r.maxPages
		r.server = made
	}
	return r.server, r.server.check(ctx)
}

func (c Config) connect(ctx context.Context) (*server, error) {
	to := mcp.Config{
		Name: c.Name, Transport: mcp.TransportHTTP, URL: c.URL, Command: c.Command, CallTimeout: c.Timeout,
		// A result contains a message twice in base64: structured and as text.
		MaxResultBytes: int(3*c.MaxSize) + 1<<20,
		Guard:          safehttp.Guard{Networks: c.Networks, LoopbackOnly: strings.HasPrefix(c.URL, "http:")},
	}
	if len(c.Command) > 0 {
		to.Transport = mcp.TransportStdio
	}
	if err := c.credential(ctx, &to); err != nil {
		return nil, err
	}
	source, err := mcp.New(to)
	if err != nil {
		return nil, err
	}
	return &server{name: c.Name, profile: c.Profile, source: source, quota: c.Quota}, nil
}

// credential adds the secret to the requests or to the program's environment.
func (c Config) credential(ctx context.Context, to *mcp.Config) error {
	if c.Secret == nil {
		return nil
	}
	secret, err := c.Secret(ctx)
	switch {
	case err != nil || secret == "":
		return err
	case to.Transport == mcp.TransportStdio:
		to.Env = []string{cmp.Or(c.SecretName, "TOKEN") + "=" + secret}
	case c.SecretName != "":
		to.Header = http.Header{http.CanonicalHeaderKey(c.SecretName): {secret}}
	default:
		to.Header = http.Header{"Authorization": {"Bearer " + secret}}
	}
	return nil
}

// Folders returns the folders that the server lists, or those of its profile.
func (r *Reader) Folders(ctx context.Context) ([]mailbox.Folder, error) {
	s, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	if r.folders, err = s.folders(ctx); err != nil {
		return nil, err
	}
	return slices.Clone(r.folders), nil
}

func (s *server) folders(ctx context.Context) ([]mailbox.Folder, error) {
	if !s.has(listFolders) {
		if len(s.profile.folders) == 0 {
			return []mailbox.Folder{{Name: "INBOX", Use: mailbox.UseInbox}}, nil
		}
		return s.profile.folders, nil
	}
	doc, err := s.call(ctx, listFolders, map[string]any{})
	if err != nil {
		return nil, err
	}
	members, err := s.list(doc, "folders")
	if err != nil {
		return nil, err
	}
	var all []mailbox.Folder
	for _, member := range members {
		name := s.text(member, "folder.name")
		known := slices.ContainsFunc(all, func(f mailbox.Folder) bool { return f.Name == name })
		if name == "" || len(name) > maxKey || strings.ContainsFunc(name, unicode.IsControl) || known {
			return nil, s.fault("a folder in the answer has no usable name", errOutage)
		}
		all = append(all, mailbox.Folder{Name: name, Use: useOf(s.text(member, "folder.use"), name)})
	}
	return all, nil
}

func useOf(reported, name string) mailbox.Use {
	reported = strings.ToLower(strings.TrimPrefix(reported, `\`))
	for _, use := range []mailbox.Use{
		mailbox.UseInbox, mailbox.UseSent, mailbox.UseDrafts, mailbox.UseArchive, mailbox.UseTrash, mailbox.UseJunk, mailbox.UseAll,
	} {
		if reported == string(use) {
			return use
		}
	}
	return mailbox.UseOf(name, "/")
}

// in returns the server after checking that it has the folder.
func (r *Reader) in(ctx context.Context, folder string) (*server, error) {
	s, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	is := func(f mailbox.Folder) bool { return f.Name == folder }
	if !slices.ContainsFunc(r.folders, is) {
		if r.folders, err = s.folders(ctx); err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(r.folders, is) {
			return nil, fmt.Errorf("folder %q: %w", folder, mailbox.ErrNoFolder)
		}
	}
	r.kept, r.keptBytes = map[mailbox.Location]content{}, 0
	return s, nil
}

// Wait waits for the interval, since no server sends notifications.
func (r *Reader) Wait(ctx context.Context, _ []string) error {
	timer := time.NewTimer(r.config.Interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return ctx.Err()
	}
}
