// Package counting is an MCP server whose tools only count their calls. Its
// journal outlives its process, and it has faults on demand. It does not check
// Countersign's records of the calls.
package counting

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// event is a line of the journal.
type event struct {
	What eventKind `json:"what"`
	// N is the action's number, Key the call's idempotency key.
	N   int    `json:"n"`
	Key string `json:"key,omitzero"`
	// Fault is the fault of a faulty answer.
	Fault Fault `json:"fault,omitzero"`
}

type eventKind string

const (
	// arrived: a call arrived.
	arrived eventKind = "arrived"
	// effect: the call took effect.
	effect eventKind = "effect"
	// faulty: the answer was faulty.
	faulty eventKind = "faulty"
	// rejected: the call was rejected with 429, as happens without a fault.
	rejected eventKind = "rejected"
)

// journal is a file to which the server appends every event before the event
// has any other effect. It outlives the process; it is not forced to the disk,
// since no machine is crashed here.
type journal struct {
	file   *os.File
	counts *Counts
}

// openJournal continues a journal, or begins one.
func openJournal(path string) (*journal, error) {
	counts, err := ReadJournal(path)
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return &journal{file, counts}, err
}

// record appends an event in one write, and counts it.
func (j *journal) record(e event) error {
	return errors.Join(json.NewEncoder(j.file).Encode(e), j.counts.add(e))
}

// Counts are the sums of a journal, by the actions' numbers.
type Counts struct {
	// Arrived counts the calls that arrived, Effects the effects, and Faulty
	// the faulty answers.
	Arrived, Effects, Faulty map[int]int
	// Mixed lists the numbers that came under more than one key, or none.
	Mixed []int
	// Rejected counts the calls rejected with 429 without a fault, and Busy those
	// that the fault Busy rejected.
	Rejected, Busy int
	// keys has the key of each number, done the keys that took effect.
	keys map[int]string
	done map[string]bool
}

func newCounts() *Counts {
	return &Counts{
		Arrived: make(map[int]int), Effects: make(map[int]int), Faulty: make(map[int]int),
		keys: make(map[int]string), done: make(map[string]bool),
	}
}

func (c *Counts) add(e event) error {
	switch e.What {
	case arrived:
		c.Arrived[e.N]++
		if first, ok := c.keys[e.N]; ok && first != e.Key || e.Key == "" {
			c.Mixed = append(c.Mixed, e.N)
		}
		c.keys[e.N] = e.Key
	case effect:
		c.done[e.Key] = true
		c.Effects[e.N]++
	case faulty:
		if e.Fault == Busy {
			c.Busy++
		} else {
			c.Faulty[e.N]++
		}
	case rejected:
		c.Rejected++
	default:
		return fmt.Errorf("unknown event %q", e.What)
	}
	return nil
}

// ReadJournal returns the counts of a journal; a missing one has none.
func ReadJournal(path string) (*Counts, error) {
	c := newCounts()
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return c, c.read(file)
}

func (c *Counts) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		var e event
		err := json.Unmarshal(lines.Bytes(), &e)
		if err == nil {
			err = c.add(e)
		}
		if err != nil {
			return fmt.Errorf("line %d of the journal: %w", n, err)
		}
	}
	return lines.Err()
}
