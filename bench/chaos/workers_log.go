package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// workersLog is the file that all workers log to, in lines of JSON.
type workersLog struct {
	file *os.File
	from int64 // where the lines of this run begin
}

func openWorkersLog(path string) (*workersLog, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
	return &workersLog{file: file}, err
}

// begin makes the log begin here for a run.
func (l *workersLog) begin() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	l.from = info.Size()
	return nil
}

// logLine has the attributes that are read.
type logLine struct {
	Time time.Time `json:"time"`
	Msg  string    `json:"msg"`
}

// each calls fn with the lines of the run. Lines that are no JSON are skipped:
// a worker that ends may print any.
func (l *workersLog) each(fn func(logLine)) error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(io.NewSectionReader(l.file, l.from, info.Size()-l.from))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line logLine
		if json.Unmarshal(lines.Bytes(), &line) == nil {
			fn(line)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the workers' log: %w", err)
	}
	return nil
}

// count counts the lines with a message.
func (l *workersLog) count(msg string) (int, error) {
	n := 0
	err := l.each(func(line logLine) {
		if line.Msg == msg {
			n++
		}
	})
	return n, err
}

// wrongClocks counts the workers whose time at their start differs from the
// time now by at least so much, which is longer than the run.
func (l *workersLog) wrongClocks(least time.Duration) (int, error) {
	n, now := 0, time.Now()
	err := l.each(func(line logLine) {
		if line.Msg == "worker starting" && now.Sub(line.Time).Abs() >= least {
			n++
		}
	})
	return n, err
}
