// The replay of all that a filter selects. The filter is that of the list, shown again and frozen with its count.
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type Problem, post } from '../../lib/client'
import type { Filter } from '../../lib/filter'
import { useMay } from '../../lib/me'
import { usePreferences } from '../../lib/preferences'
import { shown } from '../../lib/text'
import { clock, duration, useNow } from '../../lib/time'
import { Button, Field, Loading, ProblemNote, Sheet, Time } from '../../ui'
import { type BulkResult, body, type Frozen, freeze, type Progress, paces, seconds, sentence } from './replay'
import { type Run, useRun } from './run'

const to = '/api/v1/dead-letters/replay'
const firstPace = paces.indexOf(50)

export function ReplayDrawer({ filter, onClose }: { filter: Filter; onClose: () => void }) {
  const [allowDuplicates, setAllowDuplicates] = useState(false)
  const [place, setPlace] = useState(firstPace)
  const [note, setNote] = useState('')
  const run = useRun()
  const may = useMay()
  const tried = useDryRun(to, filter, { allow_duplicates: allowDuplicates })
  const frozen = tried.data && freeze(filter, tried.data)
  const pace = { perSecond: paces[place] }
  const state = run.progress?.state
  const started = state !== undefined
  const whyNot =
    may('replayDeadLetters') ??
    (frozen ? (frozen.count === 0 ? 'No dead letters match.' : undefined) : 'Wait for the dry run.')
  return (
    <Sheet
      title="Replay dead letters"
      onClose={onClose}
      mustAnswer={state === 'running'}
      actions={
        state === 'running' ? (
          <Button kind="danger" icon="pause" onClick={run.stop}>
            Stop
          </Button>
        ) : (
          <>
            <Button onClick={onClose}>{started ? 'Close' : 'Leave them'}</Button>
            {!started && (
              <Button
                kind="primary"
                whyNot={whyNot}
                onClick={() =>
                  frozen && run.start(frozen, to, () => body(frozen, pace, { allowDuplicates, note: note.trim() }))
                }
              >
                Replay {frozen?.count.toLocaleString('en') ?? ''}
              </Button>
            )}
          </>
        )
      }
    >
      <div className="stack">
        <Meant filter={filter} frozen={frozen} />
        {tried.isPending && <Loading what="the dry run" />}
        {tried.error && (
          <ProblemNote error={tried.error} what="The dry run was refused" onRetry={() => void tried.refetch()} />
        )}
        {tried.data && <Counts result={tried.data} />}
        {frozen && (frozen.leftOut > 0 || allowDuplicates) && (
          <label className="row">
            <input
              type="checkbox"
              checked={allowDuplicates}
              disabled={started}
              onChange={(e) => setAllowDuplicates(e.target.checked)}
            />{' '}
            Include those with an unknown outcome: they may happen twice
          </label>
        )}
        {frozen && <Pace count={frozen.count} place={place} onChange={setPlace} off={started} />}
        <Field label="Note" hint="Reason, for the audit log (optional).">
          {(wiring) => (
            <input
              {...wiring}
              value={note}
              maxLength={500}
              disabled={started}
              onChange={(e) => setNote(e.target.value)}
            />
          )}
        </Field>
        <p className="muted small">
          They keep their idempotency keys. This page hands them out a few seconds at a time, so that Stop means it;
          closing the page stops it as well.
        </p>
        {run.progress && frozen && <Going progress={run.progress} frozen={frozen} perSecond={pace.perSecond} />}
        {run.error !== undefined && <ProblemNote error={run.error} what="The replay was stopped by an error" />}
      </div>
    </Sheet>
  )
}

// useDryRun asks what a request would do. The answer is kept while the drawer is open: its count and its time are
// frozen.
export function useDryRun(to: string, filter: Filter, more: Record<string, unknown>) {
  return useQuery<BulkResult, Problem>({
    queryKey: ['dry-run', to, filter, more],
    queryFn: () => post<BulkResult>(to, { filter, dry_run: true, limit: 1, ...more }),
    staleTime: Infinity,
    gcTime: 0,
  })
}

// Meant tells the filter as it stands in the list, and what it selected at the time of the dry run.
export function Meant({ filter, frozen }: { filter: Filter; frozen: Frozen | undefined }) {
  return (
    <div className="panel meant">
      <p>
        {frozen ? <strong>{frozen.count.toLocaleString('en')}</strong> : '…'} {shown(sentence(filter))}
      </p>
      {frozen && (
        <p className="muted small">
          As of <Time at={frozen.asOf} as="clock" />: later dead letters are not included.
          {frozen.leftOut > 0 &&
            ` ${frozen.leftOut.toLocaleString('en')} more have an unknown outcome and are excluded.`}
        </p>
      )}
    </div>
  )
}

export function Counts({ result }: { result: BulkResult }) {
  if (result.counts.length === 0) return null
  return (
    <table className="table">
      <caption className="unseen">Result of the dry run</caption>
      <thead>
        <tr>
          <th scope="col">Tool</th>
          <th scope="col">Why</th>
          <th scope="col" className="number">
            Letters
          </th>
        </tr>
      </thead>
      <tbody>
        {result.counts.map((c) => (
          <tr key={`${c.tool} ${c.reason}`}>
            <td className="mono">{shown(c.tool)}</td>
            <td>{shown(c.reason)}</td>
            <td className="number">{Number(c.count).toLocaleString('en')}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

function Pace({
  count,
  place,
  onChange,
  off,
}: {
  count: number
  place: number
  onChange: (place: number) => void
  off: boolean
}) {
  const now = useNow(1_000)
  const { zone } = usePreferences()
  const perSecond = paces[place]
  const long = seconds(count, { perSecond }) * 1_000
  const words =
    perSecond === undefined ? 'all at once' : perSecond < 1 ? `one every ${1 / perSecond} s` : `${perSecond} a second`
  let finish = ''
  if (perSecond !== undefined) {
    const last = clock(new Date(now + long).toISOString(), zone, now)
    finish = `: the last goes out in about ${duration(Math.max(1_000, long))}, at ${last}`
  }
  return (
    <Field
      label="Pace"
      hint={
        <span role="status">
          {words}
          {finish}
        </span>
      }
    >
      {(wiring) => (
        <input
          {...wiring}
          type="range"
          min={0}
          max={paces.length - 1}
          step={1}
          value={place}
          disabled={off}
          aria-valuetext={words}
          onChange={(e) => onChange(Number(e.target.value))}
        />
      )}
    </Field>
  )
}

const ended = { ready: '', running: '', stopped: 'Stopped.', done: 'Done.', failed: 'Stopped by an error.' }

export function Going({
  progress,
  frozen,
  perSecond,
}: {
  progress: Run['progress'] & Progress
  frozen: Frozen
  perSecond: number | undefined
}) {
  const long =
    progress.state === 'running' && perSecond !== undefined
      ? ` About ${duration(Math.max(1_000, seconds(progress.left, { perSecond }) * 1_000))} to go.`
      : ''
  return (
    <div className="stack" role="status">
      <progress aria-label="Done so far" max={Math.max(1, frozen.count)} value={progress.replayed} />
      <p>
        <strong>{progress.replayed.toLocaleString('en')}</strong> of {frozen.count.toLocaleString('en')} on the schedule
        again, {progress.left.toLocaleString('en')} left. {ended[progress.state]}
        {long}
      </p>
    </div>
  )
}
