// A policy is tried on past actions before it holds: a page at a time, until the end or until the person has enough.
import { useCallback, useEffect, useRef, useState } from 'react'
import { Link } from 'wouter'
import { Problem, request, type Schemas } from '../lib/client'
import { type Json, stringify } from '../lib/json'
import { add, nothing, type Totals } from '../lib/simulate'
import { shown } from '../lib/text'
import { Button } from './button'
import { Mode } from './mode'
import { ProblemNote } from './problem'
import { Table } from './table'
import { Time } from './time'

// Sections are the sections of the policy that would be replaced; the others stay.
export type Sections = Partial<Schemas['PolicyDocument']>

export interface Trial {
  state: 'idle' | 'running' | 'ended' | 'stopped' | 'failed'
  totals: Totals
  error: unknown
  // whyNot is why the change cannot be saved yet.
  whyNot: string | undefined
  stop: () => void
  again: () => void
  // days are the past days of which the actions are tried.
  days: number
  setDays: (days: number) => void
}

const day = 24 * 60 * 60 * 1000
// settling is how long sections have to stay the same before they are tried.
const settling = 300

type Shown = Pick<Trial, 'state' | 'totals' | 'error'>
const idle: Shown = { state: 'idle', totals: nothing, error: undefined }

// useSimulation tries sections of the policy on the actions of the last days, and begins anew when they change.
// Undefined sections are a draft without a change.
export function useSimulation(of: Sections | undefined, { tool = '*' } = {}): Trial {
  const [days, setDays] = useState(7)
  const text = of && stringify(of as unknown as Json)
  const [shows, setShows] = useState<Shown & { text?: string | undefined }>(idle)
  const [turn, setTurn] = useState(0)
  const running = useRef<AbortController>(undefined)
  // biome-ignore lint/correctness/useExhaustiveDependencies: text stands for the sections, and another turn begins anew
  useEffect(() => {
    if (!of) return
    const controller = new AbortController()
    running.current = controller
    setShows({ ...idle, state: 'running', text })
    const timer = setTimeout(() => {
      void tryPages(of, tool, days, controller.signal, (next) => setShows({ ...next, text }))
    }, settling)
    return () => {
      clearTimeout(timer)
      controller.abort()
    }
  }, [text, tool, days, turn])
  const stop = useCallback(() => {
    running.current?.abort()
    setShows((before) => ({ ...before, state: 'stopped' }))
  }, [])
  const again = useCallback(() => setTurn((n) => n + 1), [])
  // Between a change and the effect, what is shown is about other sections.
  const now = text === undefined ? idle : shows.text === text ? shows : { ...idle, state: 'running' as const }
  return { ...now, whyNot: whyNot(now), stop, again, days, setDays }
}

function whyNot({ state, error }: Shown): string | undefined {
  switch (state) {
    case 'idle':
      return 'Nothing is changed.'
    case 'running':
      return 'Wait for the simulation, or stop it.'
    case 'failed':
      return isRefused(error) ? 'The server refuses this policy.' : 'Simulate again, or go on without it.'
    case 'ended':
    case 'stopped':
      return undefined
  }
}

const isRefused = (error: unknown) => error instanceof Problem && error.status === 400

async function tryPages(
  policy: Sections,
  tool: string,
  days: number,
  signal: AbortSignal,
  show: (next: Shown) => void,
) {
  let totals = nothing
  const since = new Date(Date.now() - days * day).toISOString()
  const until = new Date().toISOString()
  try {
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const body = { policy, tool, since, until, ...(cursor && { cursor }) }
      const page = await request<Schemas['PolicySimulation']>('POST', '/api/v1/policy/simulate', { body, signal })
      if (signal.aborted) return
      totals = add(totals, page.body)
      cursor = page.body.next_cursor
      show({ state: cursor === null ? 'ended' : 'running', totals, error: undefined })
    }
  } catch (error) {
    if (!signal.aborted) show({ state: 'failed', totals, error })
  }
}

const lengths: Record<number, string> = { 1: '1 day', 7: '7 days', 30: '30 days', 90: '90 days' }
// listed is how many more actions are listed at a time.
const listed = 50

const number = (count: number) => count.toLocaleString('en')
const actions = (count: number) => `${number(count)} ${count === 1 ? 'action' : 'actions'}`

function sentence({ state, days, totals: { examined, compared, changed, withoutTool, moved } }: Trial): string {
  const so = `${number(changed)} of ${actions(compared)} would be decided differently.`
  const rest = withoutTool ? ` ${actions(withoutTool)} left out: the tool no longer exists.` : ''
  const again = moved ? ' The policy changed meanwhile: simulate again.' : ''
  if (state === 'running') return `Simulating the last ${lengths[days]}: ${actions(examined)} examined. So far ${so}`
  return `${state === 'ended' ? '' : 'Not all are examined. '}${so}${rest}${again}`
}

// Simulation shows a trial: its progress, the counts and the actions that would be decided differently.
export function Simulation({ of }: { of: Trial }) {
  const { state, totals } = of
  const [most, setMost] = useState(listed)
  if (state === 'idle') return null
  return (
    <section className="stack simulation" aria-label="Simulation">
      <p role="status">{sentence(of)}</p>
      <div className="row">
        <label className="row">
          Over the last
          <select value={of.days} onChange={(event) => of.setDays(Number(event.target.value))}>
            {Object.entries(lengths).map(([days, text]) => (
              <option key={days} value={days}>
                {text}
              </option>
            ))}
          </select>
        </label>
        {state === 'running' && <Button onClick={of.stop}>Do not wait</Button>}
        {state === 'stopped' && (
          <Button icon="refresh" onClick={of.again}>
            Simulate again
          </Button>
        )}
      </div>
      {state === 'running' && <progress aria-label="Simulating" />}
      {state === 'failed' && (
        <>
          <ProblemNote error={of.error} what="Not simulated" onRetry={of.again} />
          {!isRefused(of.error) && (
            <p>
              <Button onClick={of.stop}>Go on without it</Button>
            </p>
          )}
        </>
      )}
      {totals.flows.length > 0 && (
        <Table
          caption="Counts"
          rows={totals.flows}
          keyOf={(one) => Object.values({ ...one, count: 0 }).join(' ')}
          columns={[
            { name: 'Then', cell: ({ then }) => <Decided mode={then} inherited /> },
            { name: 'Now', cell: (one) => <Decided mode={one.now} approvals={one.now_approvals} inherited /> },
            {
              name: 'Changed',
              cell: (one) => (
                <Decided mode={one.changed} approvals={one.changed_approvals} inherited={one.now === one.changed} />
              ),
            },
            { name: 'Actions', number: true, cell: ({ count }) => number(count) },
          ]}
        />
      )}
      {totals.differences.length > 0 && (
        <>
          <Table
            caption="Actions that would be decided differently"
            rows={totals.differences.slice(0, most)}
            keyOf={({ action_id }) => action_id}
            columns={[
              {
                name: 'Action',
                cell: ({ action_id, tool }) => (
                  <Link href={`/actions/${action_id}`} target="_blank">
                    <bdi>{shown(tool)}</bdi>
                  </Link>
                ),
              },
              { name: 'Proposed', cell: ({ proposed_at }) => <Time at={proposed_at} as="clock" />, hideNarrow: true },
              { name: 'Now', cell: ({ now }) => <Decided {...now} inherited /> },
              { name: 'Changed', cell: ({ changed }) => <Decided {...changed} /> },
            ]}
          />
          {totals.changed > most && (
            <p className="row muted">
              and {number(totals.changed - Math.min(most, totals.differences.length))} more
              {totals.differences.length > most && <Button onClick={() => setMost(most + listed)}>Show more</Button>}
            </p>
          )}
        </>
      )}
    </section>
  )
}

// Decided shows a mode, with the number of people who must agree where it is more than one.
function Decided({ mode, approvals, inherited }: { mode: string; approvals?: number; inherited?: boolean }) {
  return (
    <span className="row">
      <Mode mode={mode} inherited={inherited ?? false} />
      {approvals && ` ${approvals} people`}
    </span>
  )
}

// Removed simulates the policy without a setting.
export function Removed({ of }: { of: Sections }) {
  return <Simulation of={useSimulation(of)} />
}
