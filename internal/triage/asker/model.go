package asker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/measure"
	"github.com/countersign-dev/countersign/internal/triage/model"
)

// Models are the language models of a process: their tiers and the state of
// their servers. All runs share them and the slots of their servers.
type Models struct {
	set          *model.Set
	tiers        map[cascade.Tier]model.Tier
	calibrations cascade.Calibrations
	metrics      *measure.Models

	// known is closed after the first probe of every server.
	known   chan struct{}
	isKnown func()
	mu      sync.Mutex
	refused refusal
	// seen holds the last probe of each tier.
	seen map[string]sight
}

// sight is the result of a probe at a time; the kind is empty if the tier was
// available.
type sight struct {
	kind model.Kind
	at   time.Time
}

// refusal is an attempt to answer from a server or a model that is not local;
// such an answer is rejected. It is empty without such an answer.
type refusal struct {
	at time.Time
	// text names the server, the model and the problem.
	text string
}

// modelState is the state of the model of some tiers, as it is stored for
// people.
type modelState struct {
	Server string   `json:"server"`
	Model  string   `json:"model"`
	Tiers  []string `json:"tiers"`
	Usable bool     `json:"usable"`
	// Kind and Why describe why it is not usable.
	Kind  model.Kind `json:"kind,omitempty"`
	Why   string     `json:"why,omitempty"`
	Since *time.Time `json:"since,omitempty"`
}

// OpenModels returns the models of a configuration and reads its calibrations.
// It does not connect. The meter may be nil.
func OpenModels(c model.Config, meter metric.Meter) (*Models, error) {
	m := &Models{tiers: map[cascade.Tier]model.Tier{}, known: make(chan struct{}), seen: map[string]sight{}}
	m.isKnown = sync.OnceFunc(func() { close(m.known) })
	var err error
	if m.calibrations, err = cascade.OpenCalibrations(c.Calibrations); err != nil {
		return nil, err
	}
	if m.metrics, err = measure.NewModels(meter); err != nil {
		return nil, err
	}
	m.set, err = model.Open(c, model.Observer{
		Asked: func(a model.Asked) {
			m.metrics.Asked(a.Server, string(cmp.Or(a.Kind, "answered")), a.Took)
		},
		Refused: func(r model.Refused) {
			m.metrics.Refused(r.Server, 1)
			m.mu.Lock()
			defer m.mu.Unlock()
			m.refused = refusal{time.Now(), postgres.Text(fmt.Sprintf("server %s, model %s: %s", r.Server, r.Model, r.Why))}
		},
	})
	if err != nil {
		return nil, err
	}
	for server := range c.Servers {
		m.metrics.Refused(server, 0)
	}
	for _, tier := range cascade.Tiers() {
		if t, ok := m.set.Tier(string(tier)); ok {
			m.tiers[tier] = t
		}
	}
	return m, m.metrics.Observe(meter, m.usable)
}

// Close closes idle connections and stops the gauges. A nil Models may be
// closed.
func (m *Models) Close() error {
	if m == nil {
		return nil
	}
	m.set.Close()
	return m.metrics.Close()
}

// Watch probes all models now and then at every interval, until end is called.
// On nil Models it does nothing.
func (m *Models) Watch(ctx context.Context, every time.Duration) (end func()) {
	if m == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var first, all sync.WaitGroup
	for _, name := range model.Tiers() {
		t, ok := m.set.Tier(name)
		if !ok {
			continue
		}
		done := func() {}
		if _, ours := m.tiers[cascade.Tier(name)]; ours {
			first.Add(1)
			done = sync.OnceFunc(first.Done)
		}
		all.Go(func() {
			for ctx.Err() == nil {
				m.look(ctx, name, t)
				done()
				select {
				case <-ctx.Done():
				case <-time.After(every):
				}
			}
			done()
		})
	}
	all.Go(func() {
		first.Wait()
		m.isKnown()
	})
	return func() {
		cancel()
		all.Wait()
	}
}

// look probes a tier.
func (m *Models) look(ctx context.Context, name string, t model.Tier) {
	begun := time.Now()
	err := t.Ready(ctx)
	if ctx.Err() != nil {
		return
	}
	found := sight{at: begun}
	if wrong, ok := errors.AsType[*model.Error](err); ok {
		found.kind = wrong.Kind
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen[name] = found
}

// await waits for the first probe of all models, for the given time at most.
func (m *Models) await(ctx context.Context, longest time.Duration) {
	if m == nil {
		return
	}
	select {
	case <-m.known:
	case <-time.After(longest):
	case <-ctx.Done():
	}
}

// Writer returns the model of tier t3, which writes texts, or nil.
func (m *Models) Writer() Writer {
	if m != nil {
		if t, ok := m.set.Tier("t3"); ok {
			return t
		}
	}
	return nil
}

// lastRefusal returns the last refusal.
func (m *Models) lastRefusal() refusal {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.refused
}

// states returns the states of the models without a probe.
func (m *Models) states() []modelState {
	of := map[[2]string]*modelState{}
	for _, name := range model.Tiers() {
		t, ok := m.set.Tier(name)
		if !ok {
			continue
		}
		key := [2]string{t.Name(), t.Model()}
		if of[key] == nil {
			of[key] = m.state(name, t)
		}
		of[key].Tiers = append(of[key].Tiers, name)
	}
	states := []modelState{}
	for _, key := range slices.SortedFunc(maps.Keys(of), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		states = append(states, *of[key])
	}
	return states
}

// state returns the state of a tier's model.
func (m *Models) state(name string, t model.Tier) *modelState {
	is, kind := t.State(), m.kind(name, t)
	s := &modelState{Server: t.Name(), Model: t.Model(), Usable: kind == "", Kind: kind}
	if kind != "" {
		s.Why = postgres.Text(is.Why)
	}
	if !is.Since.IsZero() {
		s.Since = &is.Since
	}
	return s
}

// kind returns the last known reason why a tier's model cannot be asked, or "".
func (m *Models) kind(name string, t model.Tier) model.Kind {
	if is := t.State(); !is.Usable {
		return cmp.Or(is.Kind, model.Unavailable)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen[name].kind
}

// usable reports for each server whether all its models can be asked.
func (m *Models) usable() map[string]bool {
	servers := map[string]bool{}
	for _, s := range m.states() {
		was, known := servers[s.Server]
		servers[s.Server] = s.Usable && (was || !known)
	}
	return servers
}

// configured returns the tiers with a model, in the order of asking.
func (m *Models) configured() []cascade.Tier {
	var all []cascade.Tier
	if m == nil {
		return all
	}
	for _, tier := range cascade.Tiers() {
		if _, ok := m.tiers[tier]; ok {
			all = append(all, tier)
		}
	}
	return all
}

// unavailable returns the last known reason why a tier cannot be asked, or "".
func (m *Models) unavailable(tier cascade.Tier) model.Kind {
	return m.kind(string(tier), m.tiers[tier])
}

// recoveredSince reports whether a probe after a time found a tier available.
func (m *Models) recoveredSince(tier cascade.Tier, at time.Time) bool {
	m.mu.Lock()
	seen := m.seen[string(tier)]
	m.mu.Unlock()
	return seen.at.After(at) && m.unavailable(tier) == ""
}

// wanted returns the tiers to ask about a message.
func (m *Models) wanted(mail cascade.Mail) []cascade.Tier {
	return slices.DeleteFunc(cascade.Wanted(mail), func(tier cascade.Tier) bool { return !slices.Contains(m.configured(), tier) })
}

// cascade returns a cascade whose questions fail after a stop.
func (m *Models) cascade(stop *stop) *cascade.Cascade {
	endpoints := map[cascade.Tier]cascade.Endpoint{}
	for tier, t := range m.tiers {
		endpoints[tier] = cascade.Endpoint{Asker: stopping{t, stop}, Server: t.Name(), Model: t.Model(), Slots: t.Slots(), Pack: t.Pack}
	}
	return cascade.New(cascade.Config{Endpoints: endpoints, Calibrations: m.calibrations})
}

// errStopped is the error for a question that was not asked because other work
// was waiting.
var errStopped = errors.New("the question was not asked")

// stop ends a series of questions: after a time, or for new mail. It always
// allows one question, so that there is progress.
type stop struct {
	until  time.Time
	begun  atomic.Bool
	called atomic.Bool
}

// over reports whether no further question may begin.
func (s *stop) over() bool { return s.called.Load() || time.Now().After(s.until) }

// stopping is an asker that fails after a stop.
type stopping struct {
	asker cascade.Asker
	stop  *stop
}

// Ask implements cascade.Asker.
func (s stopping) Ask(ctx context.Context, q model.Question) (model.Answer, error) {
	if !s.stop.begun.CompareAndSwap(false, true) && s.stop.over() {
		return model.Answer{}, errStopped
	}
	return s.asker.Ask(ctx, q)
}
