import { useMutation, useQuery } from '@tanstack/react-query'
import { get, post, request, type Schemas } from '../../lib/client'
import { useMay } from '../../lib/me'
import { queries } from '../../lib/query'
import { shown } from '../../lib/text'
import { Button, Command, ProblemNote, Table, Time, toast } from '../../ui'

type Tag = Schemas['TriageTag']
type Try = Schemas['TriageTry']

interface Row {
  tag: Tag
  // The ended tries of the tag, the newest first.
  tries: Try[]
}

// rowsOf returns tags with their tries.
export function rowsOf(tags: readonly Tag[], tries: readonly Try[]): Row[] {
  return tags.map((tag) => ({
    tag,
    tries: tries.filter((one) => one.message_id === tag.message_id && one.action === tag.action),
  }))
}

// problemOf is why the latest try of a tag did not succeed, or why none begins.
export function problemOf({ tag, tries }: Row): string {
  return tag.problem || (tries[0]?.status !== 'success' && tries[0]?.error) || ''
}

async function readRows(signal: AbortSignal): Promise<Row[]> {
  const page = { limit: 100 }
  const [tags, tries] = await Promise.all([
    get<{ items: Tag[] }>('/api/v1/triage/tags', page, signal),
    get<{ items: Try[] }>('/api/v1/triage/tries', page, signal),
  ])
  return rowsOf(tags.items, tries.items)
}

// Tags lists the action tags of mail with their tries, puts tags back and removes them.
export function Tags() {
  const may = useMay()
  const rows = useQuery({
    queryKey: ['config', 'triage-tags'],
    queryFn: ({ signal }) => readRows(signal),
    enabled: may('listTriageTags') === undefined && may('listTriageTries') === undefined,
  })
  const change = useMutation({
    mutationFn: ({ retry, row: { tag, tries } }: { retry: boolean; row: Row }) =>
      retry
        ? post(`/api/v1/triage/tries/${tries[0]?.log_id}/retry`, {})
        : request('DELETE', `/api/v1/triage/messages/${tag.message_id}/tags/${encodeURIComponent(tag.action)}`),
    onSuccess: (_, { retry, row }) => {
      toast({ text: `${shown(row.tag.action)} is ${retry ? 'put back' : 'removed'}.` })
      void queries.invalidateQueries({ queryKey: ['config', 'triage-tags'] })
    },
  })
  if (rows.isError) return <ProblemNote error={rows.error} onRetry={() => void rows.refetch()} />
  if (!rows.data?.length) return null
  return (
    <section className="panel stack" aria-labelledby="settings-tags">
      <h2 id="settings-tags">Action tags</h2>
      <Command of="countersign triage tags list" />
      {change.isError && <ProblemNote error={change.error} what="The tag did not change" />}
      <Table
        caption="Action tags"
        rows={rows.data}
        keyOf={({ tag }) => `${tag.message_id}/${tag.action}`}
        columns={[
          { name: 'Message', cell: ({ tag }) => shown(tag.subject ?? '–') },
          { name: 'Action', cell: ({ tag }) => shown(tag.action) },
          { name: 'State', cell: ({ tag }) => tag.state },
          { name: 'Tagged', cell: ({ tag }) => <Time at={tag.tagged_at} />, hideNarrow: true },
          { name: 'Ended tries', cell: ({ tries }) => tries.length, hideNarrow: true },
          { name: 'Problem', cell: (row) => shown(problemOf(row)) },
          {
            name: 'Change',
            unnamed: true,
            cell: (row) => (
              <span className="row">
                {row.tag.state === 'skipped' && row.tries.length > 0 && (
                  <Button onClick={() => change.mutate({ retry: true, row })} whyNot={may('retryTriageTag')}>
                    Retry<span className="unseen"> {shown(row.tag.action)}</span>
                  </Button>
                )}
                <Button onClick={() => change.mutate({ retry: false, row })} whyNot={may('removeTriageTag')}>
                  Remove<span className="unseen"> {shown(row.tag.action)}</span>
                </Button>
              </span>
            ),
          },
        ]}
      />
    </section>
  )
}
