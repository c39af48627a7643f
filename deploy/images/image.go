package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the user id of the image's processes, which own no file in the
// image.
const user = 65532

// base is the image below: nothing, or an image of the operator's.
type base struct {
	image     v1.Image
	reference string
	// files are the paths that it has.
	files map[string]bool
}

// name is the name of an image over the base.
func (b base) name() string {
	if b.reference == "" {
		return "countersign"
	}
	return "countersign-stdio"
}

// pull returns the base that a reference names; without one it is empty.
func pull(ctx context.Context, reference string, plain bool, system, architecture string) (base, error) {
	b := base{reference: reference, files: make(map[string]bool)}
	if reference == "" {
		b.image = mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
		return b, nil
	}
	options := []name.Option{name.StrictValidation}
	if plain {
		options = append(options, name.Insecure)
	}
	digest, err := name.NewDigest(reference, options...)
	if err != nil {
		return b, fmt.Errorf("-base must have a digest, as node@sha256:…, so that the same command gives the same image: %w", err)
	}
	b.image, err = remote.Image(digest, remote.WithContext(ctx), remote.WithPlatform(v1.Platform{OS: system, Architecture: architecture}))
	if err != nil {
		return b, fmt.Errorf("read the base: %w", err)
	}
	files := mutate.Extract(b.image)
	err = walk(tar.NewReader(files), func(header *tar.Header, _ io.Reader) error {
		b.files[strings.Trim(header.Name, "./")] = true
		return nil
	})
	return b, errors.Join(err, files.Close())
}

// file is a file of the image's layer: a path of this machine, or a text.
type file struct {
	name, from string
	mode       int64
	text       []byte
}

// assemble adds a layer with the programs to a base.
func assemble(p programs, under base, license, scratch string) (v1.Image, []byte, error) {
	const roots = "etc/ssl/certs/ca-certificates.crt"
	bom, err := describeModules(p, !under.files[roots])
	if err != nil {
		return nil, nil, err
	}
	var files []file
	for _, name := range names() {
		files = append(files, file{name: name, from: filepath.Join(p.dir, name), mode: 0o755})
	}
	files = append(files, file{name: "LICENSE", from: license, mode: 0o644}, file{name: "sbom.cdx.json", text: bom, mode: 0o644})
	// If a base has these files, they are the operator's.
	for name, text := range map[string]string{
		"etc/passwd": fmt.Sprintf("root:x:0:0:root:/:/sbin/nologin\ncountersign:x:%d:%d:countersign:/:/sbin/nologin\n", user, user),
		"etc/group":  fmt.Sprintf("root:x:0:\ncountersign:x:%d:\n", user),
		roots:        certificates(),
	} {
		if !under.files[name] {
			files = append(files, file{name: name, text: []byte(text), mode: 0o644})
		}
	}
	path := filepath.Join(scratch, "layer.tar")
	if err := writeLayer(path, files, under.files); err != nil {
		return nil, nil, err
	}
	layer, err := tarball.LayerFromFile(path, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, nil, err
	}
	created := v1.Time{Time: p.committed}
	image, err := mutate.Append(under.image, mutate.Addendum{Layer: layer, History: v1.History{Created: created, CreatedBy: "countersign " + p.version}})
	if err != nil {
		return nil, nil, err
	}
	image, err = configure(image, p, under, created)
	return image, bom, err
}

func configure(image v1.Image, p programs, under base, created v1.Time) (v1.Image, error) {
	labels := map[string]string{
		"org.opencontainers.image.title":       under.name(),
		"org.opencontainers.image.description": "The outbox for AI agents' actions: api, worker, triage and the command line",
		"org.opencontainers.image.version":     p.version,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.source":      "https://github.com/countersign-dev/countersign",
	}
	if p.revision != "" {
		labels["org.opencontainers.image.revision"] = p.revision
		labels["org.opencontainers.image.created"] = p.committed.UTC().Format(time.RFC3339)
	}
	if under.reference != "" {
		reference, digest, _ := strings.Cut(under.reference, "@")
		labels["org.opencontainers.image.base.name"], labels["org.opencontainers.image.base.digest"] = reference, digest
	}
	old, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config := old.DeepCopy()
	config.OS, config.Architecture, config.Created, config.Author = p.system, p.architecture, created, ""
	config.Config.User = fmt.Sprintf("%d:%d", user, user)
	config.Config.Entrypoint, config.Config.Cmd, config.Config.WorkingDir = []string{"/countersign"}, nil, "/"
	config.Config.Labels = labels
	if len(config.Config.Env) == 0 {
		config.Config.Env = []string{"PATH=/"}
	}
	if under.reference != "" {
		config.Config.Env = append(config.Config.Env, "HOME=/tmp") // the cache folder of npx
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	annotated, ok := mutate.Annotations(image, labels).(v1.Image)
	if !ok {
		return nil, errors.New("annotating the image did not return an image")
	}
	return annotated, nil
}

// certificates returns the CA certificates that Mozilla's programs trust for TLS, as PEM.
// A CA that is trusted for some of its certificates only is left out, since a file cannot
// express that.
func certificates() string {
	var out bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes all
		}
	}
	return out.String()
}
