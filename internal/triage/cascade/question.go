package cascade

import (
	"fmt"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/triage/classify"
)

// code is a possible answer to a question.
type code struct{ code, value string }

// question is a question of a tier about each message. Its codes begin with
// different letters, so that the first token decides.
type question struct {
	// key is its name in answers, which is short because every token costs
	// time.
	key, name string
	codes     []code
}

func (q question) index(code string) int {
	for i := range q.codes {
		if q.codes[i].code == code {
			return i
		}
	}
	return -1
}

// valueIndex returns the index of a value, or -1.
func (q question) valueIndex(value string) int {
	for i := range q.codes {
		if q.codes[i].value == value {
			return i
		}
	}
	return -1
}

// spec is the definition of a tier's questions.
type spec struct {
	tier Tier
	// version is the version of the prompt and the codes together.
	version string
	// pack is the largest number of messages in a question.
	pack      int
	questions []question
}

func (s spec) question(name string) (question, bool) {
	for _, q := range s.questions {
		if q.name == name {
			return q, true
		}
	}
	return question{}, false
}

// The names of the questions.
const (
	askShow     = "show"
	askKind     = "kind"
	askAct      = "act"
	askCategory = "category"
	askPriority = "priority"
	askScore    = "score"
	askWindow   = "window"
	askFirst    = "first_reason"
	askSecond   = "second_reason"
)

func specOf(tier Tier) spec {
	switch tier {
	case T1:
		return spec{T1, "t1.v1", MaxPack, []question{
			{"s", askShow, []code{{"Y", "yes"}, {"N", "no"}}},
			{"k", askKind, []code{{"B", "bulk"}, {"L", "list"}, {"D", "direct"}}},
		}}
	case T2a:
		return spec{T2a, "t2a.v1", MaxPack, []question{
			{"a", askAct, actCodes()}, {"c", askCategory, categoryCodes()}, {"p", askPriority, priorityCodes()},
		}}
	case T2b:
		return spec{T2b, "t2b.v1", 1, []question{
			{"s", askScore, []code{{"H", "high"}, {"M", "middle"}, {"L", "low"}}},
			{"w", askWindow, []code{{"T", "today"}, {"W", "this_week"}, {"L", "later"}, {"N", "none"}}},
			{"f", askFirst, reasonCodes()}, {"g", askSecond, reasonCodes()},
		}}
	}
	return spec{}
}

func actCodes() []code {
	return []code{
		{"R", string(classify.Request)}, {"C", string(classify.Commit)}, {"D", string(classify.Deliver)},
		{"P", string(classify.Propose)}, {"M", string(classify.Meet)}, {"A", string(classify.Amend)}, {"F", string(classify.FYI)},
	}
}

func categoryCodes() []code {
	return []code{
		{"PE", string(classify.Primary)}, {"NL", string(classify.Newsletters)}, {"AU", string(classify.Notifications)},
		{"OF", string(classify.Promotions)}, {"RE", string(classify.Receipts)}, {"SO", string(classify.Social)},
	}
}

func priorityCodes() []code {
	return []code{
		{"U", string(classify.Urgent)}, {"N", string(classify.NeedsResponse)}, {"I", string(classify.ForInfo)},
		{"O", string(classify.Promotional)}, {"P", string(classify.Personal)},
	}
}

func reasonCodes() []code {
	return []code{
		{"Q", "question"}, {"D", "deadline"}, {"B", "somebody_waits"}, {"M", "money"}, {"E", "event"}, {"C", "change"},
		{"P", "personal"}, {"N", "none"},
	}
}

// key returns the name of a message in a pack.
func key(i int) string { return fmt.Sprintf("m%d", i+1) }

// schema returns the schema of an answer about n messages: an object with a
// required key for each message.
func (s spec) schema(n int) []byte {
	var each strings.Builder
	each.WriteString(`{"type":"object","properties":{`)
	for i, q := range s.questions {
		comma(&each, i)
		fmt.Fprintf(&each, `"%s":{"type":"string","enum":[%s]}`, q.key, quoted(len(q.codes), func(i int) string { return q.codes[i].code }))
	}
	fmt.Fprintf(&each, `},"required":[%s],"additionalProperties":false}`, quoted(len(s.questions), func(i int) string { return s.questions[i].key }))
	var all strings.Builder
	all.WriteString(`{"type":"object","properties":{`)
	for i := range n {
		comma(&all, i)
		fmt.Fprintf(&all, `"%s":%s`, key(i), each.String())
	}
	fmt.Fprintf(&all, `},"required":[%s],"additionalProperties":false}`, quoted(n, key))
	return []byte(all.String())
}

func comma(b *strings.Builder, i int) {
	if i > 0 {
		b.WriteByte(',')
	}
}

func quoted(n int, name func(int) string) string {
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, `"`+name(i)+`"`)
	}
	return strings.Join(names, ",")
}

// maxTokens limits the tokens of an answer about n messages: no token is
// shorter than a byte, and engines write at most a space after each colon and
// comma.
func (s spec) maxTokens(n int) int {
	size := len(`{}`)
	for i := range n {
		size += len(`"": {}, `) + len(key(i))
		for _, q := range s.questions {
			longest := slices.MaxFunc(q.codes, func(a, b code) int { return len(a.code) - len(b.code) })
			size += len(`"": "", `) + len(q.key) + len(longest.code)
		}
	}
	return size
}
