package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/countersign-dev/countersign/bench/process"
	"github.com/countersign-dev/countersign/envelope"
)

// The large database of the run past has ended actions, actions of other tenants that are due
// tomorrow (pastWaiting in all), tools, and actions that wait for a person. The almost empty
// database has a page of ended actions and one of waiting actions.
const (
	pastTenants = 100
	pastBuckets = 10
	pastWaiting = 1_000_000
	pastTools   = 10_000
	pastInbox   = 10_000
	pastPage    = 60
)

// benchLeft selects whether the measured tenant has work.
const benchLeft = "SELECT EXISTS (SELECT 1 FROM tenants t WHERE t.name = '" + tenantName + "' AND EXISTS (SELECT 1 FROM outbox o WHERE o.tenant_id = t.tenant_id))"

// measurePast burns actions down, and reads pages, in a large database and in an almost
// empty one.
func measurePast(ctx context.Context, s *suite) error {
	return s.environment(ctx, "", func(full *environment) error {
		began := time.Now()
		if err := full.fill(ctx, s.past, pastTenants, pastInbox, pastTools); err != nil {
			return err
		}
		s.rep.note("%d ended actions and %d that wait were written in %s", s.past, pastWaiting, time.Since(began).Round(time.Second))
		return s.environment(ctx, "", func(empty *environment) error {
			if err := empty.fill(ctx, pastPage, 0, pastPage, 1); err != nil {
				return err
			}
			return errors.Join(burnPast(ctx, s, full), readPast(ctx, s, full, empty))
		})
	})
}

func burnPast(ctx context.Context, s *suite, full *environment) error {
	var ours, peers []float64
	for round := range s.rounds {
		without, err := s.emptyRate(ctx, benchLeft)
		if err != nil {
			return err
		}
		with, err := full.burnRate(ctx, round*s.n, s.n, benchLeft)
		if err != nil {
			return err
		}
		ours, peers = append(ours, with), append(peers, without)
		s.rep.note("round %d: with the past %.0f/s, empty %.0f/s", round+1, with, without)
	}
	s.rep.pair("burn-down, past ÷ empty", "/s", ours, peers, nil)
	return nil
}

// readPast compares pages of both databases, each read by one request after the other.
func readPast(ctx context.Context, s *suite, full, empty *environment) error {
	paths := []string{"/inbox?limit=50", "/inbox/counts", "/actions?limit=50", "/actions?phase=pending&limit=50", "/actions?phase=failed&limit=50", "/tools?limit=50", "/overview"}
	var took [2][]float64
	for i, h := range []*environment{full, empty} {
		err := h.withAPI(ctx, func(api *process.API, token string) error {
			c := &restCaller{base: api.Base, token: token, http: &http.Client{}}
			for _, path := range paths {
				one, _, err := several(ctx, 1, singly, func(ctx context.Context, _ int) (float64, error) {
					took, _, err := c.send(ctx, http.MethodGet, c.base+"/api/v1"+path, nil, http.StatusOK)
					return took, err
				})
				if err != nil {
					return err
				}
				took[i] = append(took[i], quantile(one, 50))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for i, path := range paths {
		with, without := took[0][i], took[1][i]
		if extra := map[string]float64{"empty_ms": without, "ratio": with / without}; strings.HasPrefix(path, "/inbox?") {
			s.rep.aimed("GET "+path+", past, p50", "ms", with, 10, extra)
		} else {
			s.rep.single("GET "+path+", past, p50", "ms", with, extra)
		}
		s.rep.note("in the empty one %.2f ms: ratio %.2f", without, with/without)
	}
	return nil
}

// fill writes the waiting actions of other tenants, and the measured tenant's actions and tools.
func (h *environment) fill(ctx context.Context, ended, tenants, inbox, tools int) error {
	if _, err := h.burnRate(ctx, templateNumber, 1, outboxLeft); err != nil { // the template of the others
		return err
	}
	for i := range tenants {
		id, err := crowdTenant(ctx, h, i, pastBuckets)
		if err != nil {
			return err
		}
		for n := range pastBuckets {
			if err := copyDue(ctx, h.pool, id, bucketName(n), pastWaiting/pastTenants/pastBuckets, "1 day"); err != nil {
				return err
			}
		}
	}
	return h.fillTenant(ctx, ended, inbox, tools)
}

// fillTenant gives the measured tenant actions that have ended and that wait for a person, and
// tools.
func (h *environment) fillTenant(ctx context.Context, ended, inbox, tools int) error {
	const step = 500_000
	for from := 0; from < ended; from += step {
		_, err := h.pool.Exec(ctx, `
			WITH template AS (SELECT * FROM actions LIMIT 1), past AS (
				INSERT INTO actions (tenant_id, action_id, external_id, content_digest, source_id, tool_name, args, risk, effect,
					decision_id, config_version, tool_digest, approval_state, bucket_id, rate_bucket, max_attempts)
				SELECT tenant_id, gen_random_uuid(), 'past-' || g, content_digest, source_id, tool_name, args, risk, effect,
					decision_id, config_version, tool_digest, approval_state, bucket_id, rate_bucket, max_attempts
				FROM template, generate_series($1::int, $2::int) g
				RETURNING tenant_id, action_id)
			INSERT INTO tool_executions (tenant_id, action_id, attempt, status, result, worker, started_at, finished_at)
			SELECT tenant_id, action_id, 1, 'sent', '{}', 'past', now(), now() FROM past`, from+1, min(from+step, ended))
		if err != nil {
			return err
		}
	}
	if err := h.setMode(ctx, envelope.ModeRequireApproval); err != nil {
		return err
	}
	if err := h.submit(ctx, templateNumber+1, inbox, 1000); err != nil {
		return err
	}
	if err := h.setMode(ctx, envelope.ModeAllow); err != nil {
		return err
	}
	for _, statement := range []string{
		fmt.Sprintf(`INSERT INTO tools (tenant_id, source_id, name, input_schema, hints, effect, digest, accepted_digest)
			SELECT t.tenant_id, t.source_id, t.name || g, t.input_schema, t.hints, t.effect, t.digest, t.accepted_digest
			FROM (SELECT * FROM tools ORDER BY name LIMIT 1) t, generate_series(1, %d) g`, tools),
		// Nothing expires while it is measured.
		"UPDATE actions SET approval_expires_at = now() + interval '1 day' WHERE approval_state = 'required'",
		"VACUUM ANALYZE",
	} {
		if _, err := h.pool.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// crowdTenant creates a tenant like the measured one, with the first buckets of it.
func crowdTenant(ctx context.Context, h *environment, i, buckets int) (uuid.UUID, error) {
	id, like := uuid.Must(uuid.NewV7()), uuid.UUID(h.tenant)
	names := make([]string, buckets)
	for n := range names {
		names[n] = bucketName(n)
	}
	for _, of := range []struct {
		statement string
		args      []any
	}{
		{"INSERT INTO tenants (tenant_id, name) VALUES ($1, $2)", []any{id, fmt.Sprintf("crowd-%d", i)}},
		{`INSERT INTO sources (tenant_id, source_id, kind, config, enabled, listed_at)
			SELECT $1, s.source_id, s.kind, s.config, s.enabled, s.listed_at FROM sources s WHERE s.tenant_id = $2`, []any{id, like}},
		{`INSERT INTO tools (tenant_id, source_id, name, input_schema, hints, effect, digest, accepted_digest)
			SELECT $1, t.source_id, t.name, t.input_schema, t.hints, t.effect, t.digest, t.accepted_digest FROM tools t WHERE t.tenant_id = $2`, []any{id, like}},
		{"INSERT INTO policy_modes (tenant_id, key, mode) SELECT $1, m.key, m.mode FROM policy_modes m WHERE m.tenant_id = $2", []any{id, like}},
		{"INSERT INTO buckets (tenant_id, name) SELECT $1, unnest($2::text[])", []any{id, names}},
	} {
		if _, err := h.pool.Exec(ctx, of.statement, of.args...); err != nil {
			return uuid.UUID{}, err
		}
	}
	return id, nil
}
