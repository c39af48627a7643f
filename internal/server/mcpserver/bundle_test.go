package mcpserver_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign-dev/countersign/internal/server/mcpserver"
	"github.com/countersign-dev/countersign/internal/source/sourcetest"
)

const bundle = "../../../deploy/bundle"

// TestBundleServesTheCatalog starts the program as a desktop assistant that
// installed the bundle does, and has the official tool check the manifest.
func TestBundleServesTheCatalog(t *testing.T) {
	t.Parallel()
	f := newFixture(t, mcpserver.Config{}).tenant("acme")
	validate := script(t, filepath.Join("node_modules", "@anthropic-ai", "mcpb", "dist", "cli", "cli.js"))
	if out, err := exec.CommandContext(t.Context(), validate[0], validate[1], "validate", filepath.Join(bundle, "manifest.json")).CombinedOutput(); err != nil {
		t.Errorf("mcpb validate: %v\n%s", err, out)
	}
	var manifest struct {
		Server struct {
			EntryPoint string `json:"entry_point"`
			Start      struct {
				Command string
				Args    []string
				Env     map[string]string
			} `json:"mcp_config"`
		}
		UserConfig map[string]struct {
			Sensitive bool
			Required  bool
		} `json:"user_config"`
	}
	readJSON(t, filepath.Join(bundle, "manifest.json"), &manifest)
	if start := manifest.Server; start.Start.Command != "${__dirname}/"+start.EntryPoint || !manifest.UserConfig["token"].Sensitive {
		t.Fatalf("manifest = %+v", manifest)
	}
	given := strings.NewReplacer("${user_config.url}", strings.TrimSuffix(f.url, "/mcp"), "${user_config.token}", f.agent.Token.Text())

	start := exec.CommandContext(t.Context(), sourcetest.Program(t, "cmd/countersign"), manifest.Server.Start.Args...)
	for name, value := range manifest.Server.Start.Env {
		start.Env = append(start.Env, name+"="+given.Replace(value))
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "assistant", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: start}, nil)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := session.ListTools(t.Context(), nil)
	if err != nil || len(listed.Tools) != 2+len(followUps) {
		t.Errorf("tools = %+v, %v", listed, err)
	}
	if err := session.Close(); err != nil {
		t.Error(err)
	}
}

// TestRegistryEntry checks the limits of the registry's schema: a name of two
// parts, at most 100 characters of description and title, an address with a
// declared variable.
func TestRegistryEntry(t *testing.T) {
	t.Parallel()
	var entry struct {
		Name, Title, Description, Version string
		Remotes                           []struct {
			Type, URL string
			Variables map[string]struct{ IsRequired bool }
		}
	}
	readJSON(t, filepath.Join(bundle, "server.json"), &entry)

	if !regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`).MatchString(entry.Name) || len(entry.Description) > 100 || len(entry.Title) > 100 || entry.Version == "" {
		t.Errorf("entry = %+v", entry)
	}
	if !slices.ContainsFunc(entry.Remotes, func(r struct {
		Type, URL string
		Variables map[string]struct{ IsRequired bool }
	}) bool {
		return r.Type == "streamable-http" && r.URL == "https://{host}/mcp" && r.Variables["host"].IsRequired
	}) {
		t.Errorf("remotes = %+v, want the URL of /mcp on a host that its owner names", entry.Remotes)
	}
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
