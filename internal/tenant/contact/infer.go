package contact

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/jsonref"
)

// Limits on inference from a schema.
const (
	guessDepth = 8
	guessNodes = 5000
)

// InferRecipients returns patterns for the places in a tool's input schema that
// seem to contain recipients: fields of format email or idn-email, and fields
// with a well-known name such as to, cc, attendees, phone_number or channel, in
// snake_case, camelCase or kebab-case. Fields for the sender or an end of a
// relation, and fields of a type that cannot contain a recipient, are omitted.
//
// It follows properties, items, combinators such as allOf, and $ref within the
// schema; a recursive schema is followed once. It returns at most MaxPatterns
// patterns, those nearest to the root first and sorted within a level. For an
// invalid schema it returns none.
func InferRecipients(inputSchema json.RawMessage) []string {
	var root any
	if err := json.Unmarshal(inputSchema, &root); err != nil {
		return nil
	}
	g := guesser{root: root, left: guessNodes, found: map[string]int{}}
	g.schema(root, nil, nil)
	list := slices.SortedFunc(maps.Keys(g.found), func(a, b string) int {
		if d := g.found[a] - g.found[b]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	return list[:min(len(list), MaxPatterns)]
}

// guesser walks a schema.
type guesser struct {
	root  any
	left  int            // remaining number of nodes
	found map[string]int // patterns and how deep they are
}

// schema infers from the schema of the value at a path; refs are the references
// on the way to it.
func (g *guesser) schema(node any, path, refs []string) {
	schema, ok := node.(map[string]any)
	if !ok || len(path) > guessDepth || g.left == 0 {
		return
	}
	g.left--
	if g.names(schema, path) {
		g.add(schema, path)
		return
	}
	if properties, ok := schema["properties"].(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			if isEnd(name, properties) {
				continue
			}
			g.schema(properties[name], append(slices.Clip(path), name), refs)
		}
	}
	below := append(slices.Clip(path), wildcard)
	g.schema(schema["items"], below, refs)
	if tuple, ok := schema["items"].([]any); ok { // before draft 2020-12
		for _, sub := range tuple {
			g.schema(sub, below, refs)
		}
	}
	g.schema(schema["additionalProperties"], below, refs)
	for _, keyword := range []string{"prefixItems", "patternProperties"} {
		for _, sub := range subschemas(schema[keyword]) {
			g.schema(sub, below, refs)
		}
	}
	for _, keyword := range []string{"if", "then", "else"} {
		g.schema(schema[keyword], path, refs)
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf", "dependentSchemas"} {
		for _, sub := range subschemas(schema[keyword]) {
			g.schema(sub, path, refs)
		}
	}
	if ref, ok := schema["$ref"].(string); ok && !slices.Contains(refs, ref) {
		g.schema(g.resolve(ref), path, append(slices.Clip(refs), ref))
	}
}

// isEnd reports whether a field is one end of a relation, or the target of a
// move, and so not a recipient: a to next to a from and the type of a relation,
// or a destination next to a source and no text.
func isEnd(name string, properties map[string]any) bool {
	name = plainName(name)
	if name != "to" && name != "destination" {
		return false
	}
	siblings := make(map[string]bool, len(properties))
	for sibling := range properties {
		siblings[plainName(sibling)] = true
	}
	anyOf := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return siblings[name] })
	}
	if name == "to" {
		return siblings["from"] && anyOf("relation", "relationtype", "relationship", "relationshiptype", "predicate", "edgetype", "linktype")
	}
	return siblings["source"] && !anyOf("text", "body", "message", "content", "subject", "template")
}

// subschemas returns the schemas in a keyword's list or object, in order.
func subschemas(node any) []any {
	switch node := node.(type) {
	case []any:
		return node
	case map[string]any:
		var list []any
		for _, name := range slices.Sorted(maps.Keys(node)) {
			list = append(list, node[name])
		}
		return list
	}
	return nil
}

// resolve returns the target of a reference within the schema, or nil.
func (g *guesser) resolve(ref string) any {
	rest, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	path, _ := jsonref.ParsePointer(unpercent(rest))
	if path == nil && rest != "" {
		return nil
	}
	node, _ := path.Find(g.root)
	return node
}

// names reports whether the value at a path seems to name recipients.
func (g *guesser) names(schema map[string]any, path []string) bool {
	if len(path) == 0 {
		return false
	}
	name := plainName(path[len(path)-1])
	for _, sender := range []string{"from", "sender", "replyto", "returnpath"} {
		if strings.HasPrefix(name, sender) {
			return false
		}
	}
	format, _ := schema["format"].(string)
	switch {
	case format == "email" || format == "idn-email":
		return true
	case strings.HasPrefix(format, "date") || strings.HasPrefix(format, "time") || format == "duration":
		return false // a range from … to
	}
	if !knownName(name) {
		return false
	}
	text, number, unknown := kinds(schema)
	return text || unknown || number && name != "to" && name != "cc" && name != "bcc"
}

// kinds reports whether a schema's type can be a string, array or object, or a
// number, or is unknown.
func kinds(schema map[string]any) (text, number, unknown bool) {
	var list []any
	switch t := schema["type"].(type) {
	case string:
		list = []any{t}
	case []any:
		list = t
	default:
		_, constant := schema["const"].(bool)
		return false, false, !constant
	}
	for _, t := range list {
		text = text || t == "string" || t == "array" || t == "object"
		number = number || t == "integer" || t == "number"
	}
	return text, number, false
}

// plainName returns a field's name in lower case without word separators.
func plainName(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(name))
}

// knownName reports whether a plain name is a common name for recipients.
func knownName(name string) bool {
	for _, ending := range []string{"email", "emails", "emailaddress", "emailaddresses", "phonenumber", "phonenumbers", "msisdn", "msisdns", "recipient", "recipients"} {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	switch name {
	case "to", "cc", "bcc", "toaddress", "toaddresses", "ccaddresses", "bccaddresses", "tonumber", "tonumbers",
		"destination", "destinations", "destinationnumber", "destinationaddress",
		"phone", "phones", "mobile", "mobiles", "mobilenumber", "telephone", "tel", "whatsapp", "sms",
		"channel", "channels", "channelid", "channelids", "channelname",
		"chat", "chatid", "chatids", "room", "roomid", "conversation", "conversationid",
		"user", "users", "userid", "userids", "username", "usernames", "handle", "handles",
		"contact", "contacts",
		"attendee", "attendees", "invitee", "invitees", "participant", "participants", "guest", "guests":
		return true
	}
	return false
}

// add adds a pattern for the value at a path, or for its elements if it can only
// be a list.
func (g *guesser) add(schema map[string]any, path []string) {
	if schema["type"] == "array" && path[len(path)-1] != wildcard {
		path = append(slices.Clip(path), wildcard)
	}
	var text strings.Builder
	for _, segment := range path {
		if strings.Contains(segment, wildcard) {
			segment = wildcard // a pattern has no way to name it alone
		}
		text.WriteString("/" + envelope.EscapePointer(segment))
	}
	if _, err := ParsePattern(text.String()); err == nil {
		g.found[text.String()] = len(path)
	}
}
