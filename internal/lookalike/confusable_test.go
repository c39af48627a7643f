package lookalike_test

import (
	"testing"

	"github.com/countersign-dev/countersign/internal/lookalike"
)

func TestNear(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]bool{
		{"paypal", "payapl"}: true, {"paypal", "papal"}: true, {"paypal", "paypall"}: true, {"paypal", "paybal"}: true,
		{"paypal", "paypal"}: false, {"paypal", "pyapla"}: false, {"", "a"}: true, {"", ""}: false, {"ab", "ba"}: true, {"abc", "cab"}: false,
	} {
		if got := lookalike.Near(pair[0], pair[1]); got != want || lookalike.Near(pair[1], pair[0]) != want {
			t.Errorf("lookalike.Near(%q, %q) = %t, want %t", pair[0], pair[1], got, want)
		}
	}
}
