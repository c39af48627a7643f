package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/bench/process"
)

// user is the user id of the image's processes.
const user = 65532

// host runs the image's programs: in containers of runc, as the image's user,
// with a read-only root, without capabilities, in the network of this machine;
// or as plain processes, where there is no runc.
type host struct {
	rootfs, bundles string
	runc            string
}

func newHost(rootfs string, plain bool) (*host, error) {
	rootfs, err := filepath.Abs(rootfs)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(rootfs, "api")); err != nil {
		return nil, fmt.Errorf("no image in %s; see -help", rootfs)
	}
	h := &host{rootfs: rootfs}
	if h.bundles, err = os.MkdirTemp("", "rolling"); err != nil {
		return nil, err
	}
	if !plain && os.Geteuid() == 0 {
		h.runc, _ = exec.LookPath("runc") // empty without one
	}
	return h, nil
}

func (h *host) close() { _ = os.RemoveAll(h.bundles) }

// describe returns a description of the environment of the programs.
func (h *host) describe() string {
	if h.runc == "" {
		return "NO CONTAINERS (runc needs to be installed, and root): plain processes from " + h.rootfs
	}
	return "containers of runc: user 65532, read-only root, no capabilities, no new privileges, host network"
}

// migrate runs the image's own migration.
func (h *host) migrate(ctx context.Context, url string) error {
	c, err := h.start([]string{"/countersign", "migrate"}, "DATABASE_URL="+url)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, c.kill)
	defer stop()
	if state := c.child.State(); !state.Success() {
		return fmt.Errorf("countersign migrate: %s", state)
	}
	return nil
}

// container is a running program.
type container struct {
	host  *host
	id    string
	child *process.Child
}

// start starts a program of the image.
func (h *host) start(args []string, environ ...string) (*container, error) {
	c := &container{host: h, id: "rolling-" + uuid.NewString()}
	if h.runc == "" {
		child, err := process.Start(filepath.Join(h.rootfs, args[0]), environ, nil, os.Stderr, args[1:]...)
		c.child = child
		return c, err
	}
	bundle := filepath.Join(h.bundles, c.id)
	if err := os.Mkdir(bundle, 0o700); err != nil {
		return nil, err
	}
	spec, err := json.Marshal(h.spec(args, append(environ, "PATH=/")))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(bundle, "config.json"), spec, 0o600); err != nil {
		return nil, err
	}
	c.child, err = process.Start(h.runc, nil, nil, os.Stderr, "run", "--bundle", bundle, c.id)
	return c, err
}

// object is JSON.
type object map[string]any

// spec is the configuration of a container, in the form that OCI defines.
func (h *host) spec(args, environ []string) object {
	return object{
		"ociVersion": "1.0.2",
		"process": object{
			"user": object{"uid": user, "gid": user}, "args": args, "env": environ, "cwd": "/", "capabilities": object{}, "noNewPrivileges": true,
		},
		"root": object{"path": h.rootfs, "readonly": true},
		"mounts": []object{
			{"destination": "/proc", "type": "proc", "source": "proc"},
			{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755", "size=65536k"}},
		},
		"linux": object{
			"namespaces": []object{{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}},
			"resources":  object{"memory": object{"limit": 512 << 20}, "devices": []object{{"allow": false, "access": "rwm"}}},
		},
	}
}

// kill ends the program as a crash would.
func (c *container) kill() {
	if c.host.runc != "" {
		// It fails only for a container that has ended.
		_ = exec.Command(c.host.runc, "kill", c.id, "KILL").Run()
		<-c.child.Ended()
		return
	}
	c.child.Kill()
}

// terminate asks the program to end, kills it after kill, and returns the
// duration.
func (c *container) terminate(ctx context.Context, kill time.Duration) (time.Duration, error) {
	began := time.Now()
	if err := syscall.Kill(c.child.PID(), syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return 0, err
	}
	timer := time.NewTimer(kill)
	defer timer.Stop()
	if kill == 0 {
		c.kill()
	}
	select {
	case <-c.child.Ended():
	case <-timer.C:
		c.kill()
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	return time.Since(began), nil
}

// hasEnded reports whether the program has ended.
func (c *container) hasEnded() bool {
	select {
	case <-c.child.Ended():
		return true
	default:
		return false
	}
}

// short is the time as tables show it.
func short(d time.Duration) string {
	return strings.TrimSuffix(d.Round(100*time.Millisecond).String(), "0s")
}
