import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Link } from 'wouter'
import { personOf } from '../../lib/actor'
import { get, type Problem, request, type Schemas } from '../../lib/client'
import { type Json, type JsonObject, stringify } from '../../lib/json'
import { useMay } from '../../lib/me'
import { useParams } from '../../lib/params'
import { configChanged } from '../../lib/query'
import { shown } from '../../lib/text'
import { Ask, Button, Command, Empty, Field, Loading, ProblemNote, Sending, Sheet, Table, Time, toast } from '../../ui'
import { Export } from '../../ui/export'
import { Preview } from '../inbox/AlwaysSheet'
import { type GrantDraft, grantProblem, inputOf, stateOf } from './grant'
import { Text } from './input'
import { Preferences, Sessions } from './narrow'
import { OfTool, useTool } from './of-tool'
import type { Grant } from './types'
import { useUsage } from './usage'
import './rules.css'

const to = '/api/v1/policy/grants'

interface Page {
  items: Grant[]
  next_cursor: string | null
}

// Grants lists grants, modes of sessions and preferences. ended=true lists ended grants
// too; grant= opens the form for a new one.
export function Grants() {
  return (
    <div className="stack">
      <List />
      <Sessions />
      <Preferences />
    </div>
  )
}

function List() {
  const [search, change] = useParams()
  const ended = search.get('ended') === 'true'
  const may = useMay()
  const usage = useUsage('grants')
  const [revoking, setRevoking] = useState<Grant>()
  const grants = useInfiniteQuery<Page, Problem, Grant[], readonly unknown[], string | undefined>({
    queryKey: ['config', 'grants', ended],
    queryFn: ({ signal, pageParam }) => get<Page>(to, { ended: ended || undefined, cursor: pageParam }, signal),
    initialPageParam: undefined,
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    select: ({ pages }) => pages.flatMap(({ items }) => items),
  })
  const rows = useTool(grants.data ?? [])
  return (
    <section className="stack" aria-labelledby="grants-head">
      <div className="row">
        <h2 id="grants-head" className="grow">
          Grants
        </h2>
        <label className="row tick">
          <input type="checkbox" checked={ended} onChange={() => change({ ended: ended ? undefined : 'true' })} />
          Ended ones too
        </label>
        <Export name="grants" to={to} query={{ ended: ended ? 'true' : undefined }} />
        <Button whyNot={may('makeGrant')} onClick={() => change({ grant: '' })}>
          New grant
        </Button>
      </div>
      <p className="muted">Calls that a grant covers run where they would wait for a person.</p>
      {grants.data && <OfTool rows={grants.data} />}
      {grants.isPending && <Loading what="grants" />}
      {grants.isError && <ProblemNote error={grants.error} onRetry={() => void grants.refetch()} />}
      {grants.data?.length === 0 && (
        <Empty title={ended ? 'No grants' : 'No grants now'}>
          <p>
            <code>countersign policy grant make mail:send --expires-in 1h --pin /to=ana@example.org</code> makes one,
            and “Always…” in the inbox.
          </p>
        </Empty>
      )}
      {rows.length > 0 && (
        <Table
          caption="Grants"
          rows={rows}
          keyOf={(grant) => grant.grant_id}
          columns={[
            { name: 'Tool', cell: (grant) => <bdi>{shown(grant.tool)}</bdi> },
            { name: 'For', cell: (grant) => forWhom(grant) },
            { name: 'Lets through', cell: (grant) => <Held of={grant} /> },
            { name: 'Until', cell: (grant) => <Until of={grant} /> },
            { name: usage.name, cell: (grant) => usage.cell(grant.grant_id), hideNarrow: true },
            {
              name: 'Made by',
              cell: (grant) => (
                <>
                  <bdi>{shown(personOf(grant.created_by))}</bdi>,{' '}
                  {grant.from_action ? (
                    <Link href={`/actions/${grant.from_action}`}>
                      <Time at={grant.created_at} />
                    </Link>
                  ) : (
                    <Time at={grant.created_at} />
                  )}
                </>
              ),
              hideNarrow: true,
            },
            { name: 'Reason', cell: (grant) => shown(grant.reason), hideNarrow: true },
            {
              name: 'Revoke',
              unnamed: true,
              cell: (grant) =>
                stateOf(grant, Date.now()) === 'holds' && (
                  <Button whyNot={may('revokeGrant')} onClick={() => setRevoking(grant)}>
                    Revoke…<span className="unseen"> the grant for {shown(grant.tool)}</span>
                  </Button>
                ),
            },
          ]}
        />
      )}
      {grants.hasNextPage && (
        <p>
          <Button busy={grants.isFetchingNextPage} onClick={() => void grants.fetchNextPage()}>
            Show older ones
          </Button>
        </p>
      )}
      <Command of="countersign policy grant list" />
      {revoking && (
        <Ask
          title="Revoke this grant?"
          text="Its calls wait for a person from then on; so do those that it let through and that are not sent yet."
          label="Revoke"
          note="no"
          hint=""
          send={() => request('DELETE', `${to}/${revoking.grant_id}`)}
          onDone={() => {
            toast({ text: `The grant for ${shown(revoking.tool)} is revoked.` })
            configChanged()
          }}
          onClose={() => setRevoking(undefined)}
        />
      )}
      {search.get('grant') === '' && <Make onClose={() => change({ grant: undefined })} />}
    </section>
  )
}

function forWhom({ session_id, employee_id, automation_id }: Grant) {
  const parts = [
    session_id && `session ${session_id}`,
    employee_id && `employee ${employee_id}`,
    automation_id && `automation ${automation_id}`,
  ].filter((part) => part !== undefined && part !== '')
  return <bdi>{shown(parts.join(', ') || 'everybody')}</bdi>
}

// Held shows which arguments a grant lets through.
function Held({ of: { pins, loose = [], tool } }: { of: Grant }) {
  const pinned = Object.entries(pins as JsonObject)
  return (
    <details>
      <summary>
        {pinned.length === 0 && loose.length === 0
          ? 'calls without arguments'
          : loose.includes('')
            ? pinned.length > 0
              ? `any call with ${pinned.length} fixed`
              : 'any call'
            : loose.length > 0
              ? `${loose.length} may differ`
              : 'exactly these arguments'}
        <span className="unseen"> of {shown(tool)}</span>
      </summary>
      <ul>
        {pinned.map(([pointer, value]) => (
          <li key={pointer}>
            <code>{shown(pointer || 'all arguments')}</code> is <code>{shown(stringify(value as Json))}</code>
          </li>
        ))}
        {loose.map((pointer) => (
          <li key={pointer}>
            <code>{shown(pointer || 'every other argument')}</code> may have any value
          </li>
        ))}
      </ul>
    </details>
  )
}

function Until({ of: grant }: { of: Grant }) {
  switch (stateOf(grant, Date.now())) {
    case 'holds':
      return <Time at={grant.expires_at} />
    case 'revoked':
      return (
        <>
          revoked <Time at={grant.revoked_at} /> by <bdi>{shown(personOf(grant.revoked_by ?? ''))}</bdi>
        </>
      )
    case 'expired':
      return (
        <>
          expired <Time at={grant.expires_at} />
        </>
      )
  }
}

const blank: GrantDraft = {
  tool: '',
  session_id: '',
  employee_id: '',
  automation_id: '',
  pins: '{}',
  loose: '',
  expires_in: '8h',
  reason: '',
}

// Make makes a grant, after a dry run of exactly this grant.
function Make({ onClose }: { onClose: () => void }) {
  const may = useMay()
  const [draft, setDraft] = useState(blank)
  const [tried, setTried] = useState('')
  const text = JSON.stringify(draft)
  const wrong = grantProblem(draft)
  const preview = useQuery<Schemas['GrantPreview'], Problem>({
    queryKey: ['grant-preview', tried],
    queryFn: ({ signal }) =>
      request<Schemas['GrantPreview']>('POST', to, {
        query: { dry_run: true },
        body: inputOf(JSON.parse(tried) as GrantDraft),
        signal,
      }).then((answer) => answer.body),
    enabled: tried !== '',
    retry: false,
    gcTime: 0,
    staleTime: Infinity,
  })
  const making = useMutation<unknown, Problem>({
    mutationFn: () => request('POST', to, { body: inputOf(draft) }),
    onSuccess: () => {
      toast({ text: `Calls of ${shown(draft.tool)} are let through.` })
      configChanged()
      onClose()
    },
  })
  const whyNot =
    may('makeGrant') ??
    wrong ??
    (tried === text && preview.data ? undefined : 'Look at the preview of this grant first.')
  const make = () => whyNot === undefined && !making.isPending && making.mutate()
  const line = (name: Exclude<keyof GrantDraft, 'pins' | 'loose'>, label: string, most: number, hint?: string) => (
    <Field label={label} hint={hint}>
      {(wiring) => (
        <Text {...wiring} value={draft[name]} most={most} onText={(value) => setDraft({ ...draft, [name]: value })} />
      )}
    </Field>
  )
  const area = (name: 'pins' | 'loose', label: string, hint: string) => (
    <Field label={label} hint={hint}>
      {(wiring) => (
        <textarea
          {...wiring}
          className="mono expression"
          value={draft[name]}
          rows={4}
          spellCheck={false}
          onChange={(e) => setDraft({ ...draft, [name]: e.target.value })}
        />
      )}
    </Field>
  )
  return (
    <Sheet
      title="New grant"
      onClose={onClose}
      actions={
        <>
          <Button whyNot={wrong} busy={preview.isFetching} onClick={() => setTried(text)}>
            Preview
          </Button>
          <Button kind="primary" command="send" whyNot={whyNot} busy={making.isPending} onClick={make}>
            Make the grant
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </>
      }
    >
      <Sending run={make} whyNot={whyNot} />
      <div className="stack">
        {making.isError && <ProblemNote error={making.error} what="Not made" />}
        {line('tool', 'Tool', 301, 'One tool, such as mail:send')}
        <div className="fields">
          {line('session_id', 'Session', 200, 'Empty for all.')}
          {line('automation_id', 'Automation', 200, 'Empty for all.')}
          {line('employee_id', 'Employee', 36, 'An id; empty for all.')}
        </div>
        {area('pins', 'Fixed arguments', 'JSON: pointers with their values, such as {"/currency": "EUR"}')}
        {area(
          'loose',
          'Arguments that may differ',
          'A pointer a line, such as /amount; “all” for every other argument.',
        )}
        <div className="fields">
          {line('expires_in', 'How long it holds', 40, 'Such as 30m, 8h or 2d; at most 90d.')}
          {line('reason', 'Reason', 500)}
        </div>
        {tried === text && preview.error && <ProblemNote error={preview.error} what="This cannot be granted" />}
        {tried === text && preview.data && <Preview of={preview.data} />}
        <Command of="countersign policy grant make KEY --pin POINTER=VALUE --expires-in TIME" />
      </div>
    </Sheet>
  )
}
