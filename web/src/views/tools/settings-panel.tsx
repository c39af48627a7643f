import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import type { PlainField } from '../../form/plain'
import { PlainSheet } from '../../form/plain-sheet'
import type { Version } from '../../lib/change'
import { get, type Problem, request, type Schemas } from '../../lib/client'
import type { Json, JsonObject } from '../../lib/json'
import { type OperationID, useMay } from '../../lib/me'
import { all } from '../../lib/pages'
import { shown } from '../../lib/text'
import { Button, Command, Loading, ProblemNote, Shown, Table, toast } from '../../ui'
import { toolAPI } from './names'
import { sample } from './sample'
import {
  description,
  fieldsOfReconcile,
  fieldsOfSnapshot,
  overrides,
  type Part,
  partly,
  preview,
  rule,
} from './settings'

type Tool = Schemas['Tool']

interface Opened {
  title: string
  part: Part
  operation: OperationID
}

// Settings shows what operators set of a tool, and changes it.
export function Settings({ tool }: { tool: Tool }) {
  const [opened, setOpened] = useState<Opened>()
  const may = useMay()
  const guess = tool.recipients_confirmed ? '' : ' (guessed)'
  const rows: (Opened & { now: ReactNode })[] = [
    {
      title: 'Risk and retries',
      part: overrides,
      operation: 'configureTool',
      now: `${tool.risk}, ${tool.effect}, at most ${tool.max_attempts} attempts`,
    },
    {
      title: 'Headline and description',
      part: description,
      operation: 'describeTool',
      now: tool.headline ? (
        <>
          <code>{shown(tool.headline)}</code> {tool.headline_confirmed ? '' : '(inferred)'}
        </>
      ) : (
        'no headline'
      ),
    },
    {
      title: 'Recipients and limits',
      part: rule,
      operation: 'putToolRule',
      now: (
        <>
          {tool.recipients.length > 0 ? (
            <>
              writes to <code>{shown(tool.recipients.join(' '))}</code>
              {guess}
            </>
          ) : (
            `writes to nobody${guess}`
          )}
          {tool.scopes.length > 0 && `; needs ${shown(tool.scopes.join(' '))}`}
          {tool.timeout && `; at most ${tool.timeout}`}
        </>
      ),
    },
  ]
  return (
    <div className="stack">
      <section className="panel stack" aria-labelledby="settings">
        <h2 id="settings">Settings by operators</h2>
        <Table
          caption="Settings by operators"
          rows={rows}
          keyOf={(row) => row.title}
          columns={[
            { name: 'Setting', cell: (row) => row.title },
            { name: 'Now', cell: (row) => row.now },
            {
              name: 'Change',
              unnamed: true,
              cell: (row) => (
                <Button icon="pencil" whyNot={may(row.operation)} onClick={() => setOpened(row)}>
                  Change…<span className="unseen"> {row.title.toLowerCase()}</span>
                </Button>
              ),
            },
          ]}
        />
        <Command of="countersign tools set SOURCE:TOOL" />
      </section>
      <Rules tool={tool.tool} />
      {opened && <PartSheet tool={tool} {...opened} onClose={() => setOpened(undefined)} />}
    </div>
  )
}

function PartSheet({ tool, title, part, operation, onClose }: Opened & { tool: Tool; onClose: () => void }) {
  const may = useMay()
  const base = { value: part.of(tool), etag: tool.etag }
  const [opened] = useState(base)
  const read = async (): Promise<Version<JsonObject>> => {
    const now = await get<Tool>(toolAPI(tool.tool))
    return { value: part.of(now), etag: now.etag }
  }
  return (
    <PlainSheet
      title={`${title} of ${shown(tool.tool)}`}
      fields={part.fields}
      base={opened}
      read={read}
      write={(value, ifMatch) =>
        // The value that a second save is based on is the one that its ETag is of: that is looked at only once.
        partly(ifMatch === `"${opened.etag}"` ? opened.value : null, ifMatch, read, (match) =>
          request('PUT', `${toolAPI(tool.tool)}/${part.path}`, { body: value ?? {}, ifMatch: match }),
        )
      }
      whyNot={may(operation)}
      onSaved={() => {
        toast({ text: `${title} of ${shown(tool.tool)}: saved.` })
        onClose()
      }}
      onClose={onClose}
    >
      {part === description ? (value) => <Headline tool={tool} template={value.headline} /> : undefined}
    </PlainSheet>
  )
}

// Headline shows a headline over arguments that the schema's examples make.
function Headline({ tool, template }: { tool: Tool; template: Json | undefined }) {
  const schema = tool.input_schema as Json
  const given = typeof template === 'string' ? template : tool.headline_confirmed ? '' : tool.headline
  const { text, unknown } = preview(given, schema, sample(schema))
  return (
    <section className="stack" aria-label="Preview of the headline">
      <h3>Preview</h3>
      <p className="headline">{text ? <Shown text={text} /> : <span className="muted">inferred from the call</span>}</p>
      {unknown.length > 0 && (
        <p className="muted">
          No such argument in the schema: <code>{shown(unknown.join(' '))}</code>
        </p>
      )}
    </section>
  )
}

interface Stored extends JsonObject {
  tool: string
  etag: string
}

interface RuleKind {
  list: string
  path: 'snapshot-rule' | 'reconcile-rule'
  title: string
  text: string
  none: string
  fields: readonly PlainField[]
  put: OperationID
  remove: OperationID
}

const kinds: readonly RuleKind[] = [
  {
    list: '/api/v1/snapshot-rules',
    path: 'snapshot-rule',
    title: 'Snapshots',
    text: 'A read right before and after each call. What it answers is kept with the call.',
    none: 'No snapshots are taken.',
    fields: fieldsOfSnapshot,
    put: 'putSnapshotRule',
    remove: 'deleteSnapshotRule',
  },
  {
    list: '/api/v1/reconcile-rules',
    path: 'reconcile-rule',
    title: 'Unknown outcomes',
    text: 'A read that finds out whether a call of unknown outcome happened.',
    none: 'A person resolves each unknown outcome.',
    fields: fieldsOfReconcile,
    put: 'putReconcileRule',
    remove: 'deleteReconcileRule',
  },
]

// readRule returns the rule of a tool.
async function readRule(list: string, tool: string, signal?: AbortSignal): Promise<Version<JsonObject>> {
  const found = (await all<Stored>(list, signal)).find((one) => one.tool === tool)
  if (!found) return { value: null, etag: '' }
  const { tool: _, etag, ...value } = found
  return { value, etag }
}

const Rules = ({ tool }: { tool: string }) => kinds.map((kind) => <Rule key={kind.path} kind={kind} tool={tool} />)

function Rule({ kind, tool }: { kind: RuleKind; tool: string }) {
  const may = useMay()
  const [opened, setOpened] = useState<Version<JsonObject>>()
  const read = useQuery<Version<JsonObject>, Problem>({
    queryKey: ['config', kind.path, tool],
    queryFn: ({ signal }) => readRule(kind.list, tool, signal),
  })
  const to = `${toolAPI(tool)}/${kind.path}`
  const stored = read.data?.value
  return (
    <section className="panel stack" aria-labelledby={kind.path}>
      <div className="row">
        <h2 id={kind.path} className="grow">
          {kind.title}
        </h2>
        {read.data && (
          <Button icon="pencil" whyNot={may(kind.put)} onClick={() => setOpened(read.data)}>
            {stored ? 'Change…' : 'Set…'}
            <span className="unseen"> {kind.title.toLowerCase()}</span>
          </Button>
        )}
      </div>
      <p className="muted">{kind.text}</p>
      {read.isPending && <Loading what="the rule" />}
      {read.error && <ProblemNote error={read.error} onRetry={() => void read.refetch()} />}
      {read.data && (
        <p>
          {stored ? (
            <>
              by <code>{shown(String(stored.read))}</code>
              {stored.happened !== undefined && (
                <>
                  , at <code>{shown(String(stored.happened))}</code>
                </>
              )}
            </>
          ) : (
            kind.none
          )}
        </p>
      )}
      {opened && (
        <PlainSheet
          title={`${kind.title} of ${shown(tool)}`}
          fields={kind.fields}
          base={opened}
          read={() => readRule(kind.list, tool)}
          write={(value, ifMatch) => request(value ? 'PUT' : 'DELETE', to, { body: value ?? undefined, ifMatch })}
          whyNot={may(kind.put)}
          remove={{ word: 'Remove', name: 'this rule', text: kind.none, whyNot: may(kind.remove) }}
          onSaved={(value) => {
            toast({ text: `${kind.title} of ${shown(tool)}: ${value ? 'saved' : 'removed'}.` })
            setOpened(undefined)
          }}
          onClose={() => setOpened(undefined)}
        />
      )}
    </section>
  )
}
