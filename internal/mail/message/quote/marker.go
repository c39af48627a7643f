package quote

import "strings"

// withoutMarkers removes the tokens that separate the turns of conversations
// with language models, and returns their number. In a mail they only serve to
// forge such a conversation.
func withoutMarkers(text string) (string, int) {
	text, tokens := withoutTokens(text)
	text, roles := withoutRoles(text)
	return text, tokens + roles
}

// tokens are the tokens of the common chat templates.
var tokens = []string{
	"[inst]", "[/inst]", "<<sys>>", "<</sys>>", "<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>", "<system>", "</system>",
	"<assistant>", "</assistant>", "<user>", "</user>", "<tool_call>", "</tool_call>", "<function_calls>", "</function_calls>",
	"<untrusted>", "</untrusted>", "<email>", "</email>", "<message>", "</message>", "[system]", "[/system]", "[assistant]",
}

// withoutTokens removes tokens at their ends, so that the removal of two cannot
// leave a third.
func withoutTokens(text string) (string, int) {
	first := firstToken(text)
	if first < 0 {
		return text, 0
	}
	out := make([]byte, 0, len(text))
	out = append(out, text[:first]...)
	count := 0
	for i := first; i < len(text); i++ {
		out = append(out, text[i])
		if text[i] == '>' || text[i] == ']' {
			if n := tokenBefore(out); n > 0 {
				out = out[:len(out)-n]
				count++
			}
		}
	}
	return string(out), count
}

// firstToken returns the index of the last byte of the first token, or -1.
func firstToken(text string) int {
	for i := range len(text) {
		if (text[i] == '>' || text[i] == ']') && tokenBefore(text[:i+1]) > 0 {
			return i
		}
	}
	return -1
}

// tokenBefore returns the length of a token at the end of a text.
func tokenBefore[T string | []byte](text T) int {
	const longest = 40
	tail := string(text[max(0, len(text)-longest):])
	if strings.HasSuffix(tail, "|>") {
		if start := strings.LastIndex(tail[:len(tail)-1], "<|"); start >= 0 {
			return len(tail) - start
		}
	}
	for _, token := range tokens {
		if len(tail) >= len(token) && tail[len(tail)-len(token)] == token[0] && strings.EqualFold(tail[len(tail)-len(token):], token) {
			return len(token)
		}
	}
	return 0
}

// withoutRoles removes the names of roles at the beginning of lines.
func withoutRoles(text string) (string, int) {
	if !strings.Contains(text, ":") {
		return text, 0
	}
	const repeats = 5
	var b strings.Builder
	count := 0
	for line := range strings.Lines(text) {
		for range repeats {
			n := roleAt(line)
			if n == 0 {
				break
			}
			line = line[n:]
			count++
		}
		b.WriteString(line)
	}
	return b.String(), count
}

// roleAt returns the length of the name of a role at the beginning of a line,
// with its punctuation.
func roleAt(line string) int {
	const longest = 24
	colon := strings.IndexByte(line[:min(len(line), longest)], ':')
	if colon < 0 {
		return 0
	}
	marked := strings.HasPrefix(line, "#")
	switch strings.ToLower(strings.Trim(line[:colon], "#* \t")) {
	case "system", "assistant", "developer":
	case "human", "user", "instruction", "instructions", "response", "input":
		if !marked {
			return 0
		}
	default:
		return 0
	}
	rest := strings.TrimLeft(line[colon+1:], "* \t")
	return len(line) - len(rest)
}
