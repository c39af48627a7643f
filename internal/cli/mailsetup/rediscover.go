package mailsetup

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/countersign-dev/countersign/internal/cli/command"
	"github.com/countersign-dev/countersign/internal/triage/discover"
)

// weekly is the choice to search this machine each week, and week its interval.
const (
	weekly = "weekly"
	week   = 7 * 24 * time.Hour
)

// known is the file of the person who chose to search weekly: the accounts that were
// found, by address or place.
type known struct {
	LookedAt time.Time `json:"looked_at"`
	Accounts []string  `json:"accounts"`
}

func knownFile(a *command.App) (string, error) {
	dir, err := a.ConfigDir()
	return filepath.Join(dir, "mail-accounts.json"), err
}

// rediscover stores the choice. The accounts of now are known.
func (s *setup) rediscover() error {
	file, err := knownFile(s.app)
	if err != nil {
		return err
	}
	if s.flags.rediscover != weekly {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		s.say("This machine is not searched for mail accounts.")
		return nil
	}
	r, err := s.find()
	if err != nil {
		return err
	}
	s.say("Each week, \"triage status\" searches this machine for new mail accounts; --rediscover never ends it.")
	return writeKnown(file, known{s.began, keysOf(r)})
}

func keysOf(r discover.Report) []string {
	all := []string{}
	for _, f := range r.Findings {
		all = append(all, keyOf(f))
	}
	return all
}

func keyOf(f discover.Finding) string { return cmp.Or(f.Address, where(f)) }

func writeKnown(file string, k known) error {
	raw, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}

// Notice returns a function that searches this machine for new mail accounts, if the
// person chose so and a week has passed, and shows a notice about each, once.
func Notice(a *command.App) func(now time.Time) error {
	return func(now time.Time) error {
		file, err := knownFile(a)
		if err != nil {
			return nil // nothing was chosen
		}
		raw, err := os.ReadFile(file)
		var k known
		if err != nil || json.Unmarshal(raw, &k) != nil || now.Sub(k.LookedAt) < week {
			return nil
		}
		r, err := (&setup{app: a}).find()
		if err != nil {
			return err
		}
		for _, f := range r.Findings {
			if !slices.Contains(k.Accounts, keyOf(f)) {
				a.Note("New mail account on this machine: %s (found in %s).\nTo set it up: countersign triage setup %s", keyOf(f), origins(f), command.Quoted(cmp.Or(f.Address, f.Path)))
				k.Accounts = append(k.Accounts, keyOf(f))
			}
		}
		k.LookedAt = now
		return writeKnown(file, k)
	}
}
