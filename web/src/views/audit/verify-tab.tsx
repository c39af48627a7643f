import { useMutation } from '@tanstack/react-query'
import { useEffect, useRef, useState } from 'react'
import { get } from '../../lib/client'
import { copy } from '../../lib/copy'
import { shown } from '../../lib/text'
import { Button, Field, Icon, ProblemNote, Table, Time } from '../../ui'
import { Command } from '../../ui/command'
import { intact, type Report, run, verdict } from './verify'

const hash = /^[0-9a-f]{64}$/

// Verify compares the events with the chain of hashes, and shows its seal or the findings.
export function Verify() {
  const [noted, setNoted] = useState('')
  const [report, setReport] = useState<Report>()
  const stop = useRef<AbortController>(undefined)
  const head = noted.trim().toLowerCase()
  const wrong = head !== '' && !hash.test(head) ? 'A head is 64 hexadecimal digits.' : undefined
  const running = useMutation<Report | undefined, Error>({
    mutationFn: async () => {
      const controller = new AbortController()
      const { signal } = controller
      stop.current = controller
      setReport(undefined)
      try {
        return await run(
          (after) => get<Report>('/api/v1/audit/verify', { after_checkpoint: after, head }, signal),
          (so) => !signal.aborted && setReport(so),
        )
      } catch (error) {
        if (signal.aborted) return undefined
        throw error
      }
    },
  })
  useEffect(() => () => stop.current?.abort(), [])
  const done = running.data
  return (
    <section className="panel stack" aria-labelledby="verify">
      <h2 id="verify">Verify the record</h2>
      <p className="muted">
        Each minute a checkpoint adds the hashes of new events to a chain. An event that was changed, taken out or put
        in since is a finding, and so is a checkpoint that does not follow the one before.
      </p>
      <Field label="A head that was noted" hint="The chain must contain it. Optional." error={wrong}>
        {(wiring) => (
          <input
            {...wiring}
            className="mono"
            value={noted}
            spellCheck={false}
            autoComplete="off"
            disabled={running.isPending}
            onChange={(e) => setNoted(e.target.value)}
          />
        )}
      </Field>
      <div className="row">
        {running.isPending ? (
          <Button icon="cross" onClick={() => stop.current?.abort()}>
            Cancel
          </Button>
        ) : (
          <Button kind="primary" icon="check" whyNot={wrong} onClick={() => running.mutate()}>
            Verify
          </Button>
        )}
        <span role="status">
          {running.isPending && going(report)}
          {running.isSuccess && !done && 'Cancelled: the record was not verified to its end.'}
        </span>
      </div>
      {running.isPending && <progress aria-label="Verification" />}
      {running.error && <ProblemNote error={running.error} what="The record was not verified" />}
      {done && <Result report={done} />}
      <Command of="countersign audit verify" />
    </section>
  )
}

// going returns how far a verification has come.
function going(report: Report | undefined): string {
  const through = report?.head ? `, through checkpoint ${Number(report.head.checkpoint_no).toLocaleString('en')}` : ''
  return `Verified ${Number(report?.covered ?? 0).toLocaleString('en')} events${through}…`
}

function Result({ report }: { report: Report }) {
  const ok = intact(report)
  const omitted = Number(report.findings_omitted)
  return (
    <div className="stack" role="group" aria-label="Result">
      <p className={`seal tone-${ok ? 'good' : 'bad'}`}>
        <Icon name={ok ? 'check' : 'cross'} />
        <strong>{verdict(report)}</strong>
      </p>
      {report.head && (
        <p className="row">
          Head of the chain, checkpoint {Number(report.head.checkpoint_no).toLocaleString('en')}:
          <code className="hash">{report.head.hash}</code>
          <Button icon="copy" onClick={() => void copy(report.head!.hash)}>
            Copy the head
          </Button>
        </p>
      )}
      {Number(report.uncovered) > 0 && (
        <p className="muted">
          {Number(report.uncovered).toLocaleString('en')} newer events have no checkpoint yet
          {report.uncovered_since && (
            <>
              , since <Time at={report.uncovered_since} as="clock" />
            </>
          )}
          .
        </p>
      )}
      {report.findings.length > 0 && (
        <Table
          caption="Findings, in the order of the chain"
          rows={report.findings.map((finding, n) => ({ ...finding, n }))}
          keyOf={(f) => String(f.n)}
          columns={[
            {
              name: 'Checkpoint',
              number: true,
              cell: (f) => f.checkpoint_no && Number(f.checkpoint_no).toLocaleString('en'),
            },
            { name: 'Finding', cell: (f) => shown(f.kind.replaceAll('_', ' ')) },
            { name: 'Event', cell: (f) => <code>{shown(f.position ?? '')}</code> },
            { name: 'At', hideNarrow: true, cell: (f) => <Time at={f.at} as="clock" /> },
            { name: 'What', cell: (f) => <bdi>{shown(f.message)}</bdi> },
          ]}
        />
      )}
      {omitted > 0 && <p className="muted">{omitted.toLocaleString('en')} more findings are not shown.</p>}
    </div>
  )
}
