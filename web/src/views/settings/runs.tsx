import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { get, post, type Schemas } from '../../lib/client'
import { useMay, useMe } from '../../lib/me'
import { usePreferences } from '../../lib/preferences'
import { shown } from '../../lib/text'
import { absolute } from '../../lib/time'
import { Ask, Button, ProblemNote, Table, Time, toast } from '../../ui'

type Result = Schemas['TriageUndoResult']

interface Run extends Pick<Schemas['TriageRun'], 'run_id' | 'started_at' | 'decided' | 'proposed'> {
  account: string
}

const shownRuns = 10

// readRuns reads the newest runs with proposals in the mail accounts that name a person as their operator.
async function readRuns(person: string, signal: AbortSignal): Promise<Run[]> {
  const accounts = await get<{ items: Schemas['TriageAccount'][] }>('/api/v1/triage/accounts', { limit: 200 }, signal)
  const mine = accounts.items.filter((one) => one.operator_id === person)
  const runs = await Promise.all(
    mine.map(async ({ name }) => {
      const to = `/api/v1/triage/accounts/${encodeURIComponent(name)}/runs`
      const page = await get<{ items: Schemas['TriageRun'][] }>(to, { limit: 100 }, signal)
      return page.items.map((run) => ({ ...run, account: name }))
    }),
  )
  return runs
    .flat()
    .filter((run) => run.proposed > 0)
    .sort((a, b) => b.started_at.localeCompare(a.started_at))
    .slice(0, shownRuns)
}

// undo undoes a run, part by part.
async function undo(run: Run): Promise<Result['items']> {
  const items: Result['items'] = []
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const part: Result = await post('/api/v1/triage/undo', {
      filter: { account: run.account, run_id: run.run_id },
      ...(cursor && { cursor }),
    })
    items.push(...part.items)
    cursor = part.next_cursor
  }
  return items
}

// outcome is what an undo did, in a sentence.
export function outcome(items: readonly Pick<Result['items'][number], 'result'>[]): string {
  const count = (...results: string[]) => items.filter((one) => results.includes(one.result)).length
  const waiting = count('waiting')
  const not = count('refused', 'denied')
  const undone = count('accepted', 'known')
  return [
    `${undone} actions are being undone, ${count('withdrawn')} were withdrawn before they were sent.`,
    waiting > 0 && `${waiting} wait for these: undo the run again.`,
    not > 0 && `${not} cannot be undone.`,
  ]
    .filter(Boolean)
    .join(' ')
}

// Runs lists runs of triage in the person's own mail, and undoes them.
export function Runs() {
  const { zone } = usePreferences()
  const may = useMay()
  const person = useMe().data?.operator_id
  const [asked, setAsked] = useState<Run>()
  const runs = useQuery({
    queryKey: ['config', 'triage-runs', person],
    queryFn: ({ signal }) => readRuns(person ?? '', signal),
    enabled: person !== undefined && may('listTriageAccounts') === undefined && may('undoTriage') === undefined,
  })
  if (runs.isError) return <ProblemNote error={runs.error} onRetry={() => void runs.refetch()} />
  if (!runs.data?.length) return null
  return (
    <section className="panel stack" aria-labelledby="settings-runs">
      <h2 id="settings-runs">Triage in your mail</h2>
      <Table
        caption="Runs of triage with proposals"
        rows={runs.data}
        keyOf={(run) => run.run_id}
        columns={[
          { name: 'Account', cell: (run) => shown(run.account) },
          { name: 'Started', cell: (run) => <Time at={run.started_at} /> },
          { name: 'Decided', cell: (run) => run.decided, hideNarrow: true },
          { name: 'Proposed', cell: (run) => run.proposed },
          {
            name: 'Undo',
            unnamed: true,
            cell: (run) => (
              <Button onClick={() => setAsked(run)}>
                Undo<span className="unseen"> the run of {absolute(run.started_at, zone)}</span>
              </Button>
            ),
          },
        ]}
      />
      {asked && (
        <Ask
          title="Undo this run?"
          text="Messages get back their folder and flags. Those that were changed since are left as they are."
          label="Undo"
          note="no"
          hint=""
          send={() => undo(asked)}
          onDone={(items) => toast({ text: outcome(items) })}
          onClose={() => setAsked(undefined)}
        />
      )}
    </section>
  )
}
