//go:build unix

package embedded

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the unprivileged user that a server runs as when its parent is
// root. A nil account means the current user.
type account struct {
	name     string
	uid, gid uint32
}

// serverAccount returns the account for servers: nil unless the current user
// is root, since PostgreSQL does not run as root.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil // nil means the current user
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if errUID == nil && errGID == nil && uid != 0 {
			return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("postgres does not run as root, and there is no user postgres or nobody to run it as: " +
		"create one, or run this as another user")
}

// own makes the account the owner of a file or folder.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	if err := os.Chown(path, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("make user %s the owner of %s: %w", a.name, path, err)
	}
	return nil
}

// canEnter returns an error if the account may not enter a folder.
func (a *account) canEnter(dir string) error {
	if a == nil {
		return nil
	}
	if err := a.command(exec.Command("/bin/sh", "-c", ":"), dir).Run(); err != nil {
		return fmt.Errorf("user %s, which postgres runs as because it does not run as root, may not enter %s: use a folder elsewhere: %w", a.name, dir, err)
	}
	return nil
}

// command prepares a program that runs as the account, in a process group of
// its own (so that Ctrl-C in a terminal does not reach it), in a folder that
// the account may enter, and with no variables of this process's environment
// but those that say where programs and libraries are.
func (a *account) command(cmd *exec.Cmd, dir string) *exec.Cmd {
	cmd.Dir = dir
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return cmd
}
