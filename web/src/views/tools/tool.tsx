import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { Link, useLocation } from 'wouter'
import { get, type Problem, type Schemas } from '../../lib/client'
import { set } from '../../lib/filter'
import { useCommands } from '../../lib/keys'
import { shown } from '../../lib/text'
import { Chip, Command, Empty, JsonText, Loading, ProblemNote, Shown, Tabs } from '../../ui'
import { useFilter } from '../../ui/filter'
import { Drift } from './drift-panel'
import { type tabs, toolFields } from './fields'
import { Mode, Standing } from './list'
import { toolAPI, toolHref } from './names'
import { Settings } from './settings-panel'
import { Try } from './try'

type Tool = Schemas['Tool']

// useTool returns a tool by its name.
export const useTool = (name: string) =>
  useQuery<Tool, Problem>({
    queryKey: ['config', 'tool', name],
    queryFn: ({ signal }) => get<Tool>(toolAPI(name), {}, signal),
  })

export function OneTool({ name }: { name: string }) {
  const tool = useTool(name)
  const [, go] = useLocation()
  useCommands([{ id: 'back', run: () => go('/tools') }])
  const { data, error } = tool
  if (!data && error && (error.status === 404 || error.status === 400))
    return (
      <Empty whole title="Tool not found">
        <p>
          <code>{shown(name)}</code>: {shown(error.detail)}
        </p>
        <Link href="/tools">All tools</Link>
      </Empty>
    )
  if (!data)
    return error ? (
      <div className="page">
        <ProblemNote whole error={error} what="The tool was not loaded" onRetry={() => void tool.refetch()} />
      </div>
    ) : (
      <Loading what="the tool" />
    )
  return <Loaded tool={data} error={error} />
}

function Loaded({ tool, error }: { tool: Tool; error: Problem | null }) {
  const filter = useFilter(toolFields)
  const tab = (filter.filter.tab ?? 'definition') as (typeof tabs)[number]
  return (
    <div className="page">
      <header className="stack">
        <p className="small">
          <Link href="/tools">Tools</Link>
        </p>
        <div className="page-head">
          <h1 className="title mono">
            <Shown text={tool.tool} />
          </h1>
          <Standing of={tool} />
          <Mode of={tool.mode} />
        </div>
        {tool.title && (
          <p>
            <Shown text={tool.title} />
          </p>
        )}
        {error && <ProblemNote error={error} what="Not updated: showing earlier data" />}
      </header>
      <Drift tool={tool} />
      <Tabs
        label="Parts of the tool"
        tabs={[
          { key: 'definition', label: 'Definition' },
          { key: 'settings', label: 'Settings' },
          { key: 'try', label: 'Try' },
        ]}
        chosen={tab}
        onChoose={(key) => filter.change(set(filter.filter, 'tab', key === 'definition' ? '' : key), { replace: true })}
      >
        {tab === 'try' && <Try tool={tool} />}
        {tab === 'settings' && <Settings tool={tool} />}
        {tab === 'definition' && <Definition tool={tool} />}
      </Tabs>
    </div>
  )
}

function Definition({ tool }: { tool: Tool }) {
  const { reversal } = tool
  const source = tool.tool.slice(0, tool.tool.indexOf(':'))
  const facts: [name: string, value: ReactNode][] = [
    [
      'Source',
      <Link key="source" href={`/sources/${source}`}>
        {shown(source)}
      </Link>,
    ],
    ['Full name', <code key="name">{shown(tool.full_name)}</code>],
    ['Risk', tool.risk],
    ['Called twice', effects[tool.effect]],
    ['Side effects', tool.side_effects.map((effect) => shown(effect)).join('; ') || 'none'],
    [
      'Reverted',
      reversal ? (
        <>
          by <Link href={toolHref(reversal.tool)}>{shown(reversal.tool)}</Link>
        </>
      ) : tool.reversible ? (
        'not needed: it only reads'
      ) : (
        'not at all'
      ),
    ],
    ['Digest', <code key="digest">{tool.digest}</code>],
  ]
  return (
    <div className="stack">
      <section className="panel stack" aria-labelledby="description">
        <h2 id="description">Description</h2>
        <p>{tool.description ? <Shown text={tool.description} lines /> : <Chip>none</Chip>}</p>
        <dl className="terms">
          {facts.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </section>
      <section className="panel stack" aria-labelledby="input">
        <h2 id="input">Arguments</h2>
        <JsonText value={tool.input_schema} label="Schema of the arguments" />
        {tool.output_schema !== undefined && (
          <>
            <h2>Answer</h2>
            <JsonText value={tool.output_schema} label="Schema of the answer" />
          </>
        )}
        <Command of="countersign tools show SOURCE:TOOL" />
      </section>
    </div>
  )
}

const effects: Record<Tool['effect'], string> = {
  read: 'changes nothing (read)',
  idempotent: 'has one effect (idempotent)',
  keyed: 'has one effect under the same key (keyed)',
  once: 'has two effects, so that an unknown outcome is for a person (once)',
}
