package command

import (
	"runtime/debug"
)

// Version is the build's: the module's version, or the commit that it was
// built from, or "devel".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		const enough = 12
		if s.Key == "vcs.revision" && len(s.Value) >= enough {
			return s.Value[:enough]
		}
	}
	return "devel"
}
