package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/insight/overview"
	"github.com/countersign-dev/countersign/internal/tenant/contact"
	"github.com/countersign-dev/countersign/internal/tenant/limits"
	"github.com/countersign-dev/countersign/internal/tenant/pause"
	"github.com/countersign-dev/countersign/internal/tenant/settings"
)

// TestHeldActionsAreNotStartable has actions that a worker must not call. Once
// a worker has put them back, they are no reason for more workers, and the
// gauge leaves them out.
func TestHeldActionsAreNotStartable(t *testing.T) {
	t.Parallel()

	for name, hold := range map[string]func(y *fixture){
		"nothing, without a worker": nil,
		"a paused source":           func(y *fixture) { y.pause(pause.Target{Scope: pause.Source, Subject: "fake"}, false) },
		"a paused tool":             func(y *fixture) { y.pause(pause.Target{Scope: pause.Tool, Subject: "fake:" + toolOnce}, false) },
		"quiet hours":               func(y *fixture) { y.quiet(limits.QuietTenant, "") },
		"an open breaker":           func(y *fixture) { y.trip(time.Hour) },
		"an entry in do-not-contact": func(y *fixture) {
			y.configure(func(ctx context.Context, tx pgx.Tx) error {
				_, err := contact.PutEntries(ctx, tx, y.tenant, []contact.Entry{{Value: "ana@example.org", Reason: "asked not to be"}}, "ada")
				return err
			})
		},
		"a tool that needs a person now": func(y *fixture) {
			y.configure(func(ctx context.Context, tx pgx.Tx) error {
				return settings.PutMode(ctx, tx, y.tenant, "", "fake:"+toolOnce, envelope.ModeRequireApproval, "ada")
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := newFixture(t)
			y.recipients()
			y.propose(proposal(to("ana@example.org")), proposal(to("ana@example.org")), proposal(to("ana@example.org")))
			want := int64(3)
			if hold != nil {
				hold(y)
				stop := y.run(y.pipeline(y.db, y.src, config("w1")))
				y.settled()
				stop()
				want = 0
			}

			fleet, err := overview.Reader(y.db)(t.Context())

			if err != nil || fleet.Startable != want || fleet.OldestDue > 0 != (want > 0) || len(y.src.Calls()) > 0 {
				t.Errorf("%d startable, the oldest for %s, after %d calls, %v, want %d after none", fleet.Startable, fleet.OldestDue, len(y.src.Calls()), err, want)
			}
		})
	}
}
