package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Limits of the values in a file.
const (
	maxFile    = 64 << 10
	maxServers = 32
	maxModel   = 300
	maxSlots   = 256
	minContext = 512
	maxContext = 1 << 20
	maxPack    = 8
)

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)

// ReadConfig reads the configuration of models from a YAML or JSON file. The
// error has a line for each problem, with its place in the file.
func ReadConfig(path string) (Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return Config{}, fmt.Errorf("the file of models: %w", err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return Config{}, fmt.Errorf("the file of models: %w", err)
	}
	c, err := Parse(text)
	if err != nil {
		return Config{}, fmt.Errorf("the file of models %s:\n%w", path, err)
	}
	if c.Calibrations != "" && !filepath.IsAbs(c.Calibrations) {
		c.Calibrations = filepath.Join(filepath.Dir(path), c.Calibrations)
	}
	return c, nil
}

// Parse parses a configuration of models in YAML or JSON.
func Parse(text []byte) (Config, error) {
	if len(text) > maxFile {
		return Config{}, errors.New("is longer than 64 KiB")
	}
	var root yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&root); err != nil {
		return Config{}, errors.New("  is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if decoder.Decode(new(yaml.Node)) != io.EOF {
		return Config{}, errors.New("  has more than one document")
	}
	p := parser{}
	c := Config{Servers: make(map[string]ServerConfig), Tiers: make(map[string]TierConfig)}
	top := p.members(place{root.Content[0], ""}, "servers", "tiers", "dictation", "calibrations")
	c.Calibrations = p.text(top["calibrations"])
	p.each(top["servers"], func(name string, at place) {
		if !nameForm.MatchString(name) {
			p.wrong(at, "the name must be 1 to 63 of a-z, 0-9, dot, - and _, and begin with a letter or a digit")
		}
		c.Servers[name] = p.server(at)
	})
	if len(c.Servers) > maxServers {
		p.wrong(top["servers"], "more than %d servers", maxServers)
	}
	p.each(top["tiers"], func(name string, at place) {
		if !slices.Contains(Tiers(), name) {
			p.wrong(at, "unknown tier; known tiers: %s", strings.Join(Tiers(), ", "))
			return
		}
		c.Tiers[name] = p.tier(at, c)
	})
	p.oneContext(top["tiers"], c)
	if at := top["dictation"]; at.node != nil {
		c.Dictation = p.dictation(at, c)
	}
	if len(p.problems) > 0 {
		return Config{}, errors.Join(p.problems...)
	}
	return c, nil
}

// oneContext requires that tiers with the same model use the same context,
// since a server would reload the model for each size.
func (p *parser) oneContext(at place, c Config) {
	first := make(map[[2]string]string)
	for _, name := range Tiers() {
		t, ok := c.Tiers[name]
		if !ok {
			continue
		}
		of := [2]string{t.Server, t.Model}
		if other, seen := first[of]; !seen {
			first[of] = name
		} else if c.Tiers[other].Context != t.Context {
			p.wrong(at, "%s and %s have the same model on the same server and must have the same context", other, name)
		}
	}
}

func (p *parser) server(at place) ServerConfig {
	m := p.members(at, "dialect", "url", "networks", "slots")
	c := ServerConfig{Dialect: Dialect(p.text(m["dialect"])), URL: p.text(m["url"]), Slots: p.number(m["slots"], 1, maxSlots)}
	if c.Dialect != "" && !slices.Contains(Dialects(), c.Dialect) {
		p.wrong(m["dialect"], "must be one of %s", join(Dialects()))
	}
	if c.URL == "" {
		p.wrong(at, "url is required, such as http://127.0.0.1:8080")
	} else if _, _, err := c.transport(); err != nil {
		p.wrong(m["url"], "%s", strings.TrimPrefix(err.Error(), "url "))
	}
	p.list(m["networks"], func(at place) {
		network, err := netip.ParsePrefix(p.text(at))
		switch {
		case err != nil || network.Masked() != network:
			p.wrong(at, "must be a network, such as 192.168.1.20/32")
		case !private(network):
			p.wrong(at, "is not a network of your own: only parts of 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10 and fc00::/7 are")
		default:
			c.Networks = append(c.Networks, network)
		}
	})
	return c
}

// private reports whether all addresses of a network are for private use: mail
// must not be sent to the public internet, whichever network a file allows.
func private(network netip.Prefix) bool {
	return slices.ContainsFunc(own(), func(p netip.Prefix) bool {
		return p.Bits() <= network.Bits() && p.Contains(network.Addr())
	})
}

func (p *parser) tier(at place, c Config) TierConfig {
	m := p.members(at, "server", "model", "context", "pack")
	t := TierConfig{Context: p.number(m["context"], minContext, maxContext), Pack: p.number(m["pack"], 1, maxPack)}
	t.Server, t.Model = p.serverModel(at, m, c)
	return t
}

func (p *parser) dictation(at place, c Config) (d DictationConfig) {
	d.Server, d.Model = p.serverModel(at, p.members(at, "server", "model"), c)
	return d
}

// serverModel returns the server and the model that members name.
func (p *parser) serverModel(at place, m map[string]place, c Config) (server, model string) {
	server, model = p.text(m["server"]), p.text(m["model"])
	if _, ok := c.Servers[server]; !ok {
		p.wrong(at, "server must be one of those under servers: %s", strings.Join(slices.Sorted(maps.Keys(c.Servers)), ", "))
	}
	if model == "" || len(model) > maxModel {
		p.wrong(at, "model must be the server's name of the model")
	}
	return server, model
}

func join[T ~string](all []T) string {
	var texts []string
	for _, s := range all {
		texts = append(texts, string(s))
	}
	return strings.Join(texts, ", ")
}

// place is a value in a file with its path.
type place struct {
	node *yaml.Node
	path string
}

// parser reads the values of a file and collects the problems.
type parser struct{ problems []error }

func (p *parser) wrong(at place, format string, args ...any) {
	line := 1
	if at.node != nil {
		line = at.node.Line
	}
	p.problems = append(p.problems, fmt.Errorf("  line %d: %s%s", line, at.path, ": "+fmt.Sprintf(format, args...)))
}

// members returns the members of a mapping and rejects other names.
func (p *parser) members(at place, names ...string) map[string]place {
	found := make(map[string]place)
	p.each(at, func(name string, of place) {
		if !slices.Contains(names, name) {
			p.wrong(of, "unknown field; known fields: %s", strings.Join(names, ", "))
			return
		}
		found[name] = of
	})
	return found
}

// each calls a function for every member of a mapping, in order.
func (p *parser) each(at place, call func(name string, at place)) {
	if at.node == nil || at.node.Tag == "!!null" {
		return
	}
	if at.node.Kind != yaml.MappingNode {
		p.wrong(at, "must be a mapping of names to values")
		return
	}
	seen := make(map[string]bool)
	for i := 0; i+1 < len(at.node.Content); i += 2 {
		name := at.node.Content[i].Value
		of := place{at.node.Content[i+1], strings.TrimPrefix(at.path+"."+name, ".")}
		if seen[name] {
			p.wrong(of, "is a duplicate")
			continue
		}
		seen[name] = true
		call(name, of)
	}
}

// list calls a function for every element of a sequence.
func (p *parser) list(at place, call func(at place)) {
	if at.node == nil || at.node.Tag == "!!null" {
		return
	}
	if at.node.Kind != yaml.SequenceNode {
		p.wrong(at, "must be a list")
		return
	}
	for i, n := range at.node.Content {
		call(place{n, fmt.Sprintf("%s[%d]", at.path, i)})
	}
}

func (p *parser) text(at place) string {
	if at.node == nil {
		return ""
	}
	if at.node.Kind != yaml.ScalarNode || at.node.Tag == "!!null" {
		p.wrong(at, "must be a text")
		return ""
	}
	return at.node.Value
}

// number returns a number within bounds, or 0 if it is missing.
func (p *parser) number(at place, least, most int) int {
	if at.node == nil {
		return 0
	}
	n, err := strconv.Atoi(at.node.Value)
	if at.node.Kind != yaml.ScalarNode || err != nil || n < least || n > most {
		p.wrong(at, "must be a number from %d to %d", least, most)
		return 0
	}
	return n
}
