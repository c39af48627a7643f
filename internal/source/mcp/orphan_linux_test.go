package mcp_test

import (
	"net"
	"os"
	"os/exec"
	"testing"
)

func TestChildDiesWithItsParent(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	owner := exec.Command(self)
	owner.Env = []string{envMode + "=owner", envAddr + "=" + listener.Addr().String()}
	if err := owner.Start(); err != nil {
		t.Fatal(err)
	}
	child, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}

	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = owner.Wait()

	ends(t, child)
}
