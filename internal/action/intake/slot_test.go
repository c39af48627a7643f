package intake_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/intake"
	"github.com/countersign-dev/countersign/internal/postgres"
	"github.com/countersign-dev/countersign/internal/postgres/dbtest"
	"github.com/countersign-dev/countersign/internal/slot"
	"github.com/countersign-dev/countersign/internal/source"
	"github.com/countersign-dev/countersign/internal/tenant/catalog"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// rollbacks is a database that reports rolled-back transactions.
type rollbacks struct {
	postgres.Begins
	seen chan struct{}
}

func (d rollbacks) BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error) {
	tx, err := d.Begins.BeginTx(ctx, opts)
	return toldOf{tx, d.seen}, err
}

type toldOf struct {
	pgx.Tx
	seen chan struct{}
}

func (tx toldOf) Rollback(ctx context.Context) error {
	err := tx.Tx.Rollback(ctx)
	tx.seen <- struct{}{}
	return err
}

// A proposal whose check turns out to be long releases its connection before
// it waits for a processor, and is accepted once it has one.
func TestWaitForAProcessorHoldsNoConnection(t *testing.T) {
	t.Parallel()
	d := fixtureIn(t, dbtest.DB(t))
	d.as(func(ctx context.Context, tx pgx.Tx) error {
		if err := catalog.PutSource(ctx, tx, d.tenant, catalog.Source{ID: "third", Kind: catalog.KindBuiltin, Enabled: true}); err != nil {
			return err
		}
		return catalog.PutListing(ctx, tx, d.tenant, "third", []source.Tool{
			{Name: "costly", InputSchema: json.RawMessage(`{"properties":{"all":{"items":{"allOf":[` + strings.Repeat(`{"type":"number"},`, 49) + `{"minimum":0}]}}}}`)},
		})
	})
	costly := call("costly", `{"all":[`+strings.Repeat("1,", 5000)+`1]}`)
	costly.Tool.Source = "third"
	told := rollbacks{d.db, make(chan struct{}, 100)}
	in := intake.New(told, settings.NewCache(), intake.Config{})
	var ends []func()
	_ = slot.Briefly(t.Context(), 0, func(ctx context.Context) error { // take all there are
		for {
			end, err := slot.Begin(ctx)
			if err != nil {
				return nil
			}
			ends = append(ends, end)
		}
	})
	giveBack := sync.OnceFunc(func() {
		for _, end := range ends {
			end()
		}
	})
	defer giveBack()
	accepted := make(chan error, 1)
	go func() { // waited for below
		answers, err := in.Accept(t.Context(), d.by(), []*envelope.Proposal{costly})
		if err == nil {
			err = answers[0].Err
		}
		accepted <- err
	}()

	select {
	case <-told.seen:
	case err := <-accepted:
		t.Fatalf("Accept() = %v before there was a processor", err)
	}
	giveBack()

	if err := <-accepted; err != nil {
		t.Errorf("Accept() = %v once there was a processor", err)
	}
}
