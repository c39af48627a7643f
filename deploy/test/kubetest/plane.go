// Package kubetest starts a Kubernetes control plane for tests: etcd, the API
// server and, on request, the controllers, the scheduler and kwok, which
// simulates the kubelets of nodes. Everything listens on the loopback address,
// on free ports, with files in a temporary folder, so that several planes can
// run concurrently. No container runs.
package kubetest

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// startWithin is generous: the machine may have much else to do.
const startWithin = 3 * time.Minute

// programsVariable names the folder with the programs.
const programsVariable = "COUNTERSIGN_TEST_KUBE"

// Programs returns the folder with the programs of the control plane, which
// scripts/kube.sh builds. Where they are not, the test is skipped.
func Programs(t testing.TB) string {
	t.Helper()
	if dir := os.Getenv(programsVariable); dir != "" {
		return dir
	}
	find := exec.CommandContext(t.Context(), "../../../scripts/kube.sh", "-find")
	var reason strings.Builder
	find.Stderr = &reason
	dir, err := find.Output()
	if err != nil {
		t.Skipf("no control plane, so that nothing was proved: scripts/kube.sh builds it\n%s", reason.String())
	}
	return strings.TrimSpace(string(dir))
}

// A Plane is a control plane that runs until the test ends.
type Plane struct {
	Client

	dir      string
	programs string
	server   string // host:port of the API server
	config   *rest.Config
	running  []*exec.Cmd
}

// Start starts etcd and an API server.
func Start(t testing.TB) *Plane {
	t.Helper()
	programs := Programs(t)
	ctx, cancel := context.WithTimeout(t.Context(), startWithin)
	defer cancel()
	// A port that was free may be taken when its server starts.
	const tries = 3
	for try := 1; ; try++ {
		p := &Plane{dir: t.TempDir(), programs: programs}
		t.Cleanup(p.stop)
		err := p.start(ctx)
		if err == nil {
			return p
		}
		if try == tries || ctx.Err() != nil {
			t.Fatalf("start a control plane: %v", err)
		}
		t.Logf("start a control plane again: %v", err)
		p.stop()
	}
}

func (p *Plane) start(ctx context.Context) error {
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	if err := p.writeKeys(); err != nil {
		return err
	}
	store, peer := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	p.server = "127.0.0.1:" + ports[2]
	if err := p.run("etcd",
		"--data-dir", p.path("etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls", store, "--advertise-client-urls", store,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer,
	); err != nil {
		return err
	}
	if err := p.run("kube-apiserver",
		"--etcd-servers="+store, "--bind-address=127.0.0.1", "--secure-port="+ports[2], "--cert-dir="+p.path("certs"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file="+p.path("account.key"), "--service-account-key-file="+p.path("account.pub"),
		"--service-cluster-ip-range=10.96.0.0/16", "--authorization-mode=Node,RBAC", "--token-auth-file="+p.path("tokens.csv"),
		"--allow-privileged=true", "--endpoint-reconciler-type=none",
	); err != nil {
		return err
	}
	p.config = &rest.Config{
		Host: "https://" + p.server, BearerToken: token, QPS: -1,
		TLSClientConfig:           rest.TLSClientConfig{CAFile: p.path("certs/apiserver.crt")},
		WarningHandlerWithContext: warnings{},
	}
	if err := p.ready(ctx); err != nil {
		return err
	}
	client, err := newClient(p.config)
	p.Client = client
	return err
}

// token is the password of the only user, on the loopback address only.
const token = "test"

func (p *Plane) path(name string) string { return filepath.Join(p.dir, name) }

// writeKeys writes the key that signs the tokens of service accounts, and the
// one user.
func (p *Plane) writeKeys() error {
	const bits = 2048
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("make a key: %w", err)
	}
	for name, text := range map[string][]byte{
		"account.key": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
		"account.pub": pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}),
		"tokens.csv":  []byte(token + ",admin,admin,system:masters\n"),
	} {
		if err := os.WriteFile(p.path(name), text, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// run starts a program whose output goes to a file.
func (p *Plane) run(name string, args ...string) error {
	log, err := os.Create(p.path(filepath.Base(name) + ".log"))
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	defer log.Close()
	program := exec.Command(filepath.Join(p.programs, name), args...)
	program.Stdout, program.Stderr = log, log
	program.SysProcAttr = dieWithParent()
	if err := program.Start(); err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	p.running = append(p.running, program)
	return nil
}

// stop kills the clients before the servers: an API server that is asked to
// end waits for its clients for more than a minute.
func (p *Plane) stop() {
	for len(p.running) > 0 {
		last := p.running[len(p.running)-1]
		p.running = p.running[:len(p.running)-1]
		_ = last.Process.Kill() // it may have ended
		_ = last.Wait()         // it was killed
	}
}

// ready waits until the API server reports that it is ready, or until it has
// ended.
func (p *Plane) ready(ctx context.Context) error {
	var last error
	err := poll(ctx, func() (bool, error) {
		if gone := p.ended(); gone != nil {
			return false, gone
		}
		transport, err := rest.TransportFor(p.config)
		if err != nil {
			last = err // it has not written its certificate yet
			return false, nil
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.config.Host+"/readyz", nil)
		if err != nil {
			return false, err
		}
		answer, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			last = err
			return false, nil
		}
		last = fmt.Errorf("/readyz answers %s", answer.Status)
		return answer.StatusCode == http.StatusOK, answer.Body.Close()
	})
	if err != nil {
		return fmt.Errorf("%w; %w; the API server's last lines:\n%s", err, last, p.lastLines("kube-apiserver"))
	}
	return nil
}

// ended returns an error if a program of the plane has ended.
func (p *Plane) ended() error {
	for _, program := range p.running {
		if err := program.Process.Signal(syscall.Signal(0)); err != nil || zombie(program.Process.Pid) {
			name := filepath.Base(program.Path)
			return fmt.Errorf("%s has ended:\n%s", name, p.lastLines(name))
		}
	}
	return nil
}

// zombie reports whether a child has ended and was not waited for.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false // there is no /proc
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}

// lastLines returns the end of a program's output.
func (p *Plane) lastLines(name string) string {
	text, err := os.ReadFile(p.path(name + ".log"))
	if err != nil {
		return err.Error()
	}
	const enough = 2000
	return string(text[max(0, len(text)-enough):])
}

func freePorts(n int) ([]string, error) {
	var ports []string
	for range n {
		at, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer at.Close() // all are open until all are found
		_, port, err := net.SplitHostPort(at.Addr().String())
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		ports = append(ports, port)
	}
	return ports, nil
}

// errTimeout is the error of poll when the time is over.
var errTimeout = errors.New("the time is over")

// poll calls done until it returns true or an error, or the context ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	const every = 100 * time.Millisecond
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return errTimeout
		case <-ticker.C:
		}
	}
}
