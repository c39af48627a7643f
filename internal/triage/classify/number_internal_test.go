package classify

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"testing"
)

func TestExp(t *testing.T) {
	t.Parallel()
	for x := -40.0; x < 40; x += 0.37 {
		if got, want := exp(x), math.Exp(x); math.Abs(got-want) > 1e-14*want {
			t.Errorf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	if math.IsInf(exp(1e9), 0) || math.IsNaN(exp(-1e9)) {
		t.Error("exp leaves its range")
	}
}

// TestFitGivesTheSameBits compares the numbers with those computed on amd64, to
// detect a machine that rounds differently.
func TestFitGivesTheSameBits(t *testing.T) {
	t.Parallel()
	var rows []row
	for i := range 200 {
		h := mix(uint64(i))
		r := row{weight: 1 + float32(i%3)/3, target: make([]float32, 3)}
		r.target[h%3] = 1
		for j := range 30 {
			r.features = append(r.features, Entry{uint32(mix(h+uint64(j)) % 500), 1 / float32(3+j)})
		}
		rows = append(rows, r)
	}

	l := fit(rows, 3, Descent{Rate: 0.5, Decay: 1e-4, Epochs: 6}, 1)

	digest := sha256.New()
	for _, w := range l.weights[:1500] {
		_ = binary.Write(digest, binary.BigEndian, w)
	}
	const want = "56ba9cbb8d2b047f"
	if got := hex.EncodeToString(digest.Sum(nil))[:16]; got != want {
		t.Errorf("the weights have the digest %s, want %s", got, want)
	}
}

func TestSentences(t *testing.T) {
	t.Parallel()
	text := "Hello Ann,\n\nversion 2.5 is out. Can you\ntest it? Thanks!\n- first point here\n- second point here\n"

	got := slices.Collect(sentences(text))

	want := []string{"Hello Ann,", "version 2.5 is out.", "Can you\ntest it?", "Thanks!", "- first point here", "- second point here"}
	if !slices.Equal(got, want) {
		t.Errorf("sentences = %q, want %q", got, want)
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	v := newVocabulary(Defaults().Scale)
	plain := func(s string) uint64 { return hashString(s) }
	for text, want := range map[string][]uint64{
		"Hello, World":             {plain("hello"), plain("world")},
		"don't":                    {plain("dont")},
		"at 10:30 for $1,000.50":   {plain("at"), tokenTime, plain("for"), tokenMoney},
		"50% off":                  {tokenPercent, plain("off")},
		"see https://a.example/b?": {plain("see"), tokenLink, tokenQuestion},
		"mail a.b@c.example now":   {plain("mail"), tokenMail, plain("now")},
		"order AB1234 is 7":        {plain("order"), tokenCode, plain("is"), tokenNumber},
		"end. Next":                {plain("end"), plain("next")},
		"\xff\xfe":                 nil,
	} {
		var got []uint64
		for _, w := range v.words(text, 20) {
			got = append(got, w.hash)
		}
		if !slices.Equal(got, want) {
			t.Errorf("words(%q) = %x, want %x", text, got, want)
		}
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	// Of two equally likely classes, the one with likely neighbours is closer
	// to the right one.
	if got := decide([]float64{0.3, 0.25, 0.1, 0.35, 0}, 0.5); got != 1 && got != 0 {
		t.Errorf("decide chose %d, far from most of the probability", got)
	}
	if got := decide([]float64{0, 0, 0.1, 0.3, 0.6}, 0.3); got != 4 {
		t.Errorf("decide chose %d, want the class outside the ladder", got)
	}
}

func TestCutFor(t *testing.T) {
	t.Parallel()
	all := []float64{0.9, 0.1, 0.5, 0.3, 0.7}

	got := cutFor([]float64{0.9, 0.5, 0.7}, all, 1)

	if got < 0.39 || got > 0.41 {
		t.Errorf("cutFor = %v, want the middle of .3 and .5", got)
	}
}

func TestGroupsFit(t *testing.T) {
	t.Parallel()
	v := newVocabulary(Defaults().Scale)

	counts := v.count(v.words("Please verify your account, and let me know", 20))

	for _, name := range []string{"ask", "deceive"} {
		if at := slices.Index(v.names, name); at < 0 || counts[at] == 0 {
			t.Errorf("group %q is at %d and was not counted", name, at)
		}
	}
	if len(v.names) < 20 || len(v.names) >= maxGroups {
		t.Errorf("there are %d groups", len(v.names))
	}
}
