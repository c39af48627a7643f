package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
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

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Say which build this is",
		Example: "  countersign version\n  countersign version --json",
		Args:    arguments(0, 0, ""),
		RunE: func(*cobra.Command, []string) error {
			if a.json {
				return a.document(map[string]string{
					"version": Version(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
				})
			}
			_, err := fmt.Fprintf(a.sys.Out, "countersign %s (%s, %s/%s)\n", Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
