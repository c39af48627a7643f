// Package rendered makes the Kubernetes objects of deploy/k8s as kustomize
// makes them for an operator, and reads them strictly. It changes no file: a
// test of a faulty manifest patches the objects in memory.
package rendered

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// root is the folder deploy in the memory that kustomize reads.
const root = "/deploy"

// manifests is the folder of kustomize's files below deploy.
const manifests = "k8s"

// A Source is the folder deploy, read once.
type Source struct{ files map[string][]byte }

// Open reads the files that kustomize may read below dir, the folder deploy.
func Open(dir string) (Source, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(filepath.Join(dir, manifests), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(relative)], err = os.ReadFile(name)
		return err
	})
	if err != nil {
		return Source{}, fmt.Errorf("read the manifests: %w", err)
	}
	return Source{files: files}, nil
}

// File returns a file below deploy.
func (s Source) File(name string) ([]byte, error) {
	text, ok := s.files[name]
	if !ok {
		return nil, fmt.Errorf("deploy/%s: %w", name, fs.ErrNotExist)
	}
	return text, nil
}

// With returns a source in which one file has another text.
func (s Source) With(name, text string) Source {
	files := maps.Clone(s.files)
	files[name] = []byte(text)
	return Source{files: files}
}

// place puts an object that names no namespace where kubectl would. Objects of
// the cluster have none.
func place(object *unstructured.Unstructured) {
	if object.GetNamespace() == "" && !slices.Contains([]string{"Namespace", "DeviceClass", "ClusterRole"}, object.GetKind()) {
		object.SetNamespace(Namespace)
	}
}

// Folders returns the folders below deploy/k8s that kustomize can build.
func (s Source) Folders() []string {
	var folders []string
	for name := range s.files {
		if folder, ok := strings.CutPrefix(name, manifests+"/"); ok && path.Base(folder) == "kustomization.yaml" {
			folders = append(folders, path.Dir(folder))
		}
	}
	slices.Sort(folders)
	return folders
}

// Parts returns the names of the folders of a combination, including those
// that its folders name: the last element of each path.
func (s Source) Parts(c Combination) ([]string, error) {
	seen := map[string]bool{}
	var walk func(folder string) error
	walk = func(folder string) error {
		if seen[folder] {
			return nil
		}
		seen[folder] = true
		text, err := s.File(path.Join(manifests, folder, "kustomization.yaml"))
		if err != nil {
			return err
		}
		var k struct{ Resources, Components []string }
		if err := yaml.Unmarshal(text, &k); err != nil {
			return fmt.Errorf("deploy/%s/%s: %w", manifests, folder, err)
		}
		for _, next := range append(k.Resources, k.Components...) {
			if path.Ext(next) != "" {
				continue // a file
			}
			if err := walk(path.Join(folder, next)); err != nil {
				return err
			}
		}
		return nil
	}
	var names []string
	for _, folder := range c.Folders() {
		if err := walk(folder); err != nil {
			return nil, err
		}
	}
	for folder := range seen {
		names = append(names, path.Base(folder))
	}
	slices.Sort(names)
	return names, nil
}

// Render returns the objects of a combination. They are those that kubectl
// kustomize prints for a kustomization that names the combination's folders,
// in the namespace that the folders set.
func (s Source) Render(c Combination) (Set, error) {
	disk := filesys.MakeFsInMemory()
	for name, text := range s.files {
		if err := disk.WriteFile(path.Join(root, name), text); err != nil {
			return Set{}, fmt.Errorf("render %s: %w", c.Name, err)
		}
	}
	folder := path.Join(root, "combination")
	if err := disk.WriteFile(path.Join(folder, "kustomization.yaml"), []byte(c.kustomization())); err != nil {
		return Set{}, fmt.Errorf("render %s: %w", c.Name, err)
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, folder)
	if err != nil {
		return Set{}, fmt.Errorf("render %s: %w", c.Name, err)
	}
	set := Set{Combination: c}
	for _, resource := range made.Resources() {
		text, err := resource.MarshalJSON()
		if err != nil {
			return Set{}, fmt.Errorf("render %s: %w", c.Name, err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			return Set{}, fmt.Errorf("render %s: %w", c.Name, err)
		}
		place(object)
		set.Objects = append(set.Objects, object)
	}
	if len(set.Objects) == 0 {
		return Set{}, fmt.Errorf("render %s: %w", c.Name, errors.New("no objects"))
	}
	return set, nil
}
