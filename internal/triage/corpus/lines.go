package corpus

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
)

// maxLine limits a line of a labelled set.
const maxLine = 4 << 20

// own is a line of the project's own sets: a message or a sentence.
type own struct {
	ID       string  `json:"id"`
	Raw      string  `json:"raw"`
	Sentence string  `json:"sentence"`
	Owner    string  `json:"owner"`
	Request  *bool   `json:"request"`
	Labels   Labels  `json:"labels"`
	Second   *Labels `json:"second"`
}

// Own reads the project's own examples: all files *.jsonl and then *.tsv of a
// folder, sorted by name. A line of *.tsv is Yes or No, a tab and a sentence:
// whether the sentence asks for or proposes something.
func Own(files fs.FS, name string) (Source, error) {
	source := Source{Name: name, Licence: "CC0-1.0"}
	names, err := fs.Glob(files, "*.jsonl")
	if err != nil {
		return source, fmt.Errorf("list %s: %w", name, err)
	}
	tables, err := fs.Glob(files, "*.tsv")
	if err != nil {
		return source, fmt.Errorf("list %s: %w", name, err)
	}
	if names = append(names, tables...); len(names) == 0 {
		return source, fmt.Errorf("read %s: the folder has no file *.jsonl or *.tsv", name)
	}
	digest := newDigest()
	for _, file := range names {
		data, err := fs.ReadFile(files, file)
		if err != nil {
			return source, fmt.Errorf("read %s: %w", name, err)
		}
		_, _ = digest.Write(data)
		if err := lines(data, func(line []byte) error {
			parse := parseOwn
			if strings.HasSuffix(file, ".tsv") {
				parse = parseSentence
			}
			example, err := parse(line)
			source.Examples = append(source.Examples, example)
			return err
		}); err != nil {
			return source, fmt.Errorf("%s: %w", file, err)
		}
	}
	source.Digest = hexDigest(digest)
	return source, nil
}

// OwnSet reads one of the project's own sets for evaluation, whose accounts are
// in context.json. The owner of an example is the first address of its account.
func OwnSet(files fs.FS, name string) (Source, error) {
	source, err := Own(files, name)
	if err != nil {
		return source, err
	}
	var contexts struct {
		Owners map[string]struct {
			Addresses []string `json:"addresses"`
		} `json:"owners"`
	}
	data, err := fs.ReadFile(files, "context.json")
	if err == nil {
		err = json.Unmarshal(data, &contexts)
	}
	if err != nil {
		return source, fmt.Errorf("read context.json of the set %s: %w", name, err)
	}
	for i, e := range source.Examples {
		addresses := contexts.Owners[e.Owner].Addresses
		if len(addresses) == 0 {
			return source, fmt.Errorf("message %s of the set %s has an owner that context.json does not know", e.ID, name)
		}
		source.Examples[i].Owner = addresses[0]
	}
	return source, nil
}

func ownSet(name string) func(fs.FS) (Source, error) {
	return func(files fs.FS) (Source, error) { return OwnSet(files, name) }
}

func parseOwn(line []byte) (Example, error) {
	var o own
	if err := json.Unmarshal(line, &o); err != nil {
		return Example{}, err
	}
	if o.Request != nil && o.Labels.Request == nil {
		o.Labels.Request = o.Request
	}
	e := Example{ID: o.ID, Sentence: o.Sentence, Owner: o.Owner, Labels: o.Labels, Second: o.Second}
	switch {
	case o.ID == "":
		return e, fmt.Errorf("an example has no id")
	case o.Raw == "" && o.Sentence == "":
		return e, fmt.Errorf("example %s has neither raw nor sentence", o.ID)
	case o.Raw != "":
		e.Raw = []byte(strings.ReplaceAll(o.Raw, "\n", "\r\n"))
	}
	return e, nil
}

// lines calls each with every line that is not empty, and adds the line number
// to an error.
func lines(data []byte, each func([]byte) error) error {
	in := bufio.NewScanner(bytes.NewReader(data))
	in.Buffer(nil, maxLine)
	for n := 1; in.Scan(); n++ {
		line := bytes.TrimSpace(in.Bytes())
		if len(line) == 0 {
			continue
		}
		if err := each(line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return in.Err()
}
