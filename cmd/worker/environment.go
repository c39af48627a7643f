package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// reader reads variables and collects what is wrong with them.
type reader struct {
	getenv func(string) string
	wrong  []error
}

func (r *reader) check(name string, accept func(text string) error) {
	if err := accept(r.getenv(name)); err != nil {
		r.wrong = append(r.wrong, fmt.Errorf("  %s %w", name, err))
	}
}

func (r *reader) text(name string, otherwise func() string) string {
	if text := r.getenv(name); text != "" {
		return text
	}
	return otherwise()
}

func (r *reader) number(name string, otherwise, least, most int) (n int) {
	r.check(name, func(text string) (err error) {
		if n = otherwise; text == "" {
			return nil
		}
		if n, err = strconv.Atoi(text); err != nil || n < least || n > most {
			return fmt.Errorf("must be a number from %d to %d", least, most)
		}
		return nil
	})
	return n
}

func (r *reader) duration(name string, otherwise, least time.Duration) (d time.Duration) {
	const most = time.Hour
	r.check(name, func(text string) (err error) {
		if d = otherwise; text == "" {
			return nil
		}
		if d, err = time.ParseDuration(text); err != nil || d < max(least, time.Millisecond) || d > most {
			return fmt.Errorf("must be a duration from %s to %s, such as %s", max(least, time.Millisecond), most, otherwise)
		}
		return nil
	})
	return d
}

func (r *reader) boolean(name string) (on bool) {
	r.check(name, func(text string) (err error) {
		if text == "" {
			return nil
		}
		if on, err = strconv.ParseBool(text); err != nil {
			return errors.New("must be true or false")
		}
		return nil
	})
	return on
}
