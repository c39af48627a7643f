package audit

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/countersign-dev/countersign/client"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/cli/command"
)

// Note is a head that somebody keeps elsewhere, signed if a third party is to
// check it. Its time is that of the machine that wrote it.
type Note struct {
	Tenant     envelope.TenantID `json:"tenant_id"`
	Checkpoint int64             `json:"checkpoint_no"`
	Hash       audit.Hash        `json:"hash"`
	NotedAt    time.Time         `json:"noted_at"`
	Signature  []byte            `json:"signature,omitempty"`
}

// text returns the text that is signed.
func (n *Note) text() []byte {
	return fmt.Appendf(nil, "countersign head 1\n%s\n%d\n%s\n%s\n", n.Tenant, n.Checkpoint, n.Hash, n.NotedAt.Format(time.RFC3339))
}

// ReadNote reads a note from a file. One that lacks anything but the signature is
// none.
func ReadNote(file string) (Note, error) {
	var n Note
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &n)
	}
	if err == nil && (n.Tenant == envelope.TenantID{} || n.Checkpoint < 1 || n.Hash == audit.Hash{} || n.NotedAt.IsZero()) {
		err = errors.New("it lacks tenant_id, checkpoint_no, hash or noted_at")
	}
	if err != nil {
		return Note{}, fmt.Errorf("%s is not a note of a head: %w", file, err)
	}
	return n, nil
}

// knownHead returns the head of a hash, or of the note in a file. Of a hash alone
// the tenant and the number are zero.
func knownHead(text string) (n Note, err error) {
	if n.Hash, err = audit.ParseHash(text); err != nil {
		if n, err = ReadNote(text); errors.Is(err, fs.ErrNotExist) {
			return n, command.Misuse("--head must be the 64 hexadecimal digits of a hash, or the file of a note; %s is neither", text)
		}
		return n, err
	}
	if n.Hash == (audit.Hash{}) {
		return n, command.Misuse("--head must not be zeros; give the hash of a head")
	}
	return n, nil
}

func auditHead(a *command.App) *cobra.Command {
	var tenant, keyFile, noteFile, publicFile string
	cmd := command.NewLocal("head", command.NoArguments(), func(ctx context.Context, _ []string) error {
		if noteFile != "" {
			return checkNote(a, noteFile, publicFile)
		}
		log, err := open(ctx, a, tenant)
		if err != nil {
			return err
		}
		defer log.close()
		return showHead(ctx, a, log, keyFile)
	})
	cmd.Flags().StringVar(&tenant, "tenant", "", "`name` of the tenant; reads the database of DATABASE_URL directly")
	cmd.Flags().StringVar(&keyFile, "sign", "", "sign the head with the ed25519 key in this `file`; \"keygen\" writes one")
	cmd.Flags().StringVar(&noteFile, "check", "", "check the signature of the noted head in this `file`")
	cmd.Flags().StringVar(&publicFile, "public-key", "", "public key `file` for --check")
	return cmd
}

// currentHead returns the tenant and the head of its chain.
func currentHead(ctx context.Context, log auditor) (audit.Closing, error) {
	return log.export(ctx, audit.Span{From: time.Now().AddDate(100, 0, 0)}, "", func([]byte) error { return nil })
}

// showHead writes the head of the chain as JSON, signed if there is a key, and
// then records that it was noted. A head that could not be written is not
// recorded.
func showHead(ctx context.Context, a *command.App, log auditor, keyFile string) error {
	closing, err := currentHead(ctx, log)
	if err != nil {
		return err
	}
	if closing.Head == nil {
		return errors.New("the chain has no checkpoint yet; the worker writes one every minute while there are new events")
	}
	n := Note{Tenant: closing.Tenant, Checkpoint: closing.Head.Checkpoint, Hash: closing.Head.Hash, NotedAt: time.Now().UTC().Truncate(time.Second)}
	if keyFile != "" {
		key, err := readKey(keyFile, "PRIVATE KEY", x509.ParsePKCS8PrivateKey)
		private, ok := key.(ed25519.PrivateKey)
		if err != nil || !ok {
			return errors.Join(fmt.Errorf("%s has no ed25519 key; countersign audit keygen makes one", keyFile), err)
		}
		n.Signature = ed25519.Sign(private, n.text())
	}
	if err = a.WriteJSON(n); err != nil {
		return err
	}
	return recordNote(ctx, a, log, *closing.Head)
}

// recordNote records that a head was noted. If the caller may only read the
// log, it prints that this was not recorded.
func recordNote(ctx context.Context, a *command.App, log auditor, head audit.Head) error {
	err := log.note(ctx, head)
	if errors.Is(err, client.ErrDenied) {
		a.Note("Not recorded for `countersign doctor`: that requires an operator's token with the scope audit:write.")
		return nil
	}
	if err != nil {
		return fmt.Errorf("the head was written, but not recorded as noted: %w", err)
	}
	return nil
}

// checkNote checks the signature of a note.
func checkNote(a *command.App, noteFile, publicFile string) error {
	if publicFile == "" {
		return command.Misuse("--check needs --public-key FILE")
	}
	n, err := ReadNote(noteFile)
	if err != nil {
		return err
	}
	key, err := readKey(publicFile, "PUBLIC KEY", x509.ParsePKIXPublicKey)
	public, ok := key.(ed25519.PublicKey)
	if err != nil || !ok {
		return errors.Join(fmt.Errorf("%s has no public ed25519 key", publicFile), err)
	}
	if !ed25519.Verify(public, n.text(), n.Signature) {
		return fmt.Errorf("the note in %s is not signed by this key, or was changed", noteFile)
	}
	return a.Print("signed: checkpoint %d of tenant %s has the hash %s, noted %s\n", n.Checkpoint, n.Tenant, n.Hash, n.NotedAt.Format(time.RFC3339))
}

// readKey reads the PEM block of a type from a file, and parses it.
func readKey(file, kind string, parse func([]byte) (any, error)) (any, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s is not a PEM file with a %s", file, kind)
	}
	return parse(block.Bytes)
}

func auditKeygen(a *command.App) *cobra.Command {
	return command.NewLocal("keygen FILE", command.Arguments(1, 1, "the file of the new key"), func(_ context.Context, args []string) error {
		public, private, err := ed25519.GenerateKey(nil)
		if err != nil {
			return err
		}
		secret, err := x509.MarshalPKCS8PrivateKey(private)
		if err != nil {
			return err
		}
		shown, err := x509.MarshalPKIXPublicKey(public)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(args[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		err = pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: secret})
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		return pem.Encode(a.Out, &pem.Block{Type: "PUBLIC KEY", Bytes: shown})
	})
}
