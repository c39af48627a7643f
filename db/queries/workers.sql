-- name: WorkerCommitsOf :many
SELECT c.worker, c.loop, c.seq FROM worker_commits c WHERE c.worker = ANY (@workers::uuid[]);

-- name: WorkerPrune :exec
-- Deletes processes that were not seen for 90 days, with their commits.
WITH deleted AS (
    DELETE FROM workers w WHERE w.seen_at < now() - interval '90 days' RETURNING w.worker
)
DELETE FROM worker_commits c USING deleted d WHERE c.worker = d.worker;

-- name: WorkerList :many
-- The processes that run: those that have not ended, and were seen within their
-- lease.
SELECT w.worker, w.name, w.host, w.version, w.started_at, w.seen_at, w.concurrency, w.in_flight, w.draining, w.refuses
FROM workers w
WHERE NOT w.ended AND w.seen_at BETWEEN now() - w.lease AND now() + w.lease
ORDER BY w.name, w.worker
LIMIT @most::bigint;

-- name: WorkerPut :exec
-- Records a process, and the epoch that it has checked: what it reported was of before.
INSERT INTO workers AS w (worker, name, epoch, remembers, state_file, lease, refuses, ended, host, version, concurrency, in_flight, draining)
VALUES (@worker, @name, @epoch, @remembers, @state_file, make_interval(secs => @lease_seconds::float8), @refuses, @ended, @host, @version,
    @concurrency, @in_flight, @draining)
ON CONFLICT ON CONSTRAINT workers_pkey
DO UPDATE SET epoch = excluded.epoch, remembers = excluded.remembers, state_file = excluded.state_file, refuses = excluded.refuses,
    ended = excluded.ended, reported = w.reported AND excluded.epoch = 0, seen_at = now(),
    host = excluded.host, version = excluded.version, concurrency = excluded.concurrency, in_flight = excluded.in_flight, draining = excluded.draining;

-- name: WorkerPutNoted :exec
-- Records a process that a memory outside shows, and whose commits are missing: it counts
-- as one that may have sent, until it reports.
INSERT INTO workers (worker, name, epoch, remembers, state_file, lease)
VALUES (@worker, @name, 0, false, true, make_interval(secs => @lease_seconds::float8))
ON CONFLICT ON CONSTRAINT workers_pkey DO UPDATE SET ended = false, seen_at = now();

-- name: WorkerReported :exec
-- Records that a process has compared its commits with a held database.
UPDATE workers w SET reported = true WHERE w.worker = @worker;

-- name: WorkersConfirmed :one
-- Reports how the processes that have not ended compare with the epoch: whether there
-- are others, whether one is still waited for, and whether one remembers commits, all
-- of which are there. Those that refuse claim nothing.
SELECT
    coalesce(bool_or(NOT w.ended AND w.worker <> @worker), false)::boolean AS others,
    coalesce(bool_or(NOT w.ended AND w.epoch <> f.epoch
        AND now() < greatest(w.seen_at + w.lease * @leases::float8, f.changed_at + interval '5 seconds')
        AND w.seen_at > now() - interval '1 day'), false)::boolean AS awaited,
    coalesce(bool_or(NOT w.ended AND w.epoch = f.epoch AND w.remembers), false)::boolean AS remembered
FROM fence f
JOIN workers w ON w.refuses = '';
