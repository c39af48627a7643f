package fence

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestDecide has each way in which a database comes to be, as a worker sees it that
// remembers commits, and as one that does not.
func TestDecide(t *testing.T) {
	t.Parallel()
	id, other, worker := uuid.New(), uuid.New(), uuid.New()
	checked := Status{Database: id, Epoch: 3, State: StateOpen, Stored: Identity{"7", 5, 1}, Now: Identity{"7", 5, 1}, SameServer: true}
	status := func(change func(*Status)) Status {
		s := checked
		change(&s)
		return s
	}
	remembers := memory{Database: id, Worker: worker, Commits: map[int16]int64{0: 4, 2: 9}}
	became := remembers // the database was another one before its first worker, or its last recovery
	became.Database, became.Earlier = other, id
	all, less := map[int16]int64{0: 5, 1: 1, 2: 9}, map[int16]int64{0: 4, 2: 8}
	restarted := status(func(s *Status) { s.SameServer = false })
	for name, test := range map[string]struct {
		remembers memory
		status    Status
		there     map[int16]int64
		wanted    uuid.UUID
		want      step
		why       string
	}{
		"the same server":                           {remembers, checked, all, uuid.Nil, pass, ""},
		"the same server and a new process":         {memory{}, checked, nil, id, pass, ""},
		"a database without workers":                {memory{}, status(func(s *Status) { s.State = StateNew }), nil, uuid.Nil, adopt, ""},
		"a dump in another cluster":                 {memory{}, status(func(s *Status) { s.Now.System = "8"; s.SameServer = false }), nil, uuid.Nil, hold, ReasonCopy},
		"a dump in the same cluster, or a template": {memory{}, status(func(s *Status) { s.Now.OID = 6 }), nil, uuid.Nil, hold, ReasonCopy},
		"a server that withholds its identity":      {remembers, status(func(s *Status) { s.Now = Identity{OID: 5} }), all, uuid.Nil, pass, ""},
		"a database without an identity":            {remembers, status(func(s *Status) { s.Stored = Identity{} }), all, uuid.Nil, pass, ""},
		"a restart in place":                        {remembers, restarted, all, uuid.Nil, begin, ""},
		"a restart in place and a new process":      {memory{}, restarted, nil, uuid.Nil, begin, ""},
		"a base backup, or files set back":          {remembers, restarted, less, uuid.Nil, hold, ReasonLost},
		"files set back under a running server":     {remembers, checked, less, uuid.Nil, hold, ReasonLost},
		"a row that is gone":                        {remembers, checked, map[int16]int64{2: 9}, uuid.Nil, hold, ReasonLost},
		"a dump of before the first worker":         {remembers, status(func(s *Status) { s.State = StateNew }), nil, uuid.Nil, hold, ReasonLost},
		"a promoted standby":                        {remembers, status(func(s *Status) { s.SameServer = false; s.Now.Timeline = 2 }), all, uuid.Nil, begin, ""},
		"a standby that lagged":                     {remembers, status(func(s *Status) { s.SameServer = false; s.Now.Timeline = 2 }), less, uuid.Nil, hold, ReasonLost},
		"while workers compare":                     {remembers, status(func(s *Status) { s.State = StateChecking }), all, uuid.Nil, confirm, ""},
		"a loss while workers compare":              {remembers, status(func(s *Status) { s.State = StateChecking }), less, uuid.Nil, hold, ReasonLost},
		"a server that changes while they do":       {remembers, status(func(s *Status) { s.State = StateChecking; s.SameServer = false }), all, uuid.Nil, begin, ""},
		"a held database":                           {remembers, status(func(s *Status) { s.State, s.Reason = StateHeld, ReasonCopy }), all, uuid.Nil, wait, ReasonCopy},
		"set back to before the first worker":       {became, status(func(s *Status) { s.State = StateNew }), nil, uuid.Nil, hold, ReasonLost},
		"set back, and of this deployment":          {became, status(func(s *Status) { s.State = StateNew }), nil, other, hold, ReasonLost},
		"set back, and of another deployment":       {became, status(func(s *Status) { s.State = StateNew }), nil, worker, refuse, ""},
		"set back to before the recovery":           {became, checked, all, uuid.Nil, hold, ReasonLost},
		"set back to before it, while it was held":  {became, status(func(s *Status) { s.State, s.Reason = StateHeld, ReasonCopy }), all, uuid.Nil, wait, ReasonCopy},
		"the database of another deployment":        {memory{}, checked, nil, other, refuse, ""},
		"a state file of another database":          {memory{Database: other, Worker: worker}, checked, nil, uuid.Nil, refuse, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := decide(test.remembers, test.status, test.there, test.wanted)

			if got.step != test.want || got.reason != test.why {
				t.Errorf("decide = %d for %q (%s), want %d for %q", got.step, got.reason, got.detail, test.want, test.why)
			}
			if lost := strings.Contains(got.detail, "missing"); got.step == hold && lost != got.lost {
				t.Errorf("decide reports lost as %t: %s", got.lost, got.detail)
			}
		})
	}
}

// TestNext has what ends the check of a server.
func TestNext(t *testing.T) {
	t.Parallel()
	same, forked := Status{Stored: Identity{Timeline: 1}, Now: Identity{Timeline: 1}}, Status{Stored: Identity{Timeline: 1}, Now: Identity{Timeline: 2}}
	for name, test := range map[string]struct {
		status  Status
		answers answers
		after   time.Duration
		want    State
	}{
		"the only worker":                         {same, answers{}, 0, StateOpen},
		"a worker that has not answered":          {same, answers{others: true, awaited: true}, time.Minute, StateChecking},
		"all have answered, too early":            {same, answers{others: true, remembered: true}, newcomers - 1, StateChecking},
		"all have answered":                       {same, answers{others: true, remembered: true}, newcomers, StateOpen},
		"a failover, and nobody remembers":        {forked, answers{}, time.Hour, StateHeld},
		"a failover, and somebody remembers":      {forked, answers{remembered: true}, 0, StateOpen},
		"a failover, somebody may still remember": {forked, answers{others: true, awaited: true}, time.Hour, StateChecking},
		"a timeline that is withheld":             {Status{Stored: Identity{Timeline: 1}}, answers{}, 0, StateOpen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := test.status.next(test.answers, test.after); got != test.want {
				t.Errorf("next = %s, want %s", got, test.want)
			}
		})
	}
}
