package classify_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/countersign-dev/countersign/internal/triage/classify"
)

const (
	fromList = "From: News <news@list.example>\nTo: o@north.example\nSubject: Issue %d\nList-Id: <news.list.example>\n\nThe garden in week %d, and what grows there.\n"
	unlike   = "From: Ann Berg <ann@north.example>\nTo: o@north.example\nSubject: Gateway\n\nProduction is down. Can you restart it right now?\n"
)

func corrected(t *testing.T, m *classify.Model, corrections []classify.Correction) *classify.Corrected {
	t.Helper()
	c, err := m.Corrected(corrections)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCorrectionHoldsForTheSender(t *testing.T) {
	t.Parallel()
	m := trained(t)
	f := features(m, fmt.Sprintf(fromList, 1, 1))
	before := m.Predict(f)
	want := classify.Personal
	if before.Priority == want {
		want = classify.ForInfo
	}

	c := corrected(t, m, []classify.Correction{{Sequence: 1, Head: classify.HeadPriority, Label: string(want), Features: f}})

	if got := c.Predict(f); got.Priority != want || got.Corrections != 1 {
		t.Errorf("the corrected message is %s, want %s", got.Priority, want)
	}
	next := features(m, fmt.Sprintf(fromList, 2, 2))
	if got := c.Predict(next); got.Priority != want {
		t.Errorf("the next message of the sender is %s, want %s", got.Priority, want)
	}
	other := features(m, unlike)
	if got := c.Predict(other); got.Priority != m.Predict(other).Priority {
		t.Errorf("another sender's message became %s", got.Priority)
	}
	if got := m.Predict(f); !reflect.DeepEqual(got, before) {
		t.Error("the correction changed the model that others use")
	}
}

func TestCorrectionTakenBack(t *testing.T) {
	t.Parallel()
	m := trained(t)
	var all []classify.Correction
	for i := range 40 {
		label := classify.HeadPriority.Classes()[i%5]
		all = append(all, classify.Correction{
			Sequence: int64(i), Head: classify.HeadPriority, Label: label, Features: features(m, fmt.Sprintf(fromList, i, i*7)),
		})
	}
	without := slices.Delete(slices.Clone(all), 11, 12)

	got := corrected(t, m, without)
	slices.Reverse(without)
	again := corrected(t, m, without)

	never := corrected(t, m, append(slices.Clone(all[:11]), all[12:]...))
	with := corrected(t, m, all)
	differs := false
	for _, correction := range all {
		f := correction.Features
		if !reflect.DeepEqual(got.Predict(f), never.Predict(f)) || !reflect.DeepEqual(again.Predict(f), never.Predict(f)) {
			t.Fatalf("message %d: without the correction is not as if it had never been", correction.Sequence)
		}
		differs = differs || !reflect.DeepEqual(with.Predict(f).Priorities, never.Predict(f).Priorities)
	}
	if !differs {
		t.Error("the correction made no difference anywhere")
	}
}

func TestCorrectionsAreBounded(t *testing.T) {
	t.Parallel()
	m := trained(t)
	f := classify.Features{Sender: []classify.Entry{{Bucket: 7, Value: 1}}}
	var all []classify.Correction
	for i := range classify.MaxCorrections + 3 {
		label := classify.No
		if i < 3 {
			label = classify.Yes
		}
		all = append(all, classify.Correction{Sequence: int64(i), Head: classify.HeadUnwanted, Label: label, Features: f})
	}

	got := corrected(t, m, all)

	want := corrected(t, m, all[3:])
	if got.Predict(f).Corrections != classify.MaxCorrections || got.Predict(f).Unwanted != want.Predict(f).Unwanted {
		t.Errorf("%d corrections count, with %v, want the newest %d, with %v",
			got.Predict(f).Corrections, got.Predict(f).Unwanted, classify.MaxCorrections, want.Predict(f).Unwanted)
	}
}

func TestCorrectionsRefuse(t *testing.T) {
	t.Parallel()
	m := trained(t)

	for _, c := range []classify.Correction{
		{Head: classify.HeadPriority, Label: "soon"}, {Head: "mood", Label: "good"}, {Head: classify.HeadRequest, Label: classify.Yes},
	} {
		if _, err := m.Corrected([]classify.Correction{c}); err == nil {
			t.Errorf("Corrected(%s: %s) succeeded", c.Head, c.Label)
		}
	}
}

func TestStoredFeatures(t *testing.T) {
	t.Parallel()
	m := trained(t)
	f := features(m, unlike)

	b, err := f.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}

	var again classify.Features
	if err := again.UnmarshalBinary(b); err != nil || !reflect.DeepEqual(again, f) {
		t.Errorf("UnmarshalBinary = %d features, %v, want %d", len(again.Content), err, len(f.Content))
	}
	if len(b) > 2*len(f.Content)+1000 {
		t.Errorf("%d features take %d bytes", len(f.Content), len(b))
	}
	for i := range b {
		if err := new(classify.Features).UnmarshalBinary(b[:i]); err == nil {
			t.Fatalf("%d of %d bytes were read as features", i, len(b))
		}
	}
	b[0]++
	if err := again.UnmarshalBinary(b); err == nil {
		t.Error("features of another version were read")
	}
}

func BenchmarkCorrected(b *testing.B) {
	m := trained(b)
	var all []classify.Correction
	for i := range 500 {
		all = append(all, classify.Correction{
			Sequence: int64(i), Head: classify.HeadPriority, Label: classify.HeadPriority.Classes()[i%5],
			Features: features(m, fmt.Sprintf(fromList, i, i*7)),
		})
	}
	for b.Loop() {
		if _, err := m.Corrected(all); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/correction")
}
