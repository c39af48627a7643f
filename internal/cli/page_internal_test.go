package cli

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/cli/command"
)

var namedCommand = regexp.MustCompile(`<Command of="countersign ([^"]+)"`)

// The operator's page names the command of each view: it exists, with these flags.
func TestThePageNamesCommandsThatExist(t *testing.T) {
	t.Parallel()
	found := 0
	err := fs.WalkDir(os.DirFS("../../web/src"), ".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil || path.Ext(file) != ".tsx" {
			return err
		}
		text, err := os.ReadFile("../../web/src/" + file)
		for _, named := range namedCommand.FindAllStringSubmatch(string(text), -1) {
			found++
			cmd, rest, err := root(&command.App{}).Find(strings.Fields(named[1]))
			if err != nil || !cmd.Runnable() {
				t.Errorf("%s names countersign %s, which is no command: %v", file, named[1], err)
				continue
			}
			for _, word := range rest {
				flag, isFlag := strings.CutPrefix(word, "--")
				if isFlag && cmd.Flag(flag) == nil || !isFlag && word != strings.ToUpper(word) {
					t.Errorf("%s names countersign %s: %q is neither a flag nor a placeholder", file, named[1], word)
				}
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d commands named, %v", found, err)
	}
}
