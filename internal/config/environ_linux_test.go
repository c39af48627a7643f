package config_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/countersign-dev/countersign/internal/config"
)

// asWhat selects the program that this test binary runs as a child.
const asWhat = "COUNTERSIGN_TEST_AS"

func TestMain(m *testing.M) {
	switch as := os.Getenv(asWhat); as {
	case "parent", "careless parent":
		os.Exit(parent(as == "parent"))
	case "child":
		os.Exit(child())
	}
	os.Exit(m.Run())
}

// parent is a process with secrets that starts a program.
func parent(careful bool) int {
	if careful {
		taken := config.Lookup(config.TakeEnviron())
		if taken("COUNTERSIGN_SECRET_KEY") != "hunter2" || os.Getenv("COUNTERSIGN_SECRET_KEY") != "" {
			fmt.Println("the environment was not taken")
			return 1
		}
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{asWhat + "=child"}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// child tries to read the environment and the memory of its parent.
func child() int {
	for _, file := range []string{"environ", "mem"} {
		f, err := os.Open(fmt.Sprintf("/proc/%d/%s", os.Getppid(), file))
		if err == nil {
			_ = f.Close()
		}
		fmt.Printf("%s: refused %t\n", file, errors.Is(err, fs.ErrPermission))
	}
	return 0
}

func TestChildrenCannotReadTheirParent(t *testing.T) {
	t.Parallel()
	for as, want := range map[string]string{
		"careless parent": "environ: refused false\nmem: refused false\n",
		"parent":          "environ: refused true\nmem: refused true\n",
	} {
		cmd := exec.Command("/proc/self/exe") // the binary's path may be unreadable
		cmd.Env = []string{asWhat + "=" + as, "DATABASE_URL=postgres://u:hunter2@db/x", "COUNTERSIGN_SECRET_KEY=hunter2"}
		if os.Getuid() == 0 { // root can read everything
			const nobody = 65534
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}

		out, err := cmd.CombinedOutput()

		if err != nil || string(out) != want {
			t.Errorf("the child of a %s says %q, %v, want %q", as, out, err, want)
		}
	}
}
