package main

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// tag returns the tag of an image of a version.
func tag(version string) string { return strings.ReplaceAll(version, "+", "-") }

// store writes an image as an archive of the layout that OCI defines, which podman,
// skopeo, crane and containerd read, and its SBOM.
func store(image v1.Image, bom []byte, p programs, title, dir string) (made, error) {
	digest, err := image.Digest()
	if err != nil {
		return made{}, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return made{}, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return made{}, err
	}
	m := made{
		Image: title, Version: p.version, Revision: p.revision, Platform: p.system + "/" + p.architecture, Digest: digest.String(),
		Archive: filepath.Join(dir, title+".tar"), SBOM: filepath.Join(dir, title+".cdx.json"),
	}
	if err := os.WriteFile(m.SBOM, bom, 0o644); err != nil {
		return m, err
	}
	blobs, err := os.MkdirTemp(dir, "layout")
	if err != nil {
		return m, err
	}
	defer func() { _ = os.RemoveAll(blobs) }() // it is copied
	to, err := layout.Write(blobs, empty.Index)
	if err != nil {
		return m, err
	}
	named := layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": tag(p.version), "io.containerd.image.name": title + ":" + tag(p.version),
	})
	if err := to.AppendImage(image, named); err != nil {
		return m, err
	}
	return m, pack(blobs, m.Archive)
}

// pack writes a folder as a tar without times and owners.
func pack(dir, archive string) (err error) {
	out, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	var files []file
	err = filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, at)
		files = append(files, file{name: filepath.ToSlash(relative), from: at, mode: 0o644})
		return err
	})
	if err != nil {
		return err
	}
	return writeTar(out, files, nil)
}

func writeLayer(at string, files []file, has map[string]bool) (err error) {
	out, err := os.Create(at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return writeTar(out, files, has)
}

// writeTar writes files in the order of their names, with the folders that has lacks, all
// of root's and of the beginning of time.
func writeTar(out io.Writer, files []file, has map[string]bool) error {
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	w := tar.NewWriter(out)
	written := make(map[string]bool)
	for _, f := range files {
		var folders []string
		for dir := path.Dir(f.name); dir != "." && !written[dir] && !has[dir]; dir = path.Dir(dir) {
			written[dir] = true
			folders = append(folders, dir)
		}
		slices.Reverse(folders)
		for _, dir := range folders {
			if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: time.Unix(0, 0)}); err != nil {
				return err
			}
		}
		if err := writeFile(w, f); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return w.Close()
}

func writeFile(w *tar.Writer, f file) (err error) {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, ModTime: time.Unix(0, 0), Size: int64(len(f.text))}
	if f.from == "" {
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		_, err := w.Write(f.text)
		return err
	}
	in, err := os.Open(f.from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}

// walk calls fn for every entry of a tar.
func walk(r *tar.Reader, fn func(*tar.Header, io.Reader) error) error {
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := fn(header, r); err != nil {
			return err
		}
	}
}

// unpack writes an image's folders and files below a folder.
func unpack(image v1.Image, dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // nothing leads out of it
	if err != nil {
		return err
	}
	files := mutate.Extract(image)
	defer func() { err = errors.Join(err, files.Close(), root.Close()) }()
	return walk(tar.NewReader(files), func(header *tar.Header, body io.Reader) error {
		name := filepath.FromSlash(strings.TrimSuffix(header.Name, "/"))
		switch header.Typeflag {
		case tar.TypeDir:
			return root.MkdirAll(name, 0o755)
		case tar.TypeReg:
			if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
			out, err := root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, fs.FileMode(header.Mode).Perm())
			if err != nil {
				return err
			}
			_, err = io.Copy(out, body)
			return errors.Join(err, out.Close())
		}
		return nil
	})
}
