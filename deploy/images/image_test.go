package main

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// fixture is the shared image of the tests, because building takes a while.
type fixture struct {
	made
	dir, rootfs string
}

func build(ctx context.Context, dir string, args ...string) (fixture, error) {
	f := fixture{dir: filepath.Join(dir, "out"), rootfs: filepath.Join(dir, "rootfs")}
	var out bytes.Buffer
	if err := run(ctx, append([]string{"-json", "-o", f.dir, "-rootfs", f.rootfs}, args...), &out); err != nil {
		return f, err
	}
	return f, json.Unmarshal(out.Bytes(), &f.made)
}

// shared builds the image once for all tests.
func shared() func(t *testing.T) fixture {
	var once sync.Once
	var f fixture
	var err error
	return func(t *testing.T) fixture {
		t.Helper()
		once.Do(func() {
			var dir string
			if dir, err = os.MkdirTemp("", "images"); err == nil {
				f, err = build(context.WithoutCancel(t.Context()), dir)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
}

// TestImage has the tests of one image as subtests, and deletes it at the end.
func TestImage(t *testing.T) {
	t.Parallel()
	get := shared()
	first := get(t)
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(first.dir)) })

	for name, test := range map[string]func(*testing.T, fixture){
		"the same commit gives the same image": sameTwice, "the files": exactFiles, "the labels": labels, "the SBOM": completeSBOM,
		"the certificates": trustedRoots, "the archive": validArchive, "over a base": overABase, "with Compose": composition,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, get(t))
		})
	}
}

// sameTwice builds everything again, in other folders.
func sameTwice(t *testing.T, first fixture) {
	second, err := build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}

	if second.Digest != first.Digest {
		t.Errorf("the digests are %s and %s, want one", first.Digest, second.Digest)
	}
	one, err := os.ReadFile(first.Archive)
	if err != nil {
		t.Fatal(err)
	}
	other, err := os.ReadFile(second.Archive)
	if err != nil || !bytes.Equal(one, other) {
		t.Errorf("the archives differ, %v", err)
	}
}

// open returns the image of an archive, having checked every digest in it.
func open(t *testing.T, f fixture) v1.Image {
	t.Helper()
	dir := t.TempDir()
	in, err := os.Open(f.Archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	err = walk(tar.NewReader(in), func(header *tar.Header, body io.Reader) error {
		at := filepath.Join(dir, filepath.FromSlash(header.Name))
		if header.Typeflag == tar.TypeDir {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			return err
		}
		text, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		return os.WriteFile(at, text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := v1.NewHash(f.Digest)
	if err != nil {
		t.Fatal(err)
	}
	image, err := index.Image(digest)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(image); err != nil {
		t.Errorf("the image is not valid: %v", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Annotations["org.opencontainers.image.ref.name"] != tag(f.Version) {
		t.Errorf("the index is %+v, %v, want one image with the tag", manifest, err)
	}
	return image
}

func validArchive(t *testing.T, f fixture) { open(t, f) }

// listing is an image's files: their modes, and that all are root's.
func listing(t *testing.T, image v1.Image) map[string]int64 {
	t.Helper()
	files := mutate.Extract(image)
	defer func() { _ = files.Close() }()
	found := make(map[string]int64)
	err := walk(tar.NewReader(files), func(header *tar.Header, _ io.Reader) error {
		if header.Uid != 0 || header.Gid != 0 || header.ModTime.Unix() != 0 {
			t.Errorf("%s is of %d:%d and of %s, want root's and of no time", header.Name, header.Uid, header.Gid, header.ModTime)
		}
		found[header.Name] = header.Mode
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func exactFiles(t *testing.T, f fixture) {
	want := map[string]int64{
		"LICENSE": 0o644, "api": 0o755, "countersign": 0o755, "triage": 0o755, "worker": 0o755, "sbom.cdx.json": 0o644, "etc": 0o755,
		"etc/group": 0o644, "etc/passwd": 0o644, "etc/ssl": 0o755, "etc/ssl/certs": 0o755, "etc/ssl/certs/ca-certificates.crt": 0o644,
	}

	got := listing(t, open(t, f))

	if !maps.Equal(got, want) {
		t.Errorf("the image has %v, want %v", got, want)
	}
	passwd, err := os.ReadFile(filepath.Join(f.rootfs, "etc", "passwd"))
	if err != nil || !strings.Contains(string(passwd), "\ncountersign:x:65532:65532:") {
		t.Errorf("passwd is %q, %v, want the user of the image", passwd, err)
	}
}

func labels(t *testing.T, f fixture) {
	config, err := open(t, f).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}

	if config.Config.User != "65532:65532" || !slices.Equal(config.Config.Entrypoint, []string{"/countersign"}) || config.OS+"/"+config.Architecture != f.Platform {
		t.Errorf("the image runs %q as %q on %s/%s", config.Config.Entrypoint, config.Config.User, config.OS, config.Architecture)
	}
	said, err := exec.CommandContext(t.Context(), filepath.Join(f.rootfs, "countersign"), "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	label := config.Config.Labels["org.opencontainers.image.version"]
	if words := strings.Fields(string(said)); len(words) < 2 || words[1] != label || label != f.Version {
		t.Errorf("countersign version says %q, and the label is %q", said, label)
	}
	for _, key := range []string{"revision", "source", "licenses", "created", "title"} {
		if config.Config.Labels["org.opencontainers.image."+key] == "" {
			t.Errorf("the image has no label %s", key)
		}
	}
	if label == "devel" || strings.Contains(label, "dirty") {
		t.Errorf("the version is %q, want that of the commit", label)
	}
}

// completeSBOM compares the SBOM with the go command's information on the
// binaries.
func completeSBOM(t *testing.T, f fixture) {
	text, err := os.ReadFile(f.SBOM)
	if err != nil {
		t.Fatal(err)
	}
	inside, err := os.ReadFile(filepath.Join(f.rootfs, "sbom.cdx.json"))
	if err != nil || !bytes.Equal(text, inside) {
		t.Errorf("the SBOM in the image is another one, %v", err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	listed, known := make(map[string]bool), make(map[string]bool)
	for _, c := range *bom.Components {
		known[c.BOMRef] = true
		if strings.HasPrefix(c.BOMRef, "pkg:golang/") {
			listed[c.Name+" "+c.Version] = true
		}
	}
	for _, d := range *bom.Dependencies {
		for _, ref := range *d.Dependencies {
			if !known[ref] {
				t.Errorf("%s depends on %s, which is not listed", d.Ref, ref)
			}
		}
	}
	want := map[string]bool{"stdlib " + strings.TrimPrefix(runtime.Version(), "go"): true}
	for _, name := range names() {
		out, err := exec.CommandContext(t.Context(), "go", "version", "-m", filepath.Join(f.rootfs, name)).Output()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(out)) {
			if fields := strings.Fields(line); len(fields) > 2 && (fields[0] == "dep" || fields[0] == "mod") {
				want[fields[1]+" "+fields[2]] = true
			}
		}
	}
	if len(want) < 50 {
		t.Fatalf("the binaries have %d modules", len(want))
	}
	for module := range want {
		if !listed[module] {
			t.Errorf("the SBOM does not list %s", module)
		}
	}
	for module := range listed {
		if !want[module] && !strings.HasPrefix(module, rootsModule+" ") {
			t.Errorf("the SBOM lists %s, which is in no binary", module)
		}
	}
}

func trustedRoots(t *testing.T, f fixture) {
	text, err := os.ReadFile(filepath.Join(f.rootfs, "etc", "ssl", "certs", "ca-certificates.crt"))
	if err != nil {
		t.Fatal(err)
	}

	pool := x509.NewCertPool()
	if n := strings.Count(string(text), "BEGIN CERTIFICATE"); !pool.AppendCertsFromPEM(text) || n < 100 {
		t.Errorf("the image has %d CA certificates that can be read", n)
	}
}

// overABase makes countersign-stdio over an image that has Node, users and CA
// certificates of its own.
func overABase(t *testing.T, _ fixture) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	theirs := map[string][]byte{"usr/local/bin/node": []byte("node"), "etc/passwd": []byte("node:x:1000:1000::/:/bin/sh\n"), "etc/ssl/certs/ca-certificates.crt": []byte("theirs\n")}
	below, err := crane.Image(theirs)
	if err != nil {
		t.Fatal(err)
	}
	config, err := below.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config.OS, config.Architecture, config.Config.Env = "linux", runtime.GOARCH, []string{"PATH=/usr/local/bin"}
	if below, err = mutate.ConfigFile(below, config); err != nil {
		t.Fatal(err)
	}
	reference := strings.TrimPrefix(server.URL, "http://") + "/node"
	if err := crane.Push(below, reference+":22", crane.Insecure); err != nil {
		t.Fatal(err)
	}
	digest, err := below.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := build(t.Context(), t.TempDir(), "-plain-http", "-base", reference+":22"); err == nil || !strings.Contains(err.Error(), "digest") {
		t.Errorf("a base without a digest: %v, want an error that asks for one", err)
	}

	f, err := build(t.Context(), t.TempDir(), "-plain-http", "-base", reference+"@"+digest.String())
	if err != nil {
		t.Fatal(err)
	}

	got, err := open(t, f).ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if f.Image != "countersign-stdio" || got.Config.User != "65532:65532" || !slices.Contains(got.Config.Env, "PATH=/usr/local/bin") || got.Config.Labels["org.opencontainers.image.base.digest"] != digest.String() {
		t.Errorf("%s runs as %q with %q over %q", f.Image, got.Config.User, got.Config.Env, got.Config.Labels)
	}
	for name, want := range theirs {
		if text, err := os.ReadFile(filepath.Join(f.rootfs, name)); err != nil || !bytes.Equal(text, want) {
			t.Errorf("%s is %q, %v, want that of the base", name, text, err)
		}
	}
	if _, err := os.Stat(filepath.Join(f.rootfs, "worker")); err != nil {
		t.Errorf("the programs are missing: %v", err)
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{{"-platform", "linux"}, {"build"}, {"-nothing"}} {
		if err := run(t.Context(), args, io.Discard); err == nil {
			t.Errorf("run(%q) = nil, want an error", args)
		}
	}
}
