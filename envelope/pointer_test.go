package envelope_test

import (
	"testing"

	"github.com/countersign-dev/countersign/envelope"
)

func TestPointerTokens(t *testing.T) {
	t.Parallel()

	for name, token := range map[string]string{
		"": "", "to": "to", "a/b": "a~1b", "m~n": "m~0n", "~1": "~01", "~0": "~00", "/~": "~1~0", "~/": "~0~1", "~~01": "~0~001", "ä b": "ä b",
	} {
		if got := envelope.EscapePointer(name); got != token {
			t.Errorf("EscapePointer(%q) = %q, want %q", name, got, token)
		}
		if got := envelope.UnescapePointer(token); got != name {
			t.Errorf("UnescapePointer(%q) = %q, want %q", token, got, name)
		}
	}
	if got := envelope.UnescapePointer("a~2b~"); got != "a~2b~" {
		t.Errorf("UnescapePointer of what escapes nothing = %q", got)
	}
}
