// Package dovecottest starts Dovecot for tests, from the distribution's
// package: on a free port, as an unprivileged user, with its mail in a folder
// of its own. Every user name is valid, with the same password.
package dovecottest

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Password is the password of every user.
const Password = "secret-of-the-tests"

// ErrNotInstalled is the error without Dovecot 2.3. Dovecot 2.4 reads another
// format of configuration files.
var ErrNotInstalled = errors.New("no Dovecot 2.3 is installed: scripts/servers.sh installs it")

// Server is a running Dovecot.
type Server struct {
	// Address is without TLS; TLSAddress has a certificate for 127.0.0.1 that
	// Roots verify.
	Address, TLSAddress string
	Roots               *x509.CertPool
	// Dir holds configuration, log and mail.
	Dir string

	owner   *user.User
	command *exec.Cmd
	exited  chan struct{}
}

// New starts a server that stops when the test ends. It skips the test if
// Dovecot is not installed.
func New(t testing.TB) *Server {
	t.Helper()
	s, err := Start()
	if errors.Is(err, ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("errors and warnings of Dovecot:\n%s", s.complaints())
		}
		os.RemoveAll(s.Dir)
	})
	return s
}

// complaints returns the lines of the log that report problems.
func (s *Server) complaints() string {
	text, _ := os.ReadFile(filepath.Join(s.Dir, "dovecot.log"))
	var found strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, " Info: ") {
			found.WriteString(line)
		}
	}
	return found.String()
}

// Start starts a server with an empty folder of mail.
func Start() (*Server, error) {
	// A socket path has at most 108 bytes; test folders often exceed that.
	dir, err := os.MkdirTemp("", "dovecot")
	if err != nil {
		return nil, err
	}
	s := &Server{Dir: dir}
	if err := s.configure(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.Restart(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// program returns the path of Dovecot, which is not on every user's PATH.
func program() (string, error) {
	path, err := exec.LookPath("dovecot")
	if err != nil {
		return exec.LookPath("/usr/sbin/dovecot")
	}
	return path, nil
}

func (s *Server) configure() error {
	path, err := program()
	if err != nil {
		return ErrNotInstalled
	}
	version, err := exec.Command(path, "--version").Output()
	if err != nil || !strings.HasPrefix(string(version), "2.3.") {
		return fmt.Errorf("%w (found version %q)", ErrNotInstalled, strings.TrimSpace(string(version)))
	}
	if s.owner, err = user.Current(); err == nil && s.owner.Uid == "0" {
		s.owner, err = user.Lookup("nobody") // Dovecot serves no mail as root
	}
	if err != nil {
		return err
	}
	group, err := user.LookupGroupId(s.owner.Gid)
	if err != nil {
		return err
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	s.Address, s.TLSAddress = fmt.Sprint("127.0.0.1:", ports[0]), fmt.Sprint("127.0.0.1:", ports[1])
	if err := s.certificate(); err != nil {
		return err
	}
	for _, folder := range []string{"run", "state", "mail"} {
		if err := os.Mkdir(filepath.Join(s.Dir, folder), 0o755); err != nil {
			return err
		}
	}
	text := strings.NewReplacer(
		"{dir}", s.Dir, "{user}", s.owner.Username, "{group}", group.Name, "{uid}", s.owner.Uid, "{gid}", s.owner.Gid,
		"{password}", Password, "{port}", strconv.Itoa(ports[0]), "{tls_port}", strconv.Itoa(ports[1]),
	).Replace(configuration)
	if err := os.WriteFile(filepath.Join(s.Dir, "dovecot.conf"), []byte(text), 0o644); err != nil {
		return err
	}
	return s.own(s.Dir)
}

// freePorts returns random ports below the ephemeral ports, so that no socket that asks
// for any port takes one before the server listens.
func freePorts(n int) (ports []int, err error) {
	const first, end = 15000, 30000
	for len(ports) < n {
		listener, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", first+mathrand.IntN(end-first)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, err
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func (s *Server) certificate() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	s.Roots = x509.NewCertPool()
	s.Roots.AppendCertsFromPEM(text)
	return errors.Join(
		os.WriteFile(filepath.Join(s.Dir, "cert.pem"), text, 0o644),
		os.WriteFile(filepath.Join(s.Dir, "key.pem"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
	)
}

// own changes the owner of a folder and its contents to the user of Dovecot.
func (s *Server) own(root string) error {
	if os.Getuid() != 0 {
		return nil
	}
	uid, _ := strconv.Atoi(s.owner.Uid)
	gid, _ := strconv.Atoi(s.owner.Gid)
	return filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	})
}

// Restart restarts the server at the same addresses with the same mail.
func (s *Server) Restart() error {
	path, err := program()
	if err != nil {
		return err
	}
	s.command = exec.Command(path, "-F", "-c", filepath.Join(s.Dir, "dovecot.conf"))
	s.command.Env = []string{"PATH=" + os.Getenv("PATH")}
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		uid, _ := strconv.ParseUint(s.owner.Uid, 10, 32)
		gid, _ := strconv.ParseUint(s.owner.Gid, 10, 32)
		s.command.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid), NoSetGroups: false}
	}
	if err := s.command.Start(); err != nil {
		return err
	}
	s.exited = make(chan struct{})
	go func() { // ends with the command, which Stop and Kill wait for
		_ = s.command.Wait()
		close(s.exited)
	}()
	return s.ready()
}

// ready waits for the greeting.
func (s *Server) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for tick := time.NewTicker(20 * time.Millisecond); ; {
		if conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Address); err == nil {
			_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
			line, err := bufio.NewReader(conn).ReadString('\n')
			conn.Close()
			if err == nil && strings.HasPrefix(line, "* OK") {
				return nil
			}
		}
		select {
		case <-tick.C:
		case <-s.exited:
			return fmt.Errorf("start of Dovecot: %s", s.complaints())
		case <-ctx.Done():
			s.Kill()
			return errors.New("no greeting of Dovecot within 30 s")
		}
	}
}

// Stop stops the server gracefully.
func (s *Server) Stop() {
	_ = s.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
	case <-time.After(10 * time.Second):
	}
	s.Kill()
}

// Kill kills all processes of the server, without a BYE to its clients.
func (s *Server) Kill() {
	_ = syscall.Kill(-s.command.Process.Pid, syscall.SIGKILL)
	<-s.exited
	// Wait until the other processes have ended too: only then can another
	// server bind their sockets.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for tick := time.NewTicker(5 * time.Millisecond); ctx.Err() == nil; <-tick.C {
		if !answers(ctx, "tcp", s.Address) && !s.listens(ctx) {
			return
		}
	}
}

// listens reports whether a process of the server has one of its sockets: each ends for
// itself, and Dovecot does not start while one answers.
func (s *Server) listens(ctx context.Context) (found bool) {
	_ = filepath.WalkDir(filepath.Join(s.Dir, "run"), func(path string, entry os.DirEntry, err error) error {
		if found = err == nil && entry.Type() == os.ModeSocket && answers(ctx, "unix", path); found {
			return filepath.SkipAll
		}
		return nil
	})
	return found
}

func answers(ctx context.Context, network, address string) bool {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// Deliver delivers a message to a folder as a mail server does: to "INBOX" or
// one below.
func (s *Server) Deliver(name, folder string, raw []byte) error {
	home := s.folder(name, folder)
	if _, err := os.Stat(filepath.Join(home, "new")); err != nil {
		for _, part := range []string{"tmp", "new", "cur"} {
			if err := os.MkdirAll(filepath.Join(home, part), 0o700); err != nil {
				return err
			}
		}
		if err := s.own(filepath.Join(s.Dir, "mail", name)); err != nil {
			return err
		}
	}
	base := fmt.Sprintf("%d.R%s.test", time.Now().UnixNano(), rand.Text())
	tmp := filepath.Join(home, "tmp", base)
	if err := os.WriteFile(tmp, raw, 0o600); err != nil {
		return err
	}
	return errors.Join(s.own(tmp), os.Rename(tmp, filepath.Join(home, "new", base)))
}

func (s *Server) folder(name, folder string) string {
	home := filepath.Join(s.Dir, "mail", name)
	if folder == "INBOX" {
		return home
	}
	return filepath.Join(home, folder)
}

// ChangeValidity gives a folder another UIDVALIDITY and its messages other
// UIDs. No other program may use the folder during the call.
func (s *Server) ChangeValidity(name, folder string) error {
	home := s.folder(name, folder)
	list := filepath.Join(home, "dovecot-uidlist")
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	header := strings.Fields(strings.SplitN(string(text), "\n", 2)[0])
	for i, field := range header {
		if number, ok := strings.CutPrefix(field, "V"); ok {
			validity, _ := strconv.Atoi(number)
			header[i] = fmt.Sprint("V", validity+1)
		}
		if strings.HasPrefix(field, "N") {
			header[i] = "N1000"
		}
	}
	indexes, err := filepath.Glob(filepath.Join(home, "dovecot.index*"))
	if err != nil {
		return err
	}
	for _, index := range indexes {
		if err := os.Remove(index); err != nil {
			return err
		}
	}
	return errors.Join(os.WriteFile(list, []byte(strings.Join(header, " ")+"\n"), 0o600), s.own(list))
}

// AcceptTokens restarts the server so that it takes access tokens too (XOAUTH2 and
// OAUTHBEARER), about which it asks the address (RFC 7662).
func (s *Server) AcceptTokens(introspection string) error {
	tokens := "introspection_url = " + introspection + "\nintrospection_mode = post\nusername_attribute = username\nactive_attribute = active\nactive_value = true\n"
	if err := os.WriteFile(filepath.Join(s.Dir, "oauth2.conf"), []byte(tokens), 0o644); err != nil {
		return err
	}
	path := filepath.Join(s.Dir, "dovecot.conf")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed := strings.NewReplacer(
		"auth_mechanisms = plain", "auth_mechanisms = plain xoauth2 oauthbearer",
		"passdb {", "passdb {\n  driver = oauth2\n  mechanisms = xoauth2 oauthbearer\n  args = "+filepath.Join(s.Dir, "oauth2.conf")+"\n}\npassdb {\n  mechanisms = plain",
	).Replace(string(text))
	if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
		return err
	}
	s.Stop()
	return s.Restart()
}
