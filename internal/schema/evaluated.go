package schema

// evaluated holds the evaluated members or items of an object or array, for
// unevaluatedProperties and unevaluatedItems. A nil *evaluated records nothing.
type evaluated struct {
	allNames, allItems bool
	names              map[string]struct{}
	items              map[int]struct{}
	// first is the number of leading items that were evaluated.
	first int
}

func (n *evaluated) name(name string) {
	if n == nil || n.allNames {
		return
	}
	if n.names == nil {
		n.names = make(map[string]struct{})
	}
	n.names[name] = struct{}{}
}

func (n *evaluated) item(i int) {
	if n == nil || n.allItems {
		return
	}
	if n.items == nil {
		n.items = make(map[int]struct{})
	}
	n.items[i] = struct{}{}
}

func (n *evaluated) upTo(first int) {
	if n != nil {
		n.first = max(n.first, first)
	}
}

func (n *evaluated) everyName() {
	if n != nil {
		n.allNames, n.names = true, nil
	}
}

func (n *evaluated) everyItem() {
	if n != nil {
		n.allItems, n.items = true, nil
	}
}

// size returns the number of notes.
func (n *evaluated) size() int { return len(n.names) + len(n.items) }

// merge adds the notes of another check of the same value.
func (n *evaluated) merge(other *evaluated) {
	if n == nil {
		return
	}
	n.upTo(other.first)
	if other.allNames {
		n.everyName()
	}
	if other.allItems {
		n.everyItem()
	}
	for name := range other.names {
		n.name(name)
	}
	for i := range other.items {
		n.item(i)
	}
}

func (n *evaluated) hasName(name string) bool {
	_, ok := n.names[name]
	return ok || n.allNames
}

func (n *evaluated) hasItem(i int) bool {
	_, ok := n.items[i]
	return ok || n.allItems || i < n.first
}
