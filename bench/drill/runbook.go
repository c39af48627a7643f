package main

import (
	"fmt"
	"regexp"
	"strings"
)

// recoverBlock is the name of the block that recovers a held database, moveBlock that of
// the lines before and after the move of one.
const recoverBlock, moveBlock = "recover", "move"

// paragraphs are those of a block: the lines while workers run, and those after.
type paragraphs []string

// parseRunbook returns the blocks of the runbook by their names. A block is one of code
// whose first line is "# drill: " and its name. Each kind needs its block, and each block
// is that of a kind.
func parseRunbook(page string) (map[string]paragraphs, error) {
	blocks := make(map[string]paragraphs)
	for _, found := range regexp.MustCompile("(?s)\n```sh\n# drill: ([^\n]+)\n(.*?)\n```\n").FindAllStringSubmatch(page, -1) {
		if blocks[found[1]] != nil {
			return nil, fmt.Errorf("the runbook has two blocks %q", found[1])
		}
		blocks[found[1]] = strings.Split(found[2], "\n\n")
	}
	want := map[string]int{recoverBlock: 1, moveBlock: 2}
	for _, k := range kinds() {
		want[k.block] = 2
	}
	for name, n := range want {
		if got := len(blocks[name]); got != n {
			return nil, fmt.Errorf("the block %q of the runbook has %d paragraphs, not %d", name, got, n)
		}
	}
	for name := range blocks {
		if want[name] == 0 {
			return nil, fmt.Errorf("the block %q of the runbook is not drilled", name)
		}
	}
	return blocks, nil
}
