//go:build unix

package embedded

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// account is the unprivileged user that a server runs as when its parent is
// root. A nil account means the user we are.
type account struct {
	name     string
	uid, gid uint32
}

// serverAccount returns the account for servers: nil unless we are root, since
// PostgreSQL refuses to run as root.
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
		if errUID != nil || errGID != nil || uid == 0 {
			continue
		}
		return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, errors.New("postgres does not run as root, and there is no user postgres or nobody to run it as: " +
		"create one, or run this as another user")
}

// String names the account for messages.
func (a *account) String() string {
	if a == nil {
		return "the current user"
	}
	return "user " + a.name
}

// own hands a file or folder to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	if err := os.Chown(path, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("give %s to %s: %w", path, a, err)
	}
	return nil
}

// reaches returns an error that names the first folder on the way to path,
// path itself included, that the account may not pass through.
func (a *account) reaches(path string) error {
	if a == nil {
		return nil
	}
	for dir := path; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("look at %s: %w", dir, err)
		}
		if !a.mayEnter(info) {
			return fmt.Errorf("%s, which postgres runs as because it refuses to run as root, may not enter %s (mode %o): use a folder elsewhere",
				a, dir, info.Mode().Perm())
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (a *account) mayEnter(info os.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	perm := info.Mode().Perm()
	switch {
	case ok && st.Uid == a.uid:
		return perm&0o100 != 0
	case ok && st.Gid == a.gid:
		return perm&0o010 != 0
	}
	return perm&0o001 != 0
}

// command prepares a program that runs as the account, in a process group of
// its own (so that Ctrl-C in a terminal reaches us alone), in a folder that it
// may enter, and with an environment that passes on nothing of ours but where
// programs and libraries are.
func (a *account) command(cmd *exec.Cmd, dir string) *exec.Cmd {
	cmd.Dir = dir
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"} {
		if v, ok := os.LookupEnv(name); ok {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	cmd.SysProcAttr = processAttributes()
	if a != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return cmd
}

// output runs a program to its end and returns what it said. The thread is
// kept meanwhile, as the program would die with it.
func output(cmd *exec.Cmd) ([]byte, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.CombinedOutput()
}
