package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// execute runs the command with more environment, forwards signals to it and
// returns its exit code.
func execute(args, env []string, signals <-chan os.Signal, stderr io.Writer) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(stderr, "withpg:", err)
		return exitNotStarted
	}
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }() // received below
	for {
		select {
		case sig := <-signals:
			if sig == syscall.SIGINT && onTerminal() {
				continue // Ctrl-C has reached the command already
			}
			_ = cmd.Process.Signal(sig) // it may have just ended
		case err := <-ended:
			return exitCode(cmd.ProcessState, err, stderr)
		}
	}
}

// onTerminal reports whether a terminal's Ctrl-C goes to this process group, and
// so to the command too.
func onTerminal() bool {
	group, err := unix.IoctlGetInt(int(os.Stdin.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func exitCode(state *os.ProcessState, err error, stderr io.Writer) int {
	if state == nil {
		fmt.Fprintln(stderr, "withpg:", err)
		return exitNoServer
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return exitSignalled + int(status.Signal())
	}
	return state.ExitCode()
}
