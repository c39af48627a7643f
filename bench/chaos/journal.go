package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// event is a line of the journal.
type event struct {
	// What happened: a call arrived, an effect took place, an answer was
	// made faulty, or a call was turned away because the server was
	// busy anyway.
	What what `json:"what"`
	// N is the envelope's number, Key what the call was to be known by.
	N   int    `json:"n"`
	Key string `json:"key,omitzero"`
	// Fault is what spoiled an answer.
	Fault toolFault `json:"fault,omitzero"`
}

// what is what can happen.
type what string

// The events.
const (
	arrived    what = "arrived"
	effect     what = "effect"
	spoiled    what = "spoiled"
	turnedAway what = "turned_away"
)

// journal is a file to which the counting server appends every event before the
// event has any other effect. It is there whatever
// becomes of the process; it is not forced to the disk, since no machine is
// crashed here.
type journal struct {
	mu   sync.Mutex
	file *os.File
}

func openJournal(path string) (*journal, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &journal{file: file}, nil
}

func (j *journal) write(e event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err = j.file.Write(append(line, '\n'))
	return err
}

// journalCounts is what the journal says: per envelope number, the calls that
// arrived and the effects that took place.
type journalCounts struct {
	Arrived, Effects map[int]int
	// Mixed lists the numbers that came under more than one key, or none.
	Mixed []int
	// Spoiled has the numbers whose answers were made faulty, and
	// how often.
	Spoiled map[int]int
	// TurnedAway counts the answers with status 429 that the server gave
	// because it was busy, Told those that the fault busy gave.
	TurnedAway, Told int
	// keys has the key of each number, done the keys that took effect.
	keys map[int]string
	done map[string]bool
}

func newJournalCounts() *journalCounts {
	return &journalCounts{
		Arrived: make(map[int]int), Effects: make(map[int]int), Spoiled: make(map[int]int),
		keys: make(map[int]string), done: make(map[string]bool),
	}
}

// add counts an event.
func (t *journalCounts) add(e event) error {
	switch e.What {
	case arrived:
		t.Arrived[e.N]++
		if first, ok := t.keys[e.N]; ok && first != e.Key || e.Key == "" {
			t.Mixed = append(t.Mixed, e.N)
		}
		t.keys[e.N] = e.Key
	case effect:
		t.done[e.Key] = true
		t.Effects[e.N]++
	case spoiled:
		if e.Fault == busy {
			t.Told++
			return nil
		}
		t.Spoiled[e.N]++
	case turnedAway:
		t.TurnedAway++
	default:
		return fmt.Errorf("there is no event %q", e.What)
	}
	return nil
}

// readJournal counts what a journal says; one that is not there says nothing.
func readJournal(path string) (*journalCounts, error) {
	t := newJournalCounts()
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return t, t.read(file)
}

func (t *journalCounts) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		var e event
		err := json.Unmarshal(lines.Bytes(), &e)
		if err == nil {
			err = t.add(e)
		}
		if err != nil {
			return fmt.Errorf("line %d of the journal: %w", n, err)
		}
	}
	return lines.Err()
}
