package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/countersign-dev/countersign/internal/postgres/embedded"
)

// orphanEnv makes the test binary a parent that waits to be killed.
const orphanEnv = "COUNTERSIGN_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(orphanEnv) != "" {
		os.Exit(parent())
	}
	os.Exit(m.Run())
}

// parent starts a server, prints its process and waits to be killed.
func parent() int {
	server, err := embedded.Start(context.Background(), embedded.Config{Fast: true})
	if err != nil {
		fmt.Println("error:", err)
		return 1
	}
	fmt.Println(server.Pid(), server.Dir())
	_, _ = io.Copy(io.Discard, os.Stdin) // until killed
	return 0
}

func TestServerDiesWithItsParent(t *testing.T) {
	t.Parallel()
	rows := map[string]func(*exec.Cmd, io.Closer) error{
		"parent is killed": func(cmd *exec.Cmd, _ io.Closer) error { return cmd.Process.Kill() },
		"parent returns":   func(_ *exec.Cmd, stdin io.Closer) error { return stdin.Close() },
	}
	for name, end := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), orphanEnv+"=1")
			stdin, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(stdout).ReadString('\n')
			if err != nil {
				t.Fatalf("the parent said %q: %v", line, err)
			}
			var pid int
			var dir string
			if _, err := fmt.Sscan(line, &pid, &dir); err != nil {
				t.Fatalf("the parent said %q: %v", line, err)
			}
			server, guard := watchProcess(t, pid), watchProcess(t, guardOf(t, cmd.Process.Pid))

			if err := end(cmd, stdin); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // "signal: killed" in one of the rows

			awaitEnd(t, "the server", server)
			awaitEnd(t, "the guard", guard)
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the server's temporary folder: %v, want that it is gone", err)
			}
		})
	}
}

// guardOf returns the parent's child that is a shell.
func guardOf(t *testing.T, parent int) int {
	t.Helper()
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", parent))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", parent, task.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for child := range strings.FieldsSeq(string(text)) {
			cmdline, err := os.ReadFile("/proc/" + child + "/cmdline")
			if err == nil && strings.Contains(string(cmdline), "countersign-pg-guard") {
				var pid int
				if _, err := fmt.Sscan(child, &pid); err != nil {
					t.Fatal(err)
				}
				return pid
			}
		}
	}
	t.Fatalf("process %d has no guard", parent)
	return 0
}

// watchProcess opens a handle that becomes readable when the process ends.
func watchProcess(t *testing.T, pid int) int {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("watch process %d: %v", pid, err)
	}
	t.Cleanup(func() {
		if err := unix.Close(fd); err != nil {
			t.Error(err)
		}
	})
	return fd
}

func awaitEnd(t *testing.T, what string, fd int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		left := time.Until(deadline)
		if left <= 0 {
			t.Fatalf("%s is alive a minute after its parent's end", what)
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if err != nil && !errors.Is(err, syscall.EINTR) {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
	}
}
