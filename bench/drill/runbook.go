package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// recoverBlock is the name of the block that recovers a held database.
const recoverBlock = "recover"

// paragraphs are those of a block: the copy, the restore and the recovery.
type paragraphs []string

// parseRunbook returns the blocks of the runbook by their names. A block is one of code
// whose first line is "# drill: " and its name. Each kind needs its block, and each block
// its kind.
func parseRunbook(page string) (map[string]paragraphs, error) {
	blocks := make(map[string]paragraphs)
	for _, found := range regexp.MustCompile("(?s)\n```sh\n# drill: ([^\n]+)\n(.*?)\n```\n").FindAllStringSubmatch(page, -1) {
		if blocks[found[1]] != nil {
			return nil, fmt.Errorf("the runbook has two blocks %q", found[1])
		}
		blocks[found[1]] = strings.Split(found[2], "\n\n")
	}
	for _, k := range kinds() {
		if n := len(blocks[k.block]); n != k.paragraphs() {
			return nil, fmt.Errorf("the block %q of the runbook has %d paragraphs, not %d", k.block, n, k.paragraphs())
		}
	}
	if n := len(blocks[recoverBlock]); n != 1 {
		return nil, fmt.Errorf("the block %q of the runbook has %d paragraphs, not 1", recoverBlock, n)
	}
	for name := range blocks {
		if name != recoverBlock && !slices.ContainsFunc(kinds(), func(k kind) bool { return k.block == name }) {
			return nil, fmt.Errorf("the block %q of the runbook is not drilled", name)
		}
	}
	return blocks, nil
}

// paragraphs returns the number of paragraphs of the kind's block: a planned move is
// recovered in its own way.
func (k kind) paragraphs() int {
	if k.planned {
		return 3
	}
	return 2
}
