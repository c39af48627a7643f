import '../../form/form.css'
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import { useMay } from '../../lib/me'
import { shown } from '../../lib/text'
import { Button, Command, Empty, Loading, ProblemNote, State, Table, Time } from '../../ui'
import { Export } from '../../ui/export'
import { Form } from './form'
import { health } from './health'
import { OneSource } from './one'
import { useBreakers, useSources } from './read'

// One view for the list of sources and one source.
export default function View({ id }: { id?: string }) {
  return id === undefined ? <Sources /> : <OneSource key={id} id={id} />
}

function Sources() {
  const may = useMay()
  const sources = useSources(false)
  const breakers = useBreakers()
  const [, go] = useLocation()
  const [adding, setAdding] = useState(false)
  const rows = sources.data ?? []
  return (
    <div className="page">
      <header className="page-head">
        <h1 className="grow">Sources</h1>
        <Export name="sources" to="/api/v1/sources" />
        <Button icon="plug" whyNot={may('putSource')} onClick={() => setAdding(true)}>
          Set a source up…
        </Button>
      </header>
      {sources.error && (
        <ProblemNote error={sources.error} what="The sources were not loaded" onRetry={() => void sources.refetch()} />
      )}
      {sources.isPending && <Loading what="sources" />}
      {sources.data?.length === 0 && (
        <Empty title="No sources yet">
          <p>A source is an MCP server, a mailbox, or another service whose tools agents call.</p>
        </Empty>
      )}
      {rows.length > 0 && (
        <Table
          caption="Sources"
          rows={rows}
          keyOf={(one) => one.source_id}
          columns={[
            { name: 'Source', cell: (one) => <Link href={`/sources/${one.source_id}`}>{shown(one.source_id)}</Link> },
            { name: 'Kind', cell: (one) => one.kind, hideNarrow: true },
            {
              name: 'State',
              cell: (one) => {
                const [state, word] = health(one, breakers.get(one.source_id))
                return <State state={state} word={word} />
              },
            },
            { name: 'Tools', cell: (one) => String(one.tools), number: true },
            { name: 'Listed', cell: (one) => <Time at={one.listed_at} />, hideNarrow: true },
            {
              name: 'Problem',
              cell: (one) => shown(one.login?.lost_reason ?? one.list_error ?? ''),
              hideNarrow: true,
            },
          ]}
        />
      )}
      <Command of="countersign source list" />
      {adding && (
        <Form
          taken={rows.map((one) => one.source_id)}
          onClose={() => setAdding(false)}
          onSaved={(id) => go(`/sources/${id}`)}
        />
      )}
    </div>
  )
}
