package signal

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// injection finds orders to an assistant in the visible, the hidden and the raw
// text, since cleaning a text can both create and break a phrase.
func (f *finder) injection() {
	name := ""
	if len(f.m.From) > 0 {
		name = f.from.Name
	}
	if name != "" {
		f.lex.phrases.find(name, &f.found)
	}
	visible := f.found
	f.instructions(visible)
	f.unseenInstructions(visible)
	for _, text := range []string{f.m.Subject, f.m.Text, f.m.Raw} {
		if found := delimiter(clipBytes(text)); found != "" {
			f.add(ForgedDelimiter, found)
			break
		}
	}
	raw := clipBytes(f.m.Raw)
	if tags := tagText(raw); tags != "" {
		f.add(TagCharacters, tags)
		if found := f.phrasesOf(tags); found.has(instruction) {
			f.add(InstructionHidden, tags)
		}
	}
	if f.m.Invisible.Bidi > 0 && overrides(raw) {
		f.add(BidiInText, "")
	}
	if block := encodedBlock(clipBytes(f.m.Text)); block != "" && len(f.m.Text) < 4000 {
		f.add(LongEncodedBlock, block)
	}
}

func (f *finder) phrasesOf(text string) hits {
	var found hits
	f.lex.phrases.find(text, &found)
	return found
}

// instructions adds symbols for visible orders.
func (f *finder) instructions(visible hits) {
	switch weak := visible[hint]; {
	case visible.has(instruction):
		f.add(InstructionToAssistant, visible[instruction].evidence)
	case weak.second != 0:
		f.add(InstructionToAssistant, weak.evidence)
	case weak.first != 0:
		f.add(InstructionHint, weak.evidence)
	}
}

// unseenInstructions adds symbols for orders that a reader does not see.
func (f *finder) unseenInstructions(visible hits) {
	for _, h := range f.m.Hidden {
		if found := f.phrasesOf(clipBytes(h.Text)); found.has(instruction) || found[hint].second != 0 {
			f.add(InstructionHidden, h.Text)
			return
		}
	}
	if f.m.Raw == "" || f.m.Raw == f.m.Text || visible.has(instruction) {
		return
	}
	if found := f.phrasesOf(clipBytes(f.m.Raw)); found.has(instruction) {
		f.add(InstructionHidden, found[instruction].evidence)
	}
}

// delimiters are the markers of prompts and of conversations with models, in
// lower case, by their first character.
var delimiters = sync.OnceValue(func() map[byte][]string {
	return map[byte][]string{
		'<': {
			"<|im_start|>", "<|im_end|>", "<|im_sep|>", "<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|endoftext|>",
			"<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>", "<|begin_of_text|>", "<<sys>>", "<</sys>>", "<start_of_turn>",
			"<end_of_turn>", "<system>", "</system>", "<system_prompt>", "</system_prompt>", "<system-reminder>", "<assistant>",
			"</assistant>", "<instructions>", "</instructions>", "<tool_call>", "</tool_call>", "<tool_response>", "<function_calls>",
			"<function_call>", "</untrusted>", "</user_input>",
		},
		'[': {"[inst]", "[/inst]", "[/system]", "[system:", "[system prompt", "[system message", "[assistant]", "[end of email]", "[end email]"},
		'#': {"### instruction", "### system", "### response", "### assistant", "### user", "### human", "### new instruction", "##system", "## system prompt", "# system prompt"},
		'-': {"---end of email", "--- end of email", "---begin system", "--- begin system", "---end of message", "--- end of message", "--- end of user", "---system", "--- system", "-----begin system"},
		'=': {"===end of", "=== end of", "===system", "=== system", "=== begin", "===begin", "=== new instruct"},
		'{': {`{"role": "system"`, `{"role":"system"`, `{"role": "assistant"`, `{"role":"assistant"`, `{"tool":`, `{"tool_call`, `{"function":`, `{{system`, `{{#system`},
		'`': {"```system", "```tool"},
	}
})

// delimiter returns the first forged delimiter of a text.
func delimiter(text string) string {
	table := delimiters()
	for i := 0; i < len(text); i++ {
		next := strings.IndexAny(text[i:], "<[#-={`")
		if next < 0 {
			return ""
		}
		i += next
		for _, one := range table[text[i]] {
			if len(text)-i >= len(one) && strings.EqualFold(text[i:i+len(one)], one) {
				return text[i:min(len(text), i+60)]
			}
		}
		for i+1 < len(text) && text[i+1] == text[i] && (text[i] == '-' || text[i] == '=') && (i+3 >= len(text) || text[i+3] == text[i]) {
			i++
		}
	}
	return ""
}

// tagText returns the text spelled by tag characters. The flags of England,
// Scotland and Wales use them after a black flag.
func tagText(text string) string {
	if !strings.Contains(text, "\xf3\xa0") {
		return ""
	}
	var b strings.Builder
	flag := false
	for _, r := range text {
		switch {
		case r == 0x1f3f4:
			flag = true
		case r >= 0xe0000 && r <= 0xe007f:
			if !flag {
				b.WriteRune(max(' ', r-0xe0000))
			}
		default:
			flag = false
		}
	}
	return b.String()
}

// overrides reports whether a text overrides the reading direction, or embeds
// one without a right-to-left letter.
func overrides(text string) bool {
	embeds, rightToLeft := false, false
	for _, r := range text {
		switch {
		case r < utf8.RuneSelf:
		case r == 0x202d, r == 0x202e:
			return true
		case r == 0x202a, r == 0x202b, r >= 0x2066 && r <= 0x2068:
			embeds = true
		case unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana):
			rightToLeft = true
		}
	}
	return embeds && !rightToLeft
}

// encodedBlock returns a run of base64 or hexadecimal digits longer than any
// word, outside links.
func encodedBlock(text string) string {
	const long = 120
	start := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && encodedDigit(text[i]) {
			continue
		}
		if run := text[start:i]; len(run) >= long && !strings.Contains(run, "//") && strings.ContainsAny(run, "0123456789") {
			link := start > 0 && strings.ContainsRune("=?&:-_%.", rune(text[start-1]))
			if !link {
				return run
			}
		}
		start = i + 1
	}
	return ""
}

func encodedDigit(c byte) bool {
	return isASCIILetter(c) || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '='
}
