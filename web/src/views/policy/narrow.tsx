// What narrows sessions, and the tools that are switched off: both are listed with their removal.
import { useMutation, useQuery } from '@tanstack/react-query'
import { personOf } from '../../lib/actor'
import { type Problem, path, request } from '../../lib/client'
import { type OperationID, useMay } from '../../lib/me'
import { all as readAll } from '../../lib/pages'
import { configChanged } from '../../lib/query'
import { shown } from '../../lib/text'
import { Button, Command, Loading, Mode, ProblemNote, Table, Time, toast } from '../../ui'
import type { Column } from '../../ui/table'
import { useTool } from './of-tool'
import type { Preference, SessionMode } from './types'

interface Removable {
  tool: string
  etag: string
  updated_by: string
  updated_at: string
}

interface NarrowProps<T> {
  title: string
  text: string
  none: string
  to: string
  columns: Column<T>[]
  operation: OperationID
  // pathOf returns the path of a setting. what names it in sentences.
  pathOf: (one: T) => string
  what: (one: T) => string
  command: string
}

function Narrow<T extends Removable>({
  title,
  text,
  none,
  to,
  columns,
  operation,
  pathOf,
  what,
  command,
}: NarrowProps<T>) {
  const may = useMay()
  const read = useQuery<T[], Problem>({
    queryKey: ['config', to],
    queryFn: ({ signal }) => readAll<T>(to, signal),
  })
  const removal = useMutation<unknown, Problem, T>({
    mutationFn: (one) => request('DELETE', pathOf(one), { ifMatch: `"${one.etag}"` }),
    onSuccess: (_, one) => toast({ text: `${what(one)}: removed.` }),
    onSettled: configChanged,
  })
  const rows = useTool(read.data ?? [])
  const id = `narrow-${operation}`
  return (
    <section className="stack" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <p className="muted">{text}</p>
      {read.isPending && <Loading what={title.toLowerCase()} />}
      {read.isError && <ProblemNote error={read.error} onRetry={() => void read.refetch()} />}
      {removal.isError && <ProblemNote error={removal.error} what="Not removed" />}
      {read.data?.length === 0 && <p>{none}</p>}
      {read.data && read.data.length > 0 && (
        <Table
          caption={title}
          rows={rows}
          keyOf={pathOf}
          columns={[
            { name: 'Tools', cell: (one) => <bdi>{shown(one.tool)}</bdi> },
            ...columns,
            {
              name: 'Changed',
              cell: (one) => (
                <>
                  <bdi>{shown(personOf(one.updated_by))}</bdi>, <Time at={one.updated_at} />
                </>
              ),
              hideNarrow: true,
            },
            {
              name: 'Remove',
              unnamed: true,
              cell: (one) => (
                <Button whyNot={may(operation)} busy={removal.isPending} onClick={() => removal.mutate(one)}>
                  Remove<span className="unseen"> {what(one)}</span>
                </Button>
              ),
            },
          ]}
        />
      )}
      <Command of={command} />
    </section>
  )
}

const sessions = '/api/v1/policy/sessions'
const preferences = '/api/v1/preferences'

// Sessions lists the modes that narrow sessions.
export function Sessions() {
  return (
    <Narrow<SessionMode>
      title="Sessions"
      text="Modes that narrow one session, and never loosen it."
      none="No session is narrowed."
      to={sessions}
      operation="deleteSessionMode"
      columns={[
        { name: 'Session', cell: (one) => <bdi>{shown(one.session_id)}</bdi> },
        { name: 'Mode', cell: (one) => <Mode mode={one.mode} /> },
        { name: 'Until', cell: (one) => <Time at={one.expires_at} /> },
      ]}
      pathOf={(one) => `${sessions}/${encodeURIComponent(one.session_id)}/${encodeURIComponent(one.tool)}`}
      what={(one) => `${shown(one.tool)} of session ${shown(one.session_id)}`}
      command="countersign policy session set SESSION KEY deny --expires-in 1d"
    />
  )
}

// Preferences lists the tools that are switched off.
export function Preferences() {
  return (
    <Narrow<Preference>
      title="Switched off"
      text="Tools that an employee, or everybody, has switched off."
      none="No tool is switched off."
      to={preferences}
      operation="deletePreference"
      columns={[{ name: 'For', cell: (one) => (one.employee_id ? shown(one.employee_id) : 'everybody') }]}
      pathOf={(one) => path(`${preferences}/${encodeURIComponent(one.tool)}`, { employee_id: one.employee_id })}
      what={(one) => shown(one.tool)}
      command="countersign policy preference set KEY"
    />
  )
}
