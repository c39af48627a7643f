package classify

import (
	"math"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// version is the version of the mapping from features to buckets. Weights and
// stored corrections of another version are unusable.
const version = 2

const (
	bucketBits = 17
	buckets    = 1 << bucketBits
)

// Entry is a feature: a bucket and its value.
type Entry struct {
	Bucket uint32
	Value  float32
}

// Features is the models' input for a message. It contains no text.
type Features struct {
	// Content holds the features of the content and of the delivery.
	Content []Entry
	// Asking holds the results of the head of requests for the sentences.
	Asking []Entry
	// Sender identifies the sender. The weights know no senders; only
	// corrections use it.
	Sender []Entry
	// Request is the highest probability of a request in any sentence.
	Request float64
}

// Groups of features have separate namespaces.
const (
	spaceSubject uint64 = iota + 1
	spaceBody
	spaceBoth
	spaceStart
	spaceCharacters
	spaceFact
	spaceSender
	spaceSentence
	spaceSentenceStart
)

// collector collects the distinct hashes of one group.
type collector struct {
	hashes []uint32
	out    []Entry
}

func (c *collector) add(space, hash uint64) {
	c.hashes = append(c.hashes, uint32(mix(hash+space*0x9e3779b97f4a7c15)>>(64-bucketBits)))
}

// flush appends the group to the features, scaled to the given length, so that
// long and short texts have the same weight.
func (c *collector) flush(length float64) {
	slices.Sort(c.hashes)
	c.hashes = slices.Compact(c.hashes)
	if len(c.hashes) > 0 {
		value := float32(length / math.Sqrt(float64(len(c.hashes))))
		for _, h := range c.hashes {
			c.out = append(c.out, Entry{h, value})
		}
	}
	c.hashes = c.hashes[:0]
}

// flushEach appends the group with the same value for each feature, regardless
// of their number.
func (c *collector) flushEach(value float32) {
	slices.Sort(c.hashes)
	c.hashes = slices.Compact(c.hashes)
	for _, h := range c.hashes {
		c.out = append(c.out, Entry{h, value})
	}
	c.hashes = c.hashes[:0]
}

// Limits of the text that is read: the request of a message is near its start.
const (
	maxBodyWords      = 350
	maxStartWords     = 40
	maxSubjectWords   = 40
	maxCharacterWords = 90
	maxSentenceWords  = 60
)

// Scale holds the weight of each group of features. With Characters of 0, runs
// of letters are omitted.
type Scale struct {
	Subject, Body, Both, Start, Characters, Fact float64
}

// content computes all features but those of requests.
func (v vocabulary) content(m *message.Message, about signal.Context, found signal.Result) *collector {
	scale := v.scale
	c := &collector{out: make([]Entry, 0, 1024), hashes: make([]uint32, 0, 1024)}
	subject := v.words(m.Subject, maxSubjectWords)
	body := v.words(m.Body, maxBodyWords)
	grams(c, spaceSubject, subject)
	c.flush(scale.Subject)
	grams(c, spaceBody, body)
	c.flush(scale.Body)
	single(c, spaceBoth, subject)
	single(c, spaceBoth, body)
	c.flush(scale.Both)
	grams(c, spaceStart, body[:min(len(body), maxStartWords)])
	c.flush(scale.Start)
	if scale.Characters > 0 {
		characters(c, spaceCharacters, m.Subject, maxSubjectWords)
		characters(c, spaceCharacters, m.Body, maxCharacterWords)
		c.flush(scale.Characters)
	}
	v.facts(c, subject, body, m, about, found)
	c.flushEach(float32(scale.Fact))
	return c
}

func single(c *collector, space uint64, words []word) {
	for _, w := range words {
		c.add(space, w.hash)
	}
}

// grams adds words and pairs of words.
func grams(c *collector, space uint64, words []word) {
	for i, w := range words {
		c.add(space, w.hash)
		if i > 0 {
			c.add(space, pair(words[i-1].hash, w.hash))
		}
	}
}

func pair(first, second uint64) uint64 { return mix(first*3 + second) }

// sentence computes the features of one sentence for the head of requests.
func (v vocabulary) sentence(c *collector, text string) []Entry {
	c.out = c.out[:0]
	words := v.words(text, maxSentenceWords)
	grams(c, spaceSentence, words)
	c.flush(1)
	c.add(spaceSentenceStart, ending(text)+1<<32)
	if len(words) > 0 {
		c.add(spaceSentenceStart, pair(words[0].hash, ending(text)))
	}
	for i, w := range words[:min(len(words), 3)] {
		c.add(spaceSentenceStart, w.hash+uint64(i))
		if i > 0 {
			c.add(spaceSentenceStart, pair(words[i-1].hash, w.hash)+uint64(i))
		}
	}
	if len(words) > 2 {
		c.add(spaceSentenceStart, pair(pair(words[0].hash, words[1].hash), words[2].hash))
	}
	v.clauses(c, text)
	c.add(spaceSentenceStart, uint64(steps(len(words), 3, 6, 10, 16, 25, 40))+1<<33)
	v.groups(c, spaceSentenceStart, words, 1)
	c.flush(1)
	return c.out
}

// clauses adds the first words of the parts of a sentence: requests often
// follow a comma.
func (v vocabulary) clauses(c *collector, text string) {
	const marks, before = ",;:-.", 9
	for i := range len(text) {
		if !strings.Contains(marks, text[i:i+1]) {
			continue
		}
		words := v.words(text[i+1:], 2)
		if len(words) > 0 {
			c.add(spaceSentenceStart, words[0].hash+before)
		}
		if len(words) > 1 {
			c.add(spaceSentenceStart, pair(words[0].hash, words[1].hash)+before)
		}
	}
}

// ending returns the final mark of a sentence.
func ending(text string) uint64 {
	for full, plain := range map[string]uint64{"？": '?', "！": '!', "。": '.'} {
		if strings.HasSuffix(text, full) {
			return plain
		}
	}
	for i := len(text) - 1; i >= 0; i-- {
		switch text[i] {
		case ' ', '"', '\'', ')', '\n', '\r', '\t':
			continue
		case '?', '!', '.', ':', ',':
			return uint64(text[i])
		}
		break
	}
	return 0
}

// steps returns how many of the limits a number exceeds.
func steps(n int, limits ...int) int {
	at := 0
	for at < len(limits) && n > limits[at] {
		at++
	}
	return at
}
