package catalog

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/tenant/policy"
)

// FullName is a tool's name by what it does: module.entity.action, as in
// mail.message.send. It is inferred from the source and the tool's name unless
// an operator gave another one, so two tools may share one.
type FullName struct {
	Module, Entity, Action string
}

// String is the name with dots between.
func (n FullName) String() string { return n.Module + "." + n.Entity + "." + n.Action }

// Description is what operators say of a tool beside its source. What is
// empty is left to what is inferred.
type Description struct {
	Name FullName
	// SideEffects are what a call changes, each in a few words; an empty list
	// says nothing, and nil leaves it to a guess.
	SideEffects *[]string
	// Reversal is how a call is undone; nil for not at all.
	Reversal *Reversal
}

// The bounds of a description.
const (
	maxSideEffects     = 20
	maxSideEffectRunes = 200
)

// wordPattern is a part of a full name.
var wordPattern = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,99}$`)

// Validate says which fields are wrong. The error is an
// *envelope.InvalidError.
func (d Description) Validate() error {
	var fields []envelope.FieldError
	wrong := func(at string, rule envelope.Rule, message string) {
		fields = append(fields, envelope.FieldError{Pointer: at, Rule: rule, Message: message})
	}
	for at, part := range map[string]string{"/module": d.Name.Module, "/entity": d.Name.Entity, "/action": d.Name.Action} {
		if part != "" && !wordPattern.MatchString(part) {
			wrong(at, envelope.RulePattern, "must be 1 to 100 of a-z, 0-9, - and _, and start with a letter or a digit")
		}
	}
	if d.SideEffects != nil {
		if len(*d.SideEffects) > maxSideEffects {
			wrong("/side_effects", envelope.RuleMaxItems, "must have at most "+strconv.Itoa(maxSideEffects)+" items")
		}
		for i, text := range *d.SideEffects {
			if text == "" || utf8.RuneCountInString(text) > maxSideEffectRunes || hides(text) {
				wrong("/side_effects/"+strconv.Itoa(i), envelope.RuleFormat, "must be a text of at most "+strconv.Itoa(maxSideEffectRunes)+" characters that all show")
			}
		}
	}
	if d.Reversal != nil {
		fields = append(fields, d.Reversal.problems("/reversal")...)
	}
	if len(fields) == 0 {
		return nil
	}
	slices.SortFunc(fields, func(a, b envelope.FieldError) int { return strings.Compare(a.Pointer, b.Pointer) })
	return &envelope.InvalidError{Fields: fields}
}

// describe sets what operators say of the tool, and what is inferred where
// they say nothing. Risk, effect and recipients are there already.
func (t *Tool) describe(d Description) {
	t.Described = d
	t.FullName = inferName(t.Key)
	if d.Name.Module != "" {
		t.FullName.Module = d.Name.Module
	}
	if d.Name.Entity != "" {
		t.FullName.Entity = d.Name.Entity
	}
	if d.Name.Action != "" {
		t.FullName.Action = d.Name.Action
	}
	if d.SideEffects != nil {
		t.SideEffects = *d.SideEffects
	} else {
		t.SideEffects = t.inferSideEffects()
	}
	t.Reversal = d.Reversal
}

// Reversible says that nothing stays of a call, or that there is a way to
// undo it.
func (t *Tool) Reversible() bool { return t.Effect == envelope.EffectRead || t.Reversal != nil }

// The side effects that are inferred.
const (
	effectWrites   = "changes data at its source"
	effectDestroys = "may delete or overwrite"
	effectReaches  = "reaches the people its arguments name"
)

func (t *Tool) inferSideEffects() []string {
	found := []string{}
	if t.Risk == policy.RiskRead {
		return found
	}
	found = append(found, effectWrites)
	if t.Risk == policy.RiskDanger {
		found = append(found, effectDestroys)
	}
	if len(t.Recipients) > 0 {
		found = append(found, effectReaches)
	}
	return found
}

// inferName makes a full name of a key. The module is always the source, so
// that no source can give its tools the names of another one's.
func inferName(key policy.Key) FullName {
	source := words(key.Source)
	module := strings.Join(source, "_")
	parts := words(key.Action)
	if len(parts) > len(source) && slices.Equal(parts[:len(source)], source) {
		parts = parts[len(source):]
	}
	entity, action := split(parts)
	if entity == "" {
		entity = module
	}
	return FullName{clip(module), clip(entity), clip(action)}
}

// split tells what is done from what it is done to. A verb that stands first
// comes before one that stands last, and that before any other; where there is
// none, the tool itself is called.
func split(parts []string) (entity, action string) {
	n := len(parts)
	at := slices.IndexFunc(parts, isVerb)
	if at < 0 {
		return strings.Join(parts, "_"), "call"
	}
	if at > 0 && isVerb(parts[n-1]) {
		at = n - 1
	}
	return strings.Join(slices.Delete(slices.Clone(parts), at, at+1), "_"), parts[at]
}

func isVerb(w string) bool {
	switch w {
	case "accept", "add", "append", "approve", "archive", "assign", "book", "build", "calculate", "call", "cancel", "check", "clean", "clear",
		"close", "comment", "commit", "complete", "connect", "convert", "copy", "count", "create", "decline", "delete", "deploy", "describe",
		"disable", "download", "draft", "duplicate", "edit", "enable", "execute", "export", "fetch", "filter", "find", "forward", "generate",
		"get", "grant", "import", "insert", "install", "invite", "list", "lock", "lookup", "make", "mark", "merge", "modify", "move", "new",
		"open", "patch", "pay", "pin", "post", "publish", "purge", "push", "put", "query", "read", "refund", "register", "reject", "remove",
		"rename", "replace", "reply", "request", "reset", "resolve", "restart", "restore", "resume", "revert", "revoke", "run", "save",
		"schedule", "search", "send", "set", "share", "show", "start", "stop", "submit", "subscribe", "summarize", "sync", "test", "transfer",
		"translate", "trigger", "unarchive", "undo", "unlock", "unpin", "unshare", "unsubscribe", "update", "upload", "upsert", "validate",
		"verify", "view", "wait", "withdraw", "write":
		return true
	}
	return false
}

// clip keeps a part of a name within its bound.
func clip(part string) string {
	const most = 100
	return part[:min(len(part), most)]
}

// words takes a name apart where its writer did: at what is no letter and no
// digit of ASCII, and before a capital, as in createIssue and HTTPServer.
func words(name string) []string {
	var found []string
	var at strings.Builder
	end := func() {
		if at.Len() > 0 {
			found = append(found, at.String())
			at.Reset()
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end()
			continue
		case unicode.IsUpper(r) && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			end()
		}
		at.WriteRune(unicode.ToLower(r))
	}
	end()
	return found
}

// Reversal is how a call of a tool is undone by a call of another one.
type Reversal struct {
	// Tool is what undoes it.
	Tool policy.Key
	// Args are the arguments of that call, a JSON object with the references
	// of ReversalScope. Empty is {}.
	Args json.RawMessage
}
