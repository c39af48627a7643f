package reader

import (
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/mailbox"
)

func TestChunksAreBoundedInMessagesAndBytes(t *testing.T) {
	t.Parallel()
	many := slices.Repeat([]int64{1}, 2*chunkItems+1)
	for name, test := range map[string]struct {
		sizes []int64
		want  []int
	}{
		"none":             {nil, nil},
		"messages":         {many, []int{chunkItems, chunkItems, 1}},
		"bytes":            {[]int64{chunkBytes / 2, chunkBytes / 2, 1}, []int{2, 1}},
		"unknown":          {make([]int64, 9), []int{8, 1}},
		"one that exceeds": {[]int64{1, chunkBytes + 1, 1}, []int{1, 1, 1}},
	} {
		items := make([]mailbox.Item, len(test.sizes))
		for i, size := range test.sizes {
			items[i].Size = size
		}
		var got []int
		for _, c := range chunks(items) {
			got = append(got, len(c))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: chunks of %v, want %v", name, got, test.want)
		}
	}
}
