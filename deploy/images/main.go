// Command images makes Countersign's container image as an OCI archive, without
// a container engine and without root, and its SBOM. The same commit gives the
// same digest. With a base it makes the image countersign-stdio.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

// made is the report of run.
type made struct {
	Image    string `json:"image"`
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Platform string `json:"platform"`
	Digest   string `json:"digest"`
	Archive  string `json:"archive"`
	SBOM     string `json:"sbom"`
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("images", flag.ContinueOnError)
	root := flags.String("root", filepath.Join("..", ".."), "the `folder` of the repository")
	to := flags.String("o", filepath.Join("..", "..", "bin", "images"), "the `folder` to write to")
	platform := flags.String("platform", "linux/"+runtime.GOARCH, "the platform, as `os/architecture`")
	base := flags.String("base", "", "makes countersign-stdio over this image: a `reference` in a registry with a digest")
	plain := flags.Bool("plain-http", false, "the registry of the base has no TLS")
	rootfs := flags.String("rootfs", "", "also writes the image's file system to this `folder`")
	asJSON := flags.Bool("json", false, "print the result as JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	system, architecture, ok := strings.Cut(*platform, "/")
	if !ok || flags.NArg() > 0 {
		return errors.New("it takes flags alone, and -platform is as linux/amd64; -h lists them")
	}
	scratch, err := os.MkdirTemp("", "countersign-images")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }() // the system cleans up the rest
	under, err := pull(ctx, *base, *plain, system, architecture)
	if err != nil {
		return err
	}
	programs, err := buildPrograms(ctx, *root, scratch, system, architecture)
	if err != nil {
		return err
	}
	image, bom, err := assemble(programs, under, filepath.Join(*root, "LICENSE"), scratch)
	if err != nil {
		return err
	}
	if *rootfs != "" {
		if err := unpack(image, *rootfs); err != nil {
			return err
		}
	}
	result, err := store(image, bom, programs, under.name(), *to)
	if err != nil {
		return err
	}
	if *asJSON {
		return json.NewEncoder(out).Encode(result)
	}
	_, err = fmt.Fprintf(out, "%s:%s for %s\n%s\n%s\n%s\n", result.Image, tag(result.Version), result.Platform, result.Digest, result.Archive, result.SBOM)
	return err
}
