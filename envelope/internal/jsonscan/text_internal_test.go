package jsonscan

import (
	"encoding/binary"
	"testing"
)

// TestVerbatimWordHoldsForEachByte has every byte in every place, next to bytes that are
// verbatim and those that are not.
func TestVerbatimWordHoldsForEachByte(t *testing.T) {
	t.Parallel()
	for _, fill := range []byte{' ', '!', '#', '[', ']', '~', 'x', 0x7f, 0x1f, '"', '\\', 0x80, 0xff, 0} {
		for place := range 8 {
			for c := range 256 {
				var word [8]byte
				for i := range word {
					word[i] = fill
				}
				word[place] = byte(c)

				got := verbatimWord(binary.LittleEndian.Uint64(word[:]))

				if want := verbatim(fill) && verbatim(byte(c)); got != want {
					t.Fatalf("verbatimWord(%q) = %t, want %t", word, got, want)
				}
			}
		}
	}
}
