package authenticate_test

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-msgauth/dkim"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/message"
)

// zone is a resolver that answers from a map and counts the queries.
type zone struct {
	txt map[string][]string
	ip  map[string][]net.IPAddr
	// broken holds the names for which the server fails.
	broken map[string]bool

	mu    sync.Mutex
	asked int
}

func (z *zone) ask() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.asked++
}

func (z *zone) count() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.asked
}

func (z *zone) missing(name string) error {
	return &net.DNSError{Err: "no such host", Name: name, IsNotFound: !z.broken[name], IsTemporary: z.broken[name]}
}

func (z *zone) LookupTXT(ctx context.Context, name string) ([]string, error) {
	z.ask()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if records, ok := z.txt[strings.TrimSuffix(name, ".")]; ok && !z.broken[name] {
		return records, nil
	}
	return nil, z.missing(name)
}

func (z *zone) LookupMX(_ context.Context, name string) ([]*net.MX, error) {
	z.ask()
	return nil, z.missing(name)
}

func (z *zone) LookupIPAddr(_ context.Context, host string) ([]net.IPAddr, error) {
	z.ask()
	if ips, ok := z.ip[strings.TrimSuffix(host, ".")]; ok {
		return ips, nil
	}
	return nil, z.missing(host)
}

func (z *zone) LookupAddr(_ context.Context, addr string) ([]string, error) {
	z.ask()
	return nil, z.missing(addr)
}

// signer signs mail of a domain.
type signer struct {
	domain, selector string
	key              crypto.Signer
}

func (s signer) record(t *testing.T) (name string, records []string) {
	t.Helper()
	kind, public := "rsa", []byte(nil)
	switch key := s.key.Public().(type) {
	case ed25519.PublicKey:
		kind, public = "ed25519", key
	case *rsa.PublicKey:
		der, err := x509.MarshalPKIXPublicKey(key)
		if err != nil {
			t.Fatal(err)
		}
		public = der
	}
	return s.selector + "._domainkey." + s.domain, []string{"v=DKIM1; k=" + kind + "; p=" + base64.StdEncoding.EncodeToString(public)}
}

// sign returns a mail with a signature over the header keys.
func (s signer) sign(t *testing.T, mail string, keys ...string) string {
	t.Helper()
	var out bytes.Buffer
	err := dkim.Sign(&out, strings.NewReader(mail), &dkim.SignOptions{
		Domain: s.domain, Selector: s.selector, Signer: s.key, HeaderKeys: keys,
		HeaderCanonicalization: dkim.CanonicalizationRelaxed, BodyCanonicalization: dkim.CanonicalizationRelaxed,
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// newSigner returns a signer with an ed25519 key derived from a seed.
func newSigner(domain string, seed byte) signer {
	return signer{domain, "s1", ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))}
}

// rawMail returns a mail from its header lines.
func rawMail(fields ...string) string {
	return strings.Join(fields, "\r\n") + "\r\n\r\nGood morning\r\n"
}

func check(z *zone, raw string, config authenticate.Config) authenticate.Result {
	if z != nil {
		config.Resolver = z
	}
	config.Now = time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	return authenticate.Check(context.Background(), []byte(raw), message.Parse([]byte(raw)), config)
}
