package envelope_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-dev/countersign/envelope"
)

func seed(f *testing.F) {
	for _, kind := range []string{"valid", "invalid"} {
		for _, s := range corpus(f, kind) {
			f.Add(s.text)
		}
	}
}

// FuzzParse compares Parse with encoding/json: a text that encoding/json
// rejects is rejected, and an accepted one has the same meaning there and
// survives a round trip.
func FuzzParse(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := envelope.Parse(raw)
		if err != nil {
			problemsOf(t, err)
			return
		}

		var same envelope.Proposal
		d := json.NewDecoder(bytes.NewReader(raw))
		d.DisallowUnknownFields()
		if !json.Valid(raw) {
			t.Fatal("accepted what encoding/json refuses")
		}
		if bytes.Contains(raw, []byte("version")) {
			// encoding/json reads no 1.0 into an int.
			same.Version = p.Version
		} else if err := d.Decode(&same); err != nil {
			t.Fatalf("encoding/json refuses: %v", err)
		} else {
			if diff := cmp.Diff(decode(t, same.Args), decode(t, p.Args), sameNumbers()); diff != "" {
				t.Fatalf("args changed their meaning (-encoding/json +Parse):\n%s", diff)
			}
			same.Args = p.Args
			same.Constraints.MustRunBefore = same.Constraints.MustRunBefore.UTC().Truncate(time.Microsecond)
			same.Constraints.NotBefore = same.Constraints.NotBefore.UTC().Truncate(time.Microsecond)
			if diff := cmp.Diff(&same, p); diff != "" {
				t.Fatalf("fields changed their meaning (-encoding/json +Parse):\n%s", diff)
			}
		}

		if err := p.Validate(); err != nil {
			t.Fatalf("Validate() = %v, want no error after Parse", err)
		}
		canonical, err := envelope.Canonical(raw)
		if err != nil {
			t.Fatalf("Canonical = %v, want no error after Parse", err)
		}
		written, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{canonical, written} {
			if len(text) > envelope.MaxBytes {
				continue // another spelling may be longer
			}
			again, err := envelope.Parse(text)
			if err != nil {
				t.Fatalf("Parse(%s) = %v, want no error", text, err)
			}
			if diff := cmp.Diff(p, again); diff != "" {
				t.Fatalf("proposal changed on the way (-want +got):\n%s", diff)
			}
			if digest(t, *p) != digest(t, *again) {
				t.Fatalf("digest changed on the way through %s", text)
			}
		}
	})
}

// FuzzParseMany checks that ParseMany accepts an item exactly if Parse does.
func FuzzParseMany(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		items, err := envelope.ParseMany(append(append([]byte("["), raw...), ']'))
		if err != nil {
			problemsOf(t, err)
			return
		}
		if !json.Valid(raw) {
			return // it may hold no item, or several
		}
		p, err := envelope.Parse(raw)
		if len(raw) > envelope.MaxBytes {
			return // the white space around an item counts only for Parse
		}
		if len(items) != 1 || (err != nil) != (items[0].Err != nil) {
			t.Fatalf("ParseMany = %+v, Parse = %v", items, err)
		}
		if diff := cmp.Diff(p, items[0].Proposal); diff != "" {
			t.Fatalf("ParseMany is not as Parse (-one +many):\n%s", diff)
		}
	})
}

// FuzzCanonical checks that a canonical form has the same meaning, is its own
// canonical form, and exists only for texts that encoding/json accepts.
func FuzzCanonical(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		canonical, err := envelope.Canonical(raw)
		if err != nil {
			problemsOf(t, err)
			return
		}
		if !json.Valid(raw) {
			t.Fatal("accepted what encoding/json refuses")
		}
		if diff := cmp.Diff(decode(t, raw), decode(t, canonical), sameNumbers()); diff != "" {
			t.Fatalf("meaning changed (-raw +canonical):\n%s", diff)
		}
		again, err := envelope.Canonical(canonical)
		if err != nil || !bytes.Equal(canonical, again) {
			t.Fatalf("Canonical(%s) = %s, %v, want the same", canonical, again, err)
		}
	})
}

// sameNumbers compares numbers by their exact value.
func sameNumbers() cmp.Option {
	return cmp.Comparer(func(a, b json.Number) bool {
		x, okX := new(big.Rat).SetString(a.String())
		y, okY := new(big.Rat).SetString(b.String())
		return okX && okY && x.Cmp(y) == 0
	})
}
