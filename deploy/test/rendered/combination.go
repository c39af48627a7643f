package rendered

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Readme is the document of the manifests, below deploy.
const Readme = manifests + "/README.md"

// Namespace is where the objects of folders belong that set no namespace.
const Namespace = "countersign"

// A Combination is a set of folders of deploy/k8s that, by the document, can
// be used together.
type Combination struct {
	Name       string
	Folder     string
	Components []string
}

// Folders returns all folders of the combination.
func (c Combination) Folders() []string { return append([]string{c.Folder}, c.Components...) }

func (c Combination) kustomization() string {
	var b strings.Builder
	b.WriteString("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n")
	if c.Folder == "base" {
		fmt.Fprintf(&b, "namespace: %s\n", Namespace)
	}
	fmt.Fprintf(&b, "resources: [%s]\n", path.Join("..", manifests, c.Folder))
	// The document requires every overlay to name the image of the model server.
	b.WriteString("images:\n")
	for _, image := range []string{"model-server", "registry.internal/llama.cpp"} {
		fmt.Fprintf(&b, "- {name: %s, digest: \"sha256:%064d\"}\n", image, 1)
	}
	if len(c.Components) > 0 {
		b.WriteString("components:\n")
		for _, component := range c.Components {
			fmt.Fprintf(&b, "- %s\n", path.Join("..", manifests, component))
		}
	}
	return b.String()
}

// Combinations returns the combinations in the document's block
// "combinations": a line for each, NAME: FOLDER [COMPONENT …].
func (s Source) Combinations() ([]Combination, error) {
	text, err := s.block("combinations")
	if err != nil {
		return nil, err
	}
	var all []Combination
	for line := range strings.Lines(text) {
		name, folders, ok := strings.Cut(strings.TrimSpace(line), ":")
		words := strings.Fields(folders)
		if !ok || len(words) == 0 {
			return nil, fmt.Errorf("deploy/%s: combination %q is not NAME: FOLDER [COMPONENT …]", Readme, line)
		}
		c := Combination{Name: name, Folder: words[0]}
		for _, component := range words[1:] {
			if !strings.Contains(component, "/") {
				component = "components/" + component
			}
			c.Components = append(c.Components, component)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("deploy/%s: %w", Readme, errors.New("the list of combinations is empty"))
	}
	return all, nil
}

// block returns the text of a fenced block of the document.
func (s Source) block(language string) (string, error) {
	document, err := s.File(Readme)
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile("(?ms)^```" + regexp.QuoteMeta(language) + "\n(.*?)^```").FindSubmatch(document)
	if found == nil {
		return "", fmt.Errorf("deploy/%s has no block ```%s", Readme, language)
	}
	return string(found[1]), nil
}
