package classify_test

import (
	"bytes"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// small returns the corpus of eight messages and eight sentences.
func small(t testing.TB) corpus.Source {
	t.Helper()
	source, err := corpus.Own(os.DirFS("testdata/small"), "small")
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func trained(t testing.TB) *classify.Model {
	t.Helper()
	m, _, err := classify.Train([]corpus.Source{small(t)}, classify.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func written(t testing.TB, m *classify.Model) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func features(m *classify.Model, raw string) classify.Features {
	return m.Features(classify.Read(corpus.Example{Raw: []byte(raw), Owner: "o@north.example"}))
}

func TestTrainIsDeterministic(t *testing.T) {
	t.Parallel()

	first, sheet, err := classify.Train([]corpus.Source{small(t)}, classify.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	second := trained(t)

	if first.Digest() != second.Digest() || !bytes.Equal(written(t, first), written(t, second)) {
		t.Errorf("two trainings gave %s and %s, want the same file", first.Digest(), second.Digest())
	}
	if sheet.Digest != first.Digest() || sheet.Sources[0].Examples != 16 {
		t.Errorf("sheet = %+v", sheet)
	}
	config := classify.Defaults()
	config.Seed++
	if other, _, err := classify.Train([]corpus.Source{small(t)}, config); err != nil || other.Digest() == first.Digest() {
		t.Errorf("another seed gave %s, %v, want other weights", other.Digest(), err)
	}
}

func TestTrainedModelKnowsItsExamples(t *testing.T) {
	t.Parallel()
	m := trained(t)

	for _, e := range small(t).Examples {
		if e.Raw == nil {
			continue
		}
		got := m.Predict(m.Features(classify.Read(e)))
		if string(got.Priority) != e.Labels.Priority || string(got.Act) != e.Labels.Act || string(got.Category) != e.Labels.Category {
			t.Errorf("%s: %s, %s, %s, want %+v", e.ID, got.Priority, got.Act, got.Category, e.Labels)
		}
		if (got.Unwanted > 0.5) != *e.Labels.Unwanted {
			t.Errorf("%s: unwanted with %.2f, want %v", e.ID, got.Unwanted, *e.Labels.Unwanted)
		}
	}
	if yes, no := m.RequestIn("Can you send me the numbers?"), m.RequestIn("The order was sent."); yes <= no {
		t.Errorf("RequestIn = %.2f for a request and %.2f for none", yes, no)
	}
}

func TestTrainRefuses(t *testing.T) {
	t.Parallel()
	if _, _, err := classify.Train(nil, classify.Defaults()); err == nil {
		t.Error("Train without examples succeeded")
	}
	bad := corpus.Source{Name: "bad", Examples: []corpus.Example{{ID: "x", Raw: []byte("a"), Labels: corpus.Labels{Priority: "soon"}}}}
	if _, _, err := classify.Train([]corpus.Source{bad}, classify.Defaults()); err == nil || !strings.Contains(err.Error(), "soon") {
		t.Errorf("Train with an unknown priority: %v, want an error that names it", err)
	}
}

func TestTrainRefusesLockedExamples(t *testing.T) {
	t.Parallel()
	set := corpus.Source{Name: corpus.NameMessages}
	for i := range 30 {
		set.Examples = append(set.Examples, corpus.Example{
			ID: strconv.Itoa(i), Raw: []byte("Subject: x\r\n\r\ny\r\n"), Labels: corpus.Labels{Priority: string(classify.ForInfo)},
		})
	}
	config := classify.Defaults()
	config.Mail.Epochs, config.Sentence.Epochs = 1, 1

	_, _, whole := classify.Train([]corpus.Source{set}, config)
	_, sheet, open := classify.Train([]corpus.Source{set.Open()}, config)

	if whole == nil || !strings.Contains(whole.Error(), "locked") || open != nil || sheet.Sources[0].Examples >= 30 {
		t.Errorf("Train = %v with the locked examples and %v without, want an error and none", whole, open)
	}
	config.Whole = true
	if _, _, err := classify.Train([]corpus.Source{set}, config); err != nil {
		t.Errorf("Train of a model that is shipped: %v", err)
	}
}

func TestProbabilitiesSumToOne(t *testing.T) {
	t.Parallel()
	m := trained(t)

	got := m.Predict(features(m, "From: a@b.example\nSubject: hello\n\nIs this new?\n"))

	sum := 0.0
	for _, p := range got.Priorities {
		sum += p
	}
	if math.Abs(sum-1) > 1e-9 || got.Confidence() <= 0 || got.Confidence() > 1 {
		t.Errorf("priorities sum to %v, confidence %v", sum, got.Confidence())
	}
	if got.Model != m.Digest() || got.Corrections != 0 {
		t.Errorf("prediction = %+v", got)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	m := trained(t)
	file := written(t, m)

	again, err := classify.Open(file)
	if err != nil {
		t.Fatal(err)
	}

	f := features(m, "From: a@b.example\nSubject: Offer\n\nBuy now!\n")
	if again.Digest() != m.Digest() || again.Predict(f).Unwanted != m.Predict(f).Unwanted {
		t.Error("the model that was read is not the one that was written")
	}
	if len(file) > 1<<20 {
		t.Errorf("the file has %d bytes", len(file))
	}
}

func TestOpenRefusesDamage(t *testing.T) {
	t.Parallel()
	file := written(t, trained(t))

	for i := 0; i < len(file); i += len(file)/40 + 1 {
		damaged := bytes.Clone(file)
		damaged[i] ^= 0x55
		if m, err := classify.Open(damaged); err == nil {
			t.Errorf("a file with byte %d changed was opened as %s", i, m.Digest())
		}
		if _, err := classify.Open(file[:i]); err == nil {
			t.Errorf("a file of %d bytes was opened", i)
		}
	}
}

func TestAnyMessageHasAPrediction(t *testing.T) {
	t.Parallel()
	m := trained(t)

	for name, msg := range map[string]*message.Message{
		"empty":     {},
		"long word": {Body: strings.Repeat("a", 1<<20), Subject: strings.Repeat("?", 1<<16)},
		"not UTF-8": {Body: "\xff\xfe a\xc3", Subject: "\x80", From: []message.Address{{Name: "\"", Addr: "@"}}},
		"marks":     {Body: strings.Repeat("a@b.c:// ", 1<<12)},
	} {
		got := m.Predict(m.Features(msg, signal.Context{Addresses: []string{""}}, signal.Result{}))
		if len(got.Priorities) != 5 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func FuzzFeatures(f *testing.F) {
	f.Add("Re: hello", "Can you? 10:30, 5% of $3,000 https://a.example/b a@b.example\n> quoted\n-- \nx", "a.b@c.example")
	f.Add("", "\xff'", "")
	m := trained(f)
	f.Fuzz(func(t *testing.T, subject, body, from string) {
		got := m.Features(&message.Message{
			Subject: subject, Body: body, Text: body, From: []message.Address{{Name: subject, Addr: from}},
		}, signal.Context{}, signal.Result{})
		b, err := got.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var again classify.Features
		if err := again.UnmarshalBinary(b); err != nil {
			t.Fatalf("read back: %v", err)
		}
	})
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("CSTRIAGE\x00\x00\x00\x02{}"))
	f.Add(written(f, trained(f)))
	f.Fuzz(func(t *testing.T, file []byte) {
		if m, err := classify.Open(file); err == nil {
			m.Predict(features(m, "Subject: x\n\ny\n"))
		}
	})
}

func BenchmarkPredict(b *testing.B) {
	m := trained(b)
	body := strings.Repeat("We would like to know whether the delivery on Monday, 10:30, can be moved. ", 12)
	msg, about, found := classify.Read(corpus.Example{Owner: "o@north.example",
		Raw: []byte("From: Ann <ann@north.example>\nTo: o@north.example\nSubject: The delivery on Monday\n\n" + body)})
	b.ReportAllocs()
	for b.Loop() {
		m.Predict(m.Features(msg, about, found))
	}
}
