package rest

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/fault"
	"github.com/countersign-dev/countersign/internal/postgres"
)

const (
	// readAtOnce is how many events one look reads.
	readAtOnce = 100
	// backlog is how many reads a stream may be behind before it is cut off.
	backlog = 64
	// sweepEvery is how often it is asked whether awaited actions have ended,
	// beside the events: those wait for the oldest transaction of the whole
	// server, whosever it is.
	sweepEvery = time.Second
)

// errClosed says that the server takes no more streams and waits.
var errClosed = fault.New(fault.Busy, "the server is closing; try again")

// hub looks for a tenant's events, once for everybody in this process who
// waits for them, and only while somebody does.
type hub struct {
	db     postgres.Begins
	every  time.Duration
	log    *slog.Logger
	closed chan struct{}

	mu      sync.Mutex
	over    bool
	feeds   map[envelope.TenantID]*feed
	pollers sync.WaitGroup
}

// feed is what is known of one tenant. The hub's mutex guards it.
type feed struct {
	tenant envelope.TenantID
	users  int
	stop   context.CancelFunc
	// ready is closed once at is known.
	ready   chan struct{}
	at      audit.Place
	streams map[*follower]struct{}
	watches map[envelope.ActionID]map[*watch]struct{}
	swept   time.Time
}

// follower is a stream that wants every event behind from.
type follower struct {
	of *feed
	// choosy says that it has to know what actions are to choose among events.
	choosy bool
	from   audit.Place
	// batches is closed when the follower was too slow, or the hub closes.
	batches chan batch
	cut     bool
}

// batch is the events of one read. about holds what their actions are, if
// anybody needed to know.
type batch struct {
	events []audit.Stored
	about  map[envelope.ActionID]about
}

// watch hears when something happened to one action.
type watch struct {
	of     *feed
	action envelope.ActionID
	nudged chan struct{}
}

func newHub(db postgres.Begins, every time.Duration, log *slog.Logger) *hub {
	return &hub{db: db, every: every, log: log, closed: make(chan struct{}), feeds: make(map[envelope.TenantID]*feed)}
}

func (h *hub) isClosed() bool {
	select {
	case <-h.closed:
		return true
	default:
		return false
	}
}

// close ends all streams and waits, and returns when no poller runs any more.
func (h *hub) close() {
	h.mu.Lock()
	if !h.over {
		h.over = true
		close(h.closed)
		for _, f := range h.feeds {
			f.stop()
			for sub := range f.streams {
				f.cutOff(sub)
			}
		}
	}
	h.mu.Unlock()
	h.pollers.Wait()
}

// follow starts a stream. Whoever got a follower must leave it.
func (h *hub) follow(ctx context.Context, tenant envelope.TenantID, choosy bool) (*follower, error) {
	f, err := h.join(ctx, tenant)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	sub := &follower{of: f, choosy: choosy, from: f.at, batches: make(chan batch, backlog)}
	f.streams[sub] = struct{}{}
	if h.over {
		f.cutOff(sub)
	}
	return sub, nil
}

// leave ends a stream.
func (h *hub) leave(sub *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(sub.of.streams, sub)
	h.drop(sub.of)
}

// watch starts a wait. Whoever got a watch must unwatch it. What happened
// before watch returned may go unheard; what happens after does not.
func (h *hub) watch(ctx context.Context, tenant envelope.TenantID, action envelope.ActionID) (*watch, error) {
	f, err := h.join(ctx, tenant)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	w := &watch{of: f, action: action, nudged: make(chan struct{}, 1)}
	if f.watches[action] == nil {
		f.watches[action] = make(map[*watch]struct{})
	}
	f.watches[action][w] = struct{}{}
	return w, nil
}

// unwatch ends a wait.
func (h *hub) unwatch(w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(w.of.watches[w.action], w)
	if len(w.of.watches[w.action]) == 0 {
		delete(w.of.watches, w.action)
	}
	h.drop(w.of)
}

// join returns the tenant's feed once it knows where it is.
func (h *hub) join(ctx context.Context, tenant envelope.TenantID) (*feed, error) {
	h.mu.Lock()
	if h.over {
		h.mu.Unlock()
		return nil, errClosed
	}
	f := h.feeds[tenant]
	if f == nil {
		polling, stop := context.WithCancel(context.WithoutCancel(ctx))
		f = &feed{
			tenant: tenant, stop: stop, ready: make(chan struct{}),
			streams: make(map[*follower]struct{}), watches: make(map[envelope.ActionID]map[*watch]struct{}),
		}
		h.feeds[tenant] = f
		h.pollers.Go(func() { h.poll(polling, f) })
	}
	f.users++
	h.mu.Unlock()
	var err error
	select {
	case <-f.ready:
		return f, nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-h.closed:
		err = errClosed
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(f)
	return nil, err
}

// drop counts a user out; the last one stops the poller. The caller holds the
// mutex.
func (h *hub) drop(f *feed) {
	if f.users--; f.users == 0 {
		f.stop()
		delete(h.feeds, f.tenant)
	}
}

// poll looks for events until it is stopped.
func (h *hub) poll(ctx context.Context, f *feed) {
	defer f.stop()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		pause := h.every
		if err := h.advance(ctx, f); err != nil && ctx.Err() == nil {
			h.log.WarnContext(ctx, "events not read", slog.String("tenant_id", f.tenant.String()), slog.Any("error", err))
			pause = max(pause, time.Second)
		}
		timer.Reset(pause)
	}
}

// advance brings a feed up to what is committed.
func (h *hub) advance(ctx context.Context, f *feed) error {
	ctx, cancel := context.WithTimeout(ctx, workFor)
	defer cancel()
	if !f.known() {
		return h.begin(ctx, f)
	}
	for {
		events, err := readEvents(ctx, h.db, f.tenant, f.at)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			if err := h.publish(ctx, f, batch{events: events}); err != nil {
				return err
			}
		}
		if len(events) < readAtOnce {
			return h.sweep(ctx, f, time.Now())
		}
	}
}

func (f *feed) known() bool {
	select {
	case <-f.ready:
		return true
	default:
		return false
	}
}

// begin finds where what is new begins.
func (h *hub) begin(ctx context.Context, f *feed) error {
	var at audit.Place
	err := postgres.InTx(ctx, h.db, postgres.API(f.tenant), func(tx pgx.Tx) error {
		var err error
		at, err = audit.Latest(ctx, tx, f.tenant)
		return err
	})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	f.at = at
	close(f.ready)
	return nil
}

// publish hands a batch to everybody. Who joins while actions are looked up
// gets the batch as well, since the feed stands before it until then.
func (h *hub) publish(ctx context.Context, f *feed, b batch) error {
	for !h.handOut(f, b) {
		var err error
		if b.about, err = aboutOf(ctx, h.db, f.tenant, b.events); err != nil {
			return err
		}
	}
	return nil
}

// handOut is publish, unless it takes what is not known yet.
func (h *hub) handOut(f *feed, b batch) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for sub := range f.streams {
		if sub.choosy && b.about == nil {
			return false
		}
	}
	for sub := range f.streams {
		select {
		case sub.batches <- b:
		default:
			f.cutOff(sub)
		}
	}
	for _, e := range b.events {
		for _, it := range e.Items {
			f.nudge(it.Action)
		}
	}
	f.at = b.events[len(b.events)-1].Place
	return true
}

// cutOff ends a stream from this side. The caller holds the mutex.
func (f *feed) cutOff(sub *follower) {
	if !sub.cut {
		sub.cut = true
		delete(f.streams, sub)
		close(sub.batches)
	}
}

func (f *feed) nudge(action envelope.ActionID) {
	for w := range f.watches[action] {
		select {
		case w.nudged <- struct{}{}:
		default: // it has been told and has not looked yet
		}
	}
}

// sweep asks now and then whether awaited actions have ended unheard.
func (h *hub) sweep(ctx context.Context, f *feed, now time.Time) error {
	h.mu.Lock()
	due := len(f.watches) > 0 && now.Sub(f.swept) >= sweepEvery
	awaited := make([]envelope.ActionID, 0, len(f.watches))
	for action := range f.watches {
		awaited = append(awaited, action)
	}
	h.mu.Unlock()
	if !due {
		return nil
	}
	f.swept = now // only the poller uses it
	ended, err := endedOf(ctx, h.db, f.tenant, awaited)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, action := range ended {
		f.nudge(action)
	}
	return nil
}
