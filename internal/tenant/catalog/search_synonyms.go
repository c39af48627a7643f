package catalog

import (
	"maps"
	"slices"
	"strings"
)

// synonymGroups are words that people and tools use for one another. They are
// the general vocabulary of tools, in no source's own terms; a word may be in
// several groups.
const synonymGroups = `
create make new add insert start open file report
delete remove erase drop forget clear discard
get receive read retrieve fetch show view see load display print look open
content text body
list browse enumerate show
search find query lookup look locate discover
update edit modify change patch set rename close alter
send post write message share publish tell
save write store put persist record keep
append add patch extend
remember memory knowledge observation note store save
folder directory dir
file document doc
bug issue ticket defect problem
task todo item issue
entity node object record person
connect link relate relation associate relationship edge
message msg chat dm text
image picture photo img media
screenshot capture picture
web website site page url internet address browser
navigate visit goto browse open
repository repo project
pr pull request
user person people member contact somebody
size big large length
multiple several many batch
history log recent latest commits
channel room conversation
thread conversation
reply answer respond
react reaction emoji
type enter input write
click press tap
choose select pick
run execute evaluate invoke call
javascript js script
download fetch get
upload attach push
think thinking thought reason plan
step sequence sequential
environment env
repeat echo
revert undo unstage reset
switch checkout change
diff difference compare changes change
check status
sum plus total add
rename move
email mail
calendar event meeting appointment schedule
customer client account contact
delete cancel archive
pay payment charge invoice
database db table
config configuration setting settings
info information detail details metadata
`

// synonymTable maps the stem of a word to the stems of its synonyms.
type synonymTable struct {
	of map[string][]string
	// words are the stems that have synonyms, in order.
	words []string
}

// synonyms is the table of synonymGroups.
var synonyms = newSynonyms(synonymGroups)

func newSynonyms(groups string) synonymTable {
	table := synonymTable{of: make(map[string][]string)}
	for group := range strings.Lines(groups) {
		members := stems(group)
		for _, word := range members {
			for _, other := range members {
				if other != word && !slices.Contains(table.of[word], other) {
					table.of[word] = append(table.of[word], other)
				}
			}
		}
	}
	table.words = slices.Sorted(maps.Keys(table.of))
	return table
}
