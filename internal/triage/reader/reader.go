// Package reader reads a mail account and decides each message once. It reads
// new and older mail, has each message parsed, judged and decided by the
// packages below, and stores the decision and its proposals. It changes no
// mailbox: its only effect is a row of triage_proposals, which the database
// proposes in the same transaction. It has no rules of its own about mail, and
// asks no language model.
package reader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-dev/countersign/internal/mail/authenticate"
	"github.com/countersign-dev/countersign/internal/mail/mailbox"
	"github.com/countersign-dev/countersign/internal/triage/account"
	"github.com/countersign-dev/countersign/internal/triage/cascade"
	"github.com/countersign-dev/countersign/internal/triage/classify"
	"github.com/countersign-dev/countersign/internal/triage/lease"
	"github.com/countersign-dev/countersign/internal/triage/measure"
	"github.com/countersign-dev/countersign/internal/triage/model"
	"github.com/countersign-dev/countersign/internal/triage/signal"
	"github.com/countersign-dev/countersign/internal/triage/thread"
)

// Config configures a Reader. All fields but Resolver are required.
type Config struct {
	// Open opens an account for reading.
	Open func(ctx context.Context, a account.Account) (mailbox.Reader, error)
	// Model is the embedded tier.
	Model *classify.Model
	// Resolver queries DNS for the keys and policies of senders; if nil, no
	// query is made.
	Resolver authenticate.Resolver
	// Withhold is the longest time that proposals wait for answers of models.
	Withhold time.Duration
	// Texts reports whether a model writes texts.
	Texts   bool
	Metrics *measure.Metrics
	Tracer  trace.Tracer
}

// Questions decides which language models are asked about a message.
type Questions interface {
	// Wanted returns the tiers to ask about a message.
	Wanted(m cascade.Mail) []cascade.Tier
	// Unavailable returns why a tier cannot be asked now, or "".
	Unavailable(tier cascade.Tier) model.Kind
}

// Reader reads the account of a lease.
type Reader struct {
	// Questions selects the models to ask; if nil, none are asked.
	Questions Questions

	cfg   Config
	lease *lease.Lease
	// mailbox is nil while the account is not open.
	mailbox mailbox.Reader
	folders []mailbox.Folder
	// aside holds the locations of messages set aside, and readAgain those that
	// a person asked to read again, by folder.
	aside     map[mailbox.Location]bool
	readAgain map[string][]mailbox.Item
	contacts  *signal.Contacts
	model     *classify.Corrected
	// corrections is the version of the corrections in model.
	corrections correctionsVersion
	// corrected counts the corrections of each sender and list.
	corrected map[string]int
	recent    recent
}

// New returns a Reader of the account of a lease. The lease must be loaded.
func New(cfg Config, l *lease.Lease) *Reader { return &Reader{cfg: cfg, lease: l} }

// Load loads the input of decisions: the messages set aside, the owner's
// correspondents, and changed corrections.
func (r *Reader) Load(ctx context.Context, tx pgx.Tx) error {
	if r.mailbox == nil {
		if err := interruptRuns(ctx, tx, r.lease); err != nil {
			return err
		}
	}
	if err := r.loadAside(ctx, tx); err != nil {
		return err
	}
	list, err := contacts(ctx, tx, r.lease)
	if err != nil {
		return err
	}
	r.contacts = signal.NewContacts(list)
	version, err := correctionsOf(ctx, tx, r.lease)
	if err != nil || r.model != nil && version == r.corrections {
		return err
	}
	if r.corrected, err = correctedSenders(ctx, tx, r.lease); err != nil {
		return err
	}
	if err := decideCorrected(ctx, tx, r.lease); err != nil {
		return err
	}
	made, err := corrections(ctx, tx, r.lease)
	if err != nil {
		return err
	}
	if r.model, err = r.cfg.Model.Corrected(made); err == nil {
		r.corrections = version
	}
	return err
}

// Open opens the account unless it is already open.
func (r *Reader) Open(ctx context.Context) error {
	if r.mailbox != nil {
		return nil
	}
	opened, err := r.cfg.Open(ctx, r.lease.Account)
	if err != nil {
		return err
	}
	all, err := thread.Bounded{Reader: opened}.Folders(ctx)
	r.folders = nil
	for _, f := range all {
		if r.lease.Account.Connection.Reads(f) {
			r.folders = append(r.folders, f)
		}
	}
	if err == nil && len(r.folders) == 0 {
		err = fmt.Errorf("the account has none of the configured folders")
	}
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	r.mailbox = thread.Bounded{Reader: opened}
	return nil
}

// Close closes the account if it is open.
func (r *Reader) Close() {
	if r.mailbox != nil {
		_ = r.mailbox.Close()
		r.mailbox = nil
	}
}

// Wait returns nil when a folder may have changed, and the error of ctx when that
// ends first.
func (r *Reader) Wait(ctx context.Context) error {
	names := make([]string, len(r.folders))
	for i, f := range r.folders {
		names[i] = f.Name
	}
	return r.mailbox.Wait(ctx, names)
}

// Newer reads the new mail of every folder and the messages that a person asked
// to read again. Then it applies the owner's actions.
func (r *Reader) Newer(ctx context.Context, run *Run) error {
	for _, f := range r.folders {
		if err := r.newer(ctx, run, f); err != nil {
			return err
		}
	}
	if err := r.readAside(ctx, run); err != nil {
		return err
	}
	return r.owner(ctx, run)
}

// Kind is the purpose of a run.
type Kind string

// The kinds of runs.
const (
	// Changes reads new mail, and writes texts.
	Changes Kind = "changes"
	// Backfill reads older mail.
	Backfill Kind = "backfill"
	// Asked decides again with the answers of models.
	Asked Kind = "asked"
)

// Run is a row of triage_runs. The row is written when the run finds something.
type Run struct {
	id   uuid.UUID
	kind Kind
	// counted reports whether the row may exist.
	counted bool
	err     error
}

// NewRun returns a run that starts now.
func NewRun(k Kind) *Run { return &Run{id: uuid.Must(uuid.NewV7()), kind: k} }

// Note returns err, and records it as the error of the run.
func (run *Run) Note(err error) error {
	run.err = err
	return err
}

// End records the end of a run that has a row, even after ctx ended.
func (r *Reader) End(ctx context.Context, run *Run) {
	if !run.counted {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := r.lease.Tx(ctx, func(tx pgx.Tx) error { return endRun(ctx, tx, r.lease, run) }); err != nil {
		r.lease.Log.WarnContext(ctx, "end of a run not recorded", slog.Any("error", err))
	}
}
