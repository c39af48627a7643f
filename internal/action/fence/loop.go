package fence

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/countersign-dev/countersign/internal/action/outbox"
)

// Loop counts the commits of one goroutine of a worker.
type Loop struct {
	guard  *Guard
	number int16
	// seq belongs to the goroutine.
	seq       int64
	confirmed atomic.Int64
}

// noEpoch is the epoch of marks while the process may not claim. It is not 0, the epoch of
// a database that no worker has adopted.
const noEpoch = -1

// Next returns the mark of the loop's next transaction.
func (l *Loop) Next() outbox.Mark {
	l.seq++
	return outbox.Mark{Worker: l.guard.worker, Loop: l.number, Seq: l.seq, Epoch: cmp.Or(l.guard.epoch.Load(), noEpoch)}
}

// Confirm records that the transaction of a mark changed rows and was committed.
func (l *Loop) Confirm(mark outbox.Mark) { l.confirmed.Store(mark.Seq) }

// loops are those of a process.
type loops struct {
	mu  sync.Mutex
	all []*Loop
	// old are the commits of the process that wrote the state file.
	old memory
}

// Loop returns a new loop, for one goroutine.
func (g *Guard) Loop() *Loop {
	g.loops.mu.Lock()
	defer g.loops.mu.Unlock()
	l := &Loop{guard: g, number: int16(len(g.loops.all))}
	g.loops.all = append(g.loops.all, l)
	return l
}

// remember returns the commits that were confirmed until now. The file's count until the
// process has commits of its own.
func (g *Guard) remember() memory {
	g.loops.mu.Lock()
	defer g.loops.mu.Unlock()
	m := memory{Database: g.database, Earlier: g.earlier, Worker: g.worker, Commits: make(map[int16]int64)}
	for _, l := range g.loops.all {
		if n := l.confirmed.Load(); n > 0 {
			m.Commits[l.number] = n
		}
	}
	if m.empty() && !g.loops.old.empty() {
		return g.loops.old
	}
	return m
}

// forget drops the memory of a database that was recovered since.
func (g *Guard) forget() {
	g.loops.mu.Lock()
	defer g.loops.mu.Unlock()
	g.loops.old = memory{}
	for _, l := range g.loops.all {
		l.confirmed.Store(0)
	}
}
