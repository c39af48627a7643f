package mailsetup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/discover"
)

// ask asks a person for a line. Without one the answer is the default.
func (s *setup) ask(question, byDefault string) (string, error) {
	if s.flags.yes {
		return byDefault, nil
	}
	if byDefault != "" {
		question += " [" + byDefault + "]"
	}
	fmt.Fprint(s.app.Err, command.Safe(question)+": ")
	text, err := s.in.ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	if text = strings.TrimSpace(text); text == "" {
		return byDefault, nil
	}
	return text, nil
}

// askSecret asks a person for a secret, which does not show on a terminal. It may be
// empty.
func (s *setup) askSecret(question string) (string, error) {
	if s.flags.yes {
		return "", nil
	}
	file, ok := s.app.In.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return s.ask(question, "")
	}
	fmt.Fprint(s.app.Err, command.Safe(question)+": ")
	raw, err := term.ReadPassword(int(file.Fd()))
	fmt.Fprintln(s.app.Err)
	if err != nil {
		return "", fmt.Errorf("read the password: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// secrets are the credentials of a mailbox: for reading, and for changing it. Both are
// empty if stored ones are kept. Of a login with OAuth, read is its text, and token its
// access token.
type secrets struct{ read, write, token string }

// maxSecret bounds the bytes of a file with a password.
const maxSecret = 16 << 10

// secrets returns the passwords of a mailbox, from files or the person. They are
// typed once: a second run keeps the stored ones.
func (s *setup) secrets(ctx context.Context, p place, m mailbox, existing *wire.TriageAccount) (is secrets, err error) {
	if m.Kind == discover.Maildir {
		return is, nil
	}
	for _, of := range []struct {
		file string
		into *string
	}{{s.flags.password, &is.write}, {s.flags.readPassword, &is.read}} {
		if of.file == "" {
			continue
		}
		raw, err := s.app.ReadFile(of.file, maxSecret)
		if err != nil {
			return is, err
		}
		if *of.into = strings.TrimRight(string(raw), "\r\n"); *of.into == "" {
			return is, command.Misuse("the file of the password is empty")
		}
	}
	if is != (secrets{}) {
		if is.read == "" {
			is.read = is.write
		}
		return is, nil
	}
	if existing != nil && existing.HasSecret && sameServer(existing.Connection, m.connection()) {
		s.say("Password: the stored one is kept; --password replaces it.")
		return is, nil
	}
	if m.auth != "" {
		l, err := s.readLogin(ctx, p, m)
		if err != nil {
			return is, err
		}
		is.token = l.Tokens.Access
		is.read, err = l.Text()
		return is, err
	}
	if m.provider.AppPassword != "" {
		s.say("%s wants an app password: %s", m.provider.Title, m.provider.AppPassword)
	}
	if right := m.provider.ReadOnly; right != "" {
		if is.read, err = s.askSecret("App password for reading, with the right “" + right + "”"); err != nil || is.read == "" {
			return is, errors.Join(err, needSecret(is.read))
		}
		is.write, err = s.askSecret("App password for changes, with full rights (empty: triage only reads)")
		return is, err
	}
	if is.write, err = s.askSecret("Password of " + m.User); err != nil {
		return is, err
	}
	is.read = is.write
	return is, needSecret(is.read)
}

func needSecret(text string) error {
	if text != "" {
		return nil
	}
	return command.Misuse("the mailbox needs a password; name a file with --password")
}

// sameServer reports whether a stored password may be kept.
func sameServer(a, b wire.TriageConnection) bool {
	return strings.EqualFold(a.Host, b.Host) && a.Port == b.Port && a.User == b.User && a.Security == b.Security && a.Auth == b.Auth
}
