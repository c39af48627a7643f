package model

import (
	"context"
	"time"
)

// OpenWith is Open with other times.
func OpenWith(c Config, o Observer, breakerOpen, recheck time.Duration) (*Set, error) {
	l := usualLimits()
	l.openFor, l.recheck = breakerOpen, recheck
	return open(c, o, l)
}

// Hasten limits the wait for answers.
func (s *Server) Hasten(most time.Duration) {
	s.host.limit.first, s.host.limit.most, s.host.limit.least = most, most, most
}

// Hasten limits the wait for a transcript.
func (t *Transcriber) Hasten(most time.Duration) { t.host.limit.first = most }

// ReadRecorded reads an answer of an OpenAI-compatible server as Ask does.
func ReadRecorded(ctx context.Context, status int, body []byte, of string, context int, q Question) (Answer, error) {
	s := &Server{model: of}
	return s.read(ctx, &known{protocol: llamaServer{}, context: context, lettersPerToken: prosePerToken}, q, status, body)
}
