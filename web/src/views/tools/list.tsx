import { useInfiniteQuery } from '@tanstack/react-query'
import { Link, useLocation } from 'wouter'
import { get, type Problem, type Schemas } from '../../lib/client'
import { query, set } from '../../lib/filter'
import { shown } from '../../lib/text'
import { Button, Chip, Command, Empty, Icon, State } from '../../ui'
import { FilterBar, useFilter } from '../../ui/filter'
import { Listing } from '../actions/listing'
import type { Rows } from '../actions/rows'
import { standing } from './drift'
import { fields } from './fields'
import { toolHref } from './names'

type Tool = Schemas['Tool']

interface Page {
  items: Tool[]
  next_cursor: string | null
  sources: { source_id: string; enabled: boolean; error: string | null }[]
}

const to = '/api/v1/tools'
const keyOf = (tool: Tool) => tool.tool
const pageSize = 200

// useTools reads the tools of a filter page by page, and the sources that could not be listed.
function useTools(asked: Record<string, string>, enabled: boolean): { rows: Rows<Tool>; failed: Page['sources'] } {
  const read = useInfiniteQuery<Page, Problem, { pages: Page[] }, unknown[], string>({
    queryKey: ['config', 'tools', asked],
    enabled,
    initialPageParam: '',
    queryFn: ({ pageParam, signal }) => get<Page>(to, { ...asked, limit: pageSize, cursor: pageParam }, signal),
    getNextPageParam: (page) => page.next_cursor,
  })
  const pages = read.data?.pages
  return {
    failed: pages?.[0]?.sources.filter((source) => source.error !== null) ?? [],
    rows: {
      items: pages?.flatMap((page) => page.items),
      error: read.isFetchNextPageError ? null : read.error,
      loading: read.isPending,
      ended: pages && !read.hasNextPage ? 'end' : undefined,
      more: () => {
        if (read.hasNextPage && !read.isFetching) void read.fetchNextPage()
      },
      moreError: read.isFetchNextPageError ? read.error : undefined,
      again: () => void read.refetch(),
    },
  }
}

const views = [
  ['All', '', ''],
  ['Drifted', 'drifted', 'true'],
  ['In quarantine', 'quarantined', 'true'],
] as const

export function Tools() {
  const filter = useFilter(fields)
  const [, go] = useLocation()
  const asked = query(fields, filter.filter)
  const ok = filter.problems.length === 0
  const { rows, failed } = useTools(asked, ok)
  const chosen = views.findLast(([, name, value]) => name === '' || filter.filter[name] === value)![0]
  const neither = set(set(filter.filter, 'drifted', ''), 'quarantined', '')
  return (
    <div className="page page-list">
      <header className="page-head">
        <h1>Tools</h1>
        <div className="row" role="group" aria-label="Which">
          {views.map(([label, name, value]) => (
            <Button
              key={label}
              kind="quiet"
              aria-pressed={chosen === label}
              onClick={() => filter.change(name ? set(neither, name, value) : neither)}
            >
              {label}
            </Button>
          ))}
        </div>
      </header>
      <FilterBar fields={fields} read={filter} onChange={filter.change} to={to} />
      {failed.length > 0 && (
        <div className="problem" role="status">
          <Icon name="triangle" />
          <p>
            Without the tools of sources that could not be listed:{' '}
            {failed.map((source, i) => (
              <span key={source.source_id}>
                {i > 0 && ', '}
                <Link href={`/sources/${source.source_id}`}>{shown(source.source_id)}</Link>
              </span>
            ))}
          </p>
        </div>
      )}
      {ok && (
        <Listing
          of="tools"
          asked={asked}
          rows={rows}
          keyOf={keyOf}
          row={(tool) => <Row tool={tool} />}
          onOpen={(tool) => go(toolHref(tool))}
          onClear={() => filter.change({})}
          nothing={
            <Empty title="No tools yet">
              <p>
                Tools come from sources. <Link href="/sources">Set a source up</Link>, and its tools are listed here.
              </p>
            </Empty>
          }
        />
      )}
      <Command of="countersign tools list" />
    </div>
  )
}

const modes = {
  allow: ['good', 'allowed'],
  require_approval: ['person', 'asks a person'],
  deny: ['bad', 'denied'],
} as const

// Mode shows what policy decides about a call now.
export function Mode({ of }: { of: Tool['mode'] }) {
  const [tone, word] = modes[of]
  return <Chip tone={tone}>{word}</Chip>
}

// Standing shows whether a person has to look at a tool.
export function Standing({ of }: { of: Tool }) {
  if (!of.enabled) return <State state="paused" word="source is off" />
  switch (standing(of)) {
    case 'fine':
      return null
    case 'source':
      return <State state="quarantine" word="source not accepted" />
    case 'new':
      return <State state="quarantine" word="new, in quarantine" />
    case 'changed':
      return <State state="drift" word={`drift: ${of.drift}`} />
  }
}

function Row({ tool }: { tool: Tool }) {
  return (
    <span className="tool-row">
      <span className="mono cut">{shown(tool.tool)}</span>
      <bdi className="cut tool-title">{shown(tool.title || tool.description)}</bdi>
      <span>
        <Standing of={tool} />
      </span>
      <span className="muted nowrap tool-risk">{[...new Set([tool.risk, tool.effect])].join(', ')}</span>
      <span className="tool-mode">
        <Mode of={tool.mode} />
      </span>
    </span>
  )
}
