package evaluate

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/mail/message"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/corpus"
	"github.com/countersign-dev/countersign/internal/triage/decide"
	"github.com/countersign-dev/countersign/internal/triage/signal"
)

// fixture is the project's own set with the data of its accounts.
type fixture struct {
	source   corpus.Source
	contexts contexts
}

// contexts holds the data of the fixture's accounts before its messages.
type contexts struct {
	Authserv string             `json:"authserv_id"`
	Social   []string           `json:"social"`
	Owners   map[string]account `json:"owners"`
}

// account is the data of one account.
type account struct {
	Addresses []string        `json:"addresses"`
	Domains   []string        `json:"domains"`
	VIPs      []string        `json:"vips"`
	Known     []correspondent `json:"known"`
	Lists     []string        `json:"lists"`
	Sent      []string        `json:"sent"`
}

type correspondent struct {
	Name     string `json:"name"`
	Addr     string `json:"addr"`
	Received int    `json:"received"`
	Sent     int    `json:"sent"`
	Replied  int    `json:"replied"`
}

// readFixture reads a set of the project's own.
func readFixture(files fs.FS, name string) (fixture, error) {
	var out fixture
	var err error
	if out.source, err = corpus.OwnSet(files, name); err != nil {
		return out, err
	}
	data, err := fs.ReadFile(files, "context.json")
	if err == nil {
		err = json.Unmarshal(data, &out.contexts)
	}
	if err != nil {
		return out, fmt.Errorf("read context.json of the set %s: %w", name, err)
	}
	return out, nil
}

// owner returns the account with an address.
func (c contexts) owner(address string) account {
	for _, a := range c.Owners {
		if slices.Contains(a.Addresses, address) {
			return a
		}
	}
	return account{}
}

// about returns the context of a message of the fixture for the rules.
func (c contexts) about(m *message.Message, a account) signal.Context {
	about := signal.Context{
		Addresses: a.Addresses, Domains: a.Domains, Now: m.Date,
		// Without a resolver only the trusted host's header is read.
		Authentication: authenticate.Check(context.Background(), nil, m, authenticate.Config{TrustedHost: c.Authserv, Now: m.Date}),
		ReplyToMine:    slices.ContainsFunc(m.InReplyTo, func(id string) bool { return slices.Contains(a.Sent, id) }),
	}
	var known []signal.Contact
	for _, k := range a.Known {
		known = append(known, signal.Contact{Name: k.Name, Addr: k.Addr})
		if len(m.From) > 0 && k.Addr == m.From[0].Addr {
			about.Sender = signal.Sender{Received: k.Received, Sent: k.Sent, Replied: k.Replied}
		}
	}
	about.Contacts = signal.NewContacts(known)
	about.Sender.VIP = len(m.From) > 0 && slices.Contains(a.VIPs, m.From[0].Addr)
	for _, f := range m.Fields {
		if strings.EqualFold(f.Name, "List-Id") && slices.ContainsFunc(a.Lists, func(l string) bool { return strings.Contains(f.Value, "<"+l+">") }) {
			about.List = signal.Sender{Received: 1}
		}
	}
	return about
}

// judge runs all of triage on a message of the fixture, in the context of its
// account.
func (f fixture) judge(m *classify.Model, e corpus.Example) judged {
	j, facts := f.facts(m, e)
	j.decision = decide.Decide(facts)
	return j
}

// judgeAll judges all messages of the set.
func (f fixture) judgeAll(m *classify.Model) []judged {
	out := make([]judged, 0, len(f.source.Examples))
	for _, e := range f.source.Examples {
		out = append(out, f.judge(m, e))
	}
	return out
}

// facts runs the rules and the model on a message of the fixture, in the
// context of its account, and returns the facts for a decision.
func (f fixture) facts(m *classify.Model, e corpus.Example) (judged, decide.Facts) {
	msg := message.Parse(e.Raw)
	account := f.contexts.owner(e.Owner)
	about := f.contexts.about(msg, account)
	found := signal.Find(msg, about)
	p := m.Predict(m.Features(msg, about, found))
	found = found.WithModel(p.Phishing)
	j := judged{id: e.ID, labels: e.Labels, message: msg, signals: found, prediction: p}
	return j, decide.Facts{
		Headers: decide.HeadersOf(msg), Folder: mailbox.UseInbox, Authentication: about.Authentication, Signals: found,
		Prediction: j.prediction, Sender: about.Sender, List: about.List,
		Settings: decide.Settings{
			Addresses: account.Addresses, Domains: account.Domains, VIP: account.VIPs, Social: f.contexts.Social,
		},
	}
}

// evaluateFixture evaluates the project's own fixture.
func (r *run) evaluateFixture(context.Context) error {
	var all []judged
	var cohort, bucket, phishingNeeds, needed share
	var moves found
	wanted := map[cascade.Tier]*share{cascade.T1: {}, cascade.T2a: {}}
	perCohort := map[string]*[2]share{}
	for _, e := range r.own.source.Examples {
		j := r.own.judge(r.cold, e)
		all = append(all, j)
		decision := j.decision
		cohort.add(string(decision.Cohort) == e.Labels.Cohort)
		bucket.add(string(decision.Bucket) == e.Labels.Bucket)
		moved := slices.ContainsFunc(decision.Wants, func(w decide.Want) bool { return w.Action == decide.Archive && !w.Confirm })
		moves.add(moved, e.Labels.Bucket == string(decide.Archived))
		if decide.Bucket(e.Labels.Bucket).NeedsOwner() {
			needed.add(moved)
		}
		tiers := cascade.Wanted(cascade.Mail{
			Subject: j.message.Subject, Body: j.message.Body, Prediction: j.prediction, Decision: decision, Signals: j.signals,
		})
		for tier, asked := range wanted {
			asked.add(slices.Contains(tiers, tier))
		}
		if j.signals.Phishing {
			phishingNeeds.add(decision.Bucket == decide.Urgent || decision.Bucket == decide.Actionable)
		}
		of := perCohort[e.Labels.Cohort]
		if of == nil {
			of = new([2]share)
			perCohort[e.Labels.Cohort] = of
		}
		of[0].add(j.prediction.Priority == j.label())
		of[1].add(withinOne(j.prediction.Priority, j.label()))
	}
	figures := append(priorities(all, 1), others(all, 1)...)
	figures = append(append(figures, moves.figures("archived without a person", 1)[:2]...), needed.figure("archived without a person, and needs its owner", 1))
	figures = append(figures, cohort.figure("cohort exact", 1), bucket.figure("bucket exact", 1),
		phishingNeeds.figure("flagged as phishing and yet in need of the owner", 1),
		wanted[cascade.T1].figure("a local model would be asked t1", 1), wanted[cascade.T2a].figure("a local model would be asked t2a without its answer", 1))
	for _, c := range decide.Cohorts() {
		if of := perCohort[string(c)]; of != nil {
			figures = append(figures, of[0].figure("cohort "+string(c)+": exact", 1), of[1].figure("cohort "+string(c)+": within one", 1))
		}
	}
	r.add(Section{
		Set: "fixture", Mode: Cold, Examples: len(all), Figures: append(figures, agreement(r.own.source)...),
		Note: "messages written for this project, labelled by rules that were written first; agreement is between two labellings",
	})
	r.addFlags("fixture", all)
	return nil
}

// agreement returns how often the second labelling agrees with the first.
func agreement(source corpus.Source) []Figure {
	var priority, act share
	for _, e := range source.Examples {
		if e.Second != nil {
			priority.add(e.Second.Priority == e.Labels.Priority)
			act.add(e.Second.Act == e.Labels.Act)
		}
	}
	if priority.of == 0 {
		return nil
	}
	return []Figure{priority.figure("agreement of people on priority", 1), act.figure("agreement of people on act", 1)}
}
