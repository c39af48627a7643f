// Giving up all that a filter selects, with the same filter, frozen with its count.
import { useState } from 'react'
import type { Filter } from '../../lib/filter'
import { useMay } from '../../lib/me'
import { Button, Field, Loading, ProblemNote, Sheet } from '../../ui'
import { Counts, Meant, useDryRun } from './drawer'
import { freeze } from './replay'
import { useRun } from './run'

const to = '/api/v1/dead-letters/discard'

export function Discard({ filter, onClose }: { filter: Filter; onClose: () => void }) {
  const [reason, setReason] = useState('')
  const may = useMay()
  const run = useRun()
  const tried = useDryRun(to, filter, { reason: 'dry run' })
  const frozen = tried.data && freeze(filter, tried.data)
  const progress = run.progress
  const started = progress !== undefined
  const whyNot =
    may('discardDeadLetters') ??
    (!frozen
      ? 'Wait for the dry run.'
      : frozen.count === 0
        ? 'No dead letters match.'
        : reason.trim() === ''
          ? 'Enter a reason, for the audit log.'
          : undefined)
  const go = () =>
    frozen &&
    run.start(frozen, to, () => ({
      filter: { ...frozen.filter, until: frozen.asOf },
      limit: 1_000,
      reason: reason.trim(),
    }))
  return (
    <Sheet
      title="Give up dead letters"
      onClose={onClose}
      mustAnswer={progress?.state === 'running'}
      actions={
        progress?.state === 'running' ? (
          <Button kind="danger" onClick={run.stop}>
            Stop
          </Button>
        ) : (
          <>
            <Button onClick={onClose}>{started ? 'Close' : 'Leave them'}</Button>
            {!started && (
              <Button kind="danger" whyNot={whyNot} onClick={go}>
                Give up {frozen?.count.toLocaleString('en') ?? ''}
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
        <p>They leave this list and cannot be replayed any more. Their attempts and events are kept.</p>
        <Field label="Reason" hint="For the record.">
          {(wiring) => (
            <input
              {...wiring}
              value={reason}
              maxLength={500}
              required
              disabled={started}
              onChange={(e) => setReason(e.target.value)}
            />
          )}
        </Field>
        {progress && frozen && (
          <p role="status">
            <strong>{progress.replayed.toLocaleString('en')}</strong>
            {` of ${frozen.count.toLocaleString('en')} given up, ${progress.left.toLocaleString('en')} left.`}
          </p>
        )}
        {run.error !== undefined && <ProblemNote error={run.error} what="Stopped by an error" />}
      </div>
    </Sheet>
  )
}
