package discover

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// mcpFiles are the configurations of MCP clients, by program.
func mcpFiles() []Origin {
	return []Origin{
		{Program: "claude desktop", File: ".config/Claude/claude_desktop_config.json"},
		{Program: "claude desktop", File: "Library/Application Support/Claude/claude_desktop_config.json"},
		{Program: "claude code", File: ".claude.json"},
		{Program: "cursor", File: ".cursor/mcp.json"},
		{Program: "vs code", File: ".config/Code/User/mcp.json"},
		{Program: "vs code", File: "Library/Application Support/Code/User/mcp.json"},
		{Program: "windsurf", File: ".codeium/windsurf/mcp_config.json"},
		{Program: "gemini", File: ".gemini/settings.json"},
		{Program: "gaia", File: ".gaia/mcp_servers.json"},
	}
}

// mcpClients reads the mail servers in configurations of MCP clients: their names and
// arguments, and variables with an address or the name of a server.
func mcpClients(s *search) {
	for _, at := range mcpFiles() {
		raw := s.read(at.Program, at.File)
		if raw == nil {
			continue
		}
		type server struct {
			Command string            `json:"command"`
			Args    []string          `json:"args"`
			URL     string            `json:"url"`
			Env     map[string]string `json:"env"`
		}
		var of struct {
			MCPServers map[string]server `json:"mcpServers"`
			Servers    map[string]server `json:"servers"`
		}
		if json.Unmarshal(raw, &of) != nil {
			s.skip(at, "is not JSON of an MCP client")
			continue
		}
		if of.Servers == nil {
			of.Servers = make(map[string]server)
		}
		maps.Copy(of.Servers, of.MCPServers)
		for _, name := range slices.Sorted(maps.Keys(of.Servers)) {
			is := of.Servers[name]
			if !aboutMail(strings.Join(append([]string{name, is.Command, is.URL}, is.Args...), " ")) {
				continue
			}
			f := Finding{Kind: IMAP}
			for _, key := range slices.Sorted(maps.Keys(is.Env)) {
				f.set(strings.ToUpper(key), is.Env[key])
			}
			for _, arg := range is.Args {
				if _, value, _ := strings.Cut(arg, "="); f.Address == "" && address(value) != "" {
					f.Address = value
				} else if f.Address == "" {
					f.Address = address(arg)
				}
			}
			at.Key = name
			s.add(f, at)
		}
	}
}

// aboutMail reports whether a text names a mail server.
func aboutMail(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{"mail", "imap", "outlook", "ms365", "ms-365"}, func(word string) bool { return strings.Contains(text, word) })
}

// set sets a field from a variable of a program.
func (f *Finding) set(key, value string) {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(key, word) })
	}
	switch {
	case value == "":
	case hide(strings.ToLower(key), value) == hidden:
		f.Stored = true
	case has("SMTP") && has("HOST", "SERVER"):
		f.SMTP.Host = value
	case has("SMTP") && has("PORT"):
		f.SMTP.Port = port(value)
	case has("SMTP"):
	case has("HOST", "SERVER"):
		f.Server.Host = value
	case has("PORT"):
		f.Server.Port = port(value)
	case f.Address == "" && address(value) != "":
		f.Address = value
	case has("USER", "LOGIN"):
		f.User = value
	}
}
