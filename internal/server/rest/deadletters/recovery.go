package deadletters

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/countersign-dev/countersign/client/wire"
	"github.com/countersign-dev/countersign/envelope"
	"github.com/countersign-dev/countersign/internal/action/fence"
	"github.com/countersign-dev/countersign/internal/audit"
	"github.com/countersign-dev/countersign/internal/server/rest/request"
)

const (
	// askFor is for how long new actions of classes once and keyed need a person by default, and
	// mostAskFor at most.
	askFor     = request.Day
	mostAskFor = 366 * request.Day
)

// tagRecovery sets the entity tag of a plan: the state of the database, and the
// effects that a person has to have seen.
func tagRecovery(p *fence.Plan) (err error) {
	p.ETag, err = request.ETagOf([]any{p.Database, p.State, p.Reason, p.AskedBy, p.Unknown, p.Sendable, p.Approvals, p.Recorded, p.Lost, p.Silent})
	return err
}

func answerRecovery(c *request.Call, p fence.Plan) error {
	c.SetETag(p.ETag)
	return c.JSON(http.StatusOK, p.Recovery)
}

// Recovery handles GET /api/v1/recovery. It shows the state of the database, and what a
// recovery would do.
func Recovery(c *request.Call) error {
	r := fence.Recovery{Tenant: c.By.Tenant}
	var err error
	no, hash := c.Query.Get("checkpoint_no"), c.Query.Get("head")
	if (no == "") != (hash == "") {
		return request.Invalid("/query/head", envelope.RuleRequired, "must be sent together with checkpoint_no")
	}
	if no != "" {
		if r.Head.Checkpoint, err = strconv.ParseInt(no, 10, 64); err != nil {
			return request.Invalid("/query/checkpoint_no", envelope.RuleType, "must be an integer")
		}
		if r.Head.Hash, err = audit.ParseHash(hash); err != nil {
			return request.Invalid("/query/head", envelope.RuleFormat, "must be 64 hexadecimal digits")
		}
	}
	p, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (p fence.Plan, err error) {
		if p, err = r.Prepare(ctx, tx); err != nil {
			return p, err
		}
		return p, tagRecovery(&p)
	})
	if err != nil {
		return err
	}
	return answerRecovery(c, p)
}

// Recover handles POST /api/v1/recovery. It recovers the database, if its effects are
// those that the caller has seen.
func Recover(c *request.Call, body wire.RecoveryInput) error {
	if err := c.RequireMatch(); err != nil {
		return err
	}
	r := fence.Recovery{AskFor: askFor, By: c.By.Actor(), Tenant: c.By.Tenant, Person: c.By.Person(), NeedsPolicyWrite: c.By.MayLoosen()}
	if body.AskFor != nil {
		if err := request.CheckDuration("/ask_for", *body.AskFor, 0, mostAskFor); err != nil {
			return err
		}
		r.AskFor = time.Duration(*body.AskFor)
	}
	r.Seen = func(p fence.Plan) error {
		return c.CheckMatch(func() (string, error) {
			err := tagRecovery(&p)
			return p.ETag, err
		})
	}
	p, err := request.Read(c, func(ctx context.Context, tx pgx.Tx) (p fence.Plan, err error) {
		if err := c.CheckTools("*"); err != nil {
			return p, err
		}
		if err := c.LockConfiguration(ctx, tx); err != nil {
			return p, err
		}
		if p, _, err = r.Apply(ctx, tx); err != nil {
			return p, err
		}
		return p, tagRecovery(&p)
	})
	if err != nil {
		return err
	}
	c.Wake()
	return answerRecovery(c, p)
}
