import { useQuery } from '@tanstack/react-query'
import { defaultRangeExtractor, useVirtualizer, type VirtualItem } from '@tanstack/react-virtual'
import { type KeyboardEvent, memo, type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react'
import { Link } from 'wouter'
import { get, type Problem, path } from '../../lib/client'
import { type Field, query } from '../../lib/filter'
import { usePaged } from '../../lib/paged'
import { all } from '../../lib/pages'
import { shown } from '../../lib/text'
import { Button, Command, Empty, Loading, Mode, ProblemNote } from '../../ui'
import { FilterBar, useFilter } from '../../ui/filter'
import { inDocument, withRow } from '../../ui/list'
import { reasonsOf } from '../inbox/reasons'
import { Editor } from './editor'
import { baseOf, type ModeRule, modeOf, narrowing, type Row, rowsOf, type Tool } from './rows'

const to = '/api/v1/policy/matrix'

const fields: readonly Field[] = [
  { name: 'q', label: 'Tool', kind: 'text', example: 'send mail' },
  { name: 'automation_id', label: 'Automation', kind: 'text' },
  { name: 'employee_id', label: 'Employee', kind: 'id' },
  { name: 'session_id', label: 'Session', kind: 'text' },
]

// Edited is a cell that is being edited: a pattern, and the automation or everybody.
interface Edited {
  tool: string
  automation: string
}

// Matrix shows the mode of each tool with the layers that set it, and changes those that people set.
export function Matrix() {
  const filter = useFilter(fields)
  const asked = query(fields, filter.filter)
  const enabled = filter.problems.length === 0
  const [edited, setEdited] = useState<Edited>()
  const [seen, setSeen] = useState<Seen>([0, 0])
  const tools = usePaged<Tool>(
    ['config', 'policy-matrix', asked],
    (cursor, signal) => get(to, { ...asked, limit: 100, cursor }, signal),
    { enabled, seen: (page) => page >= seen[0] && page <= seen[1] },
  )
  const modes = useQuery<ModeRule[], Problem>({
    queryKey: ['config', 'policy-modes'],
    queryFn: ({ signal }) => all<ModeRule>('/api/v1/policy/modes', signal),
  })
  const automation = typeof filter.filter.automation_id === 'string' ? filter.filter.automation_id : ''
  const error = tools.error ?? modes.error
  const whole = !tools.more && !tools.loading && !filter.filter.q
  // The pages stay the same objects until one is read again.
  const items = useSame(tools.pages)
  const shownModes = useMemo(
    () => modes.data?.filter(({ automation_id: of }) => !of || of === automation),
    [modes.data, automation],
  )
  const rows = useMemo(() => {
    if (items.length === 0 || !shownModes) return undefined
    const listed = items.flatMap((page, at) => page.items.map((tool) => ({ tool, page: at })))
    return rowsOf(listed, shownModes, whole)
  }, [items, shownModes, whole])
  return (
    <div className="stack">
      <FilterBar fields={fields} read={filter} onChange={filter.change} to={to} />
      {error && (
        <ProblemNote
          error={error}
          onRetry={() => {
            tools.again()
            void modes.refetch()
          }}
        />
      )}
      {enabled && !error && !rows && <Loading what="the matrix" />}
      {rows?.every(({ tool }) => !tool) && (
        <Empty title={filter.filter.q ? 'No tool matches.' : 'No tools yet'}>
          {!filter.filter.q && <Command of="countersign source set ID" />}
        </Empty>
      )}
      {rows && (
        <Grid rows={rows} modes={modes.data!} automation={automation} onEdit={setEdited} seen={seen} onSeen={setSeen} />
      )}
      {rows && (tools.more ?? tools.loading) && (
        <p>
          <Button busy={tools.loading} onClick={() => tools.more?.()}>
            Show more tools
          </Button>
        </p>
      )}
      <Command of="countersign policy matrix" />
      {edited && modes.data && (
        <Editor
          key={`${edited.automation} ${edited.tool}`}
          tool={edited.tool}
          automation={edited.automation}
          modes={modes.data}
          onClose={() => setEdited(undefined)}
        />
      )}
    </div>
  )
}

// useSame returns the list of an earlier rendering, if its items are the same.
function useSame<T>(list: readonly T[]): readonly T[] {
  const [kept, setKept] = useState(list)
  const same = kept.length === list.length && kept.every((one, i) => one === list[i])
  if (!same) setKept(list)
  return same ? kept : list
}

// Seen are the first and the last page with rows in view.
type Seen = readonly [first: number, last: number]

interface Cell {
  name: string
  className?: string
  content: ReactNode
  // edit opens the editor of the cell.
  edit?: { label: string; open: () => void }
}

const columns = (automation: string) => [
  'Tool',
  ...(automation ? [`Automation ${automation}`] : []),
  'Everybody',
  'Default',
  'Narrowed by',
  'Decision',
  'Also',
]

function Grid({
  rows,
  modes,
  automation,
  onEdit,
  seen,
  onSeen,
}: {
  rows: readonly Row[]
  modes: readonly ModeRule[]
  automation: string
  onEdit: (edited: Edited) => void
  seen: Seen
  onSeen: (seen: Seen) => void
}) {
  const table = useRef<HTMLTableElement>(null)
  const [[atRow, atColumn], setAt] = useState<readonly [number, number]>([0, 1])
  const names = columns(automation)
  const row = Math.min(atRow, rows.length - 1)
  const column = Math.min(atColumn, names.length - 1)
  const scroller = useRef<HTMLDivElement>(null)
  const moved = useRef(false)
  const virtual = rows.length > inDocument
  const virtualizer = useVirtualizer({
    count: rows.length,
    enabled: virtual,
    getScrollElement: () => scroller.current,
    estimateSize: (r) => heightOf(rows[r]!),
    overscan: 8,
    rangeExtractor: (range) => withRow(defaultRangeExtractor(range), row),
  })
  // The heights are known: no row is measured.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the virtualizer is one object for as long as the list is
  useLayoutEffect(() => virtualizer.measure(), [rows])
  const range = virtual ? virtualizer.range : null
  const [first, last] = pagesOf(rows, range?.startIndex ?? 0, range?.endIndex ?? rows.length - 1)
  useEffect(() => {
    if (first !== seen[0] || last !== seen[1]) onSeen([first, last])
  }, [first, last, seen, onSeen])
  const move = (event: KeyboardEvent) => {
    const last = [rows.length - 1, names.length - 1] as const
    const to: Record<string, readonly [number, number]> = {
      ArrowDown: [row + 1, column],
      ArrowUp: [row - 1, column],
      ArrowRight: [row, column + 1],
      ArrowLeft: [row, column - 1],
      PageDown: [row + 10, column],
      PageUp: [row - 10, column],
      Home: [event.ctrlKey ? 0 : row, 0],
      End: [event.ctrlKey ? last[0] : row, last[1]],
    }
    const next = to[event.key]
    if (!next) return
    event.preventDefault()
    const [r, c] = [clamp(next[0], last[0]), clamp(next[1], last[1])]
    setAt([r, c])
    moved.current = true
    if (virtual) virtualizer.scrollToIndex(r)
  }
  useEffect(() => {
    if (!moved.current) return
    moved.current = false
    table.current?.querySelector<HTMLElement>('tbody [tabindex="0"]')?.focus()
  })
  const line = (r: number) => (
    <Line
      key={rows[r]!.key}
      row={rows[r]!}
      at={r}
      active={r === row ? column : -1}
      windowed={virtual}
      modes={modes}
      automation={automation}
      onEdit={onEdit}
      onFocus={setAt}
    />
  )
  return (
    <div className={virtual ? 'table-scroll windowed' : 'table-scroll'} ref={scroller}>
      <table
        className="table matrix"
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: a grid is a table whose cells take the focus
        role="grid"
        aria-label="Modes of tools"
        aria-rowcount={rows.length + 1}
        ref={table}
        onKeyDown={move}
      >
        <thead>
          <tr>
            {names.map((name) => (
              <th key={name} scope="col" className={className(name)}>
                {shown(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {virtual
            ? withGaps(virtualizer.getVirtualItems(), virtualizer.getTotalSize(), line)
            : rows.map((_, r) => line(r))}
        </tbody>
      </table>
    </div>
  )
}

// Line is a row: of those in the document, a key draws the two whose focus changes.
const Line = memo(function Line({
  row,
  at,
  active,
  windowed,
  modes,
  automation,
  onEdit,
  onFocus,
}: {
  row: Row
  at: number
  // active is the column of the row that has the focus, or -1.
  active: number
  windowed: boolean
  modes: readonly ModeRule[]
  automation: string
  onEdit: (edited: Edited) => void
  onFocus: (at: readonly [number, number]) => void
}) {
  return (
    <tr aria-rowindex={at + 2} data-index={at} className={row.tool ? '' : 'pattern'}>
      {cells(row, modes, automation, onEdit).map((cell, c) => {
        const focus = { tabIndex: c === active ? 0 : -1, onFocus: () => onFocus([at, c]) }
        return (
          <td
            key={cell.name}
            className={className(cell.name)}
            height={windowed && c === 0 ? heightOf(row) : undefined}
            {...(!cell.edit && focus)}
          >
            {cell.edit ? (
              <button type="button" className="cell" aria-label={cell.edit.label} onClick={cell.edit.open} {...focus}>
                {cell.content}
              </button>
            ) : (
              cell.content
            )}
          </td>
        )
      })}
    </tr>
  )
})

// The heights of a row of a long matrix: its lines neither wrap nor grow.
const rowHeight = 33
const lineHeight = 18

const heightOf = ({ tool }: Row) => Math.max(rowHeight, 15 + lineHeight * (tool ? narrowing(tool).length : 0))

// pagesOf returns the first and the last page of the tools in a range of rows. A pattern is on the page before it.
function pagesOf(rows: readonly Row[], first: number, last: number): Seen {
  const page = (r: number) => rows.slice(0, r + 1).findLast(({ tool }) => tool)?.page ?? 0
  return [page(first), page(last)]
}

// withGaps returns the lines of the items, with a row as high as those that are left out in each place.
function withGaps(items: readonly VirtualItem[], total: number, line: (index: number) => ReactNode): ReactNode[] {
  const lines: ReactNode[] = []
  let end = 0
  const gap = (to: number, key: string) => {
    if (to > end)
      lines.push(
        <tr key={key}>
          <td className="gap" height={to - end} />
        </tr>,
      )
  }
  for (const item of items) {
    gap(item.start, `gap ${item.index}`)
    lines.push(line(item.index))
    end = item.end
  }
  gap(total, 'gap')
  return lines
}

const clamp = (n: number, most: number) => Math.max(0, Math.min(n, most))
const className = (name: string) => (['Default', 'Narrowed by', 'Also'].includes(name) ? 'hide-narrow' : '')

function cells(row: Row, modes: readonly ModeRule[], automation: string, onEdit: (edited: Edited) => void): Cell[] {
  const { key, tool } = row
  const settable = (name: string, layer: string, of: string): Cell => {
    const own = modeOf(modes, key, of)
    const step = tool && baseOf(tool, layer)
    const from = own ? '' : (step?.tool ?? '')
    const mode = own?.mode ?? step?.said
    const text = mode ? `${words[mode] ?? mode}${from && ` from ${from}`}` : 'not set'
    return {
      name,
      content: mode ? (
        <>
          <Mode mode={mode} inherited={!own} />
          {from && <bdi className="small muted"> {shown(from)}</bdi>}
        </>
      ) : (
        <span className="faint">–</span>
      ),
      edit: {
        label: shown(`${key}, ${name}: ${text}`),
        open: () => onEdit({ tool: key, automation: of }),
      },
    }
  }
  const set = [
    ...(automation ? [settable(`Automation ${automation}`, 'automation_override', automation)] : []),
    settable('Everybody', 'org_default', ''),
  ]
  const name = {
    name: 'Tool',
    content: (
      <bdi className="mono" title={tool && shown(tool.title)}>
        {key === '*' ? 'All tools' : shown(tool ? key.slice(key.indexOf(':') + 1) : key)}
      </bdi>
    ),
  }
  if (!tool) {
    const rest = columns('').slice(2)
    return [name, ...set, ...rest.map((one) => ({ name: one, content: null }))]
  }
  const inferred = baseOf(tool, 'inferred_default')
  return [
    name,
    ...set,
    {
      name: 'Default',
      content: (
        <>
          <Mode mode={inferred?.said ?? ''} inherited /> <span className="small muted">{shown(tool.risk)}</span>
        </>
      ),
    },
    {
      name: 'Narrowed by',
      content: (
        <ul>
          {reasonsOf(narrowing(tool)).map(({ layer, who, says, detail }) => (
            <li key={layer + who} className="small" title={shown(detail)}>
              <bdi>{shown(who)}</bdi> <span className="muted">{says}</span>
            </li>
          ))}
        </ul>
      ),
    },
    { name: 'Decision', content: <Mode mode={tool.mode} /> },
    { name: 'Also', content: <Also tool={tool} /> },
  ]
}

const settings = [
  ['rules', 'rule'],
  ['reviews', 'review'],
  ['grants', 'grant'],
] as const

// Also links the settings that can apply to calls of a tool, by their arguments, risk or proposer.
function Also({ tool }: { tool: Tool }) {
  return (
    <span className="row">
      {settings.map(
        ([tab, one]) =>
          tool[tab] > 0 && (
            <Link key={tab} href={path(`/policy/${tab}`, { tool: tool.tool })} className="small" tabIndex={-1}>
              {tool[tab]} {tool[tab] === 1 ? one : tab}
            </Link>
          ),
      )}
    </span>
  )
}

const words: Record<string, string> = { allow: 'allow', require_approval: 'ask', deny: 'deny' }
