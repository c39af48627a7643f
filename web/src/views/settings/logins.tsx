import { useMutation, useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { get, post, request, type Schemas } from '../../lib/client'
import { useMay } from '../../lib/me'
import { queries } from '../../lib/query'
import { shown } from '../../lib/text'
import { Button, Chip, Loading, ProblemNote, Table, Time, toast } from '../../ui'

type Source = Schemas['Source']
type Revocation = 'done' | 'unsupported' | 'failed'

const key = ['config', 'sources']

const kept = 'source-login'

// keepAnswer moves the answer of an authorization server from the address to the tab: the history keeps it otherwise.
// Whoever wrote it, the server takes only one of a login that this person began.
function keepAnswer() {
  const given = new URLSearchParams(location.hash.slice(1))
  if (!given.get('source') || !given.get('login')) return
  sessionStorage.setItem(kept, given.toString())
  history.replaceState(history.state, '', location.pathname)
}

// takeAnswer returns the answer once.
function takeAnswer(): { source: string; answer: string } | undefined {
  const given = new URLSearchParams(sessionStorage.getItem(kept) ?? '')
  sessionStorage.removeItem(kept)
  const source = given.get('source')
  const answer = given.get('login')
  return source && answer ? { source, answer } : undefined
}

const pathOf = (id: string) => `/api/v1/sources/${encodeURIComponent(id)}`

// canLogIn reports whether a source can log in: an MCP server over HTTP.
const canLogIn = (one: Source) =>
  one.login !== null || (one.kind === 'mcp' && 'url' in (one.config as Record<string, unknown>))

// Logins lists the sources that log in with OAuth, begins their logins, and finishes the one that comes back.
// With only it is about one source.
export function Logins({ only }: { only?: string }) {
  const may = useMay()
  const readable = may('listSources') === undefined
  const whyNot = may('beginSourceLogin')
  useState(keepAnswer)
  const sources = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => get<{ items: Source[] }>('/api/v1/sources', { limit: 200 }, signal),
    enabled: readable,
  })
  const changed = () => void queries.invalidateQueries({ queryKey: key })
  const begin = useMutation({
    mutationFn: (one: Source) => post<Schemas['BegunSourceLogin']>(`${pathOf(one.source_id)}/login`, { page: true }),
    onSuccess: (begun) => location.assign(begun.url),
  })
  const finish = useMutation({
    mutationFn: (back: { source: string; answer: string }) =>
      post(`${pathOf(back.source)}/login/finish`, { answer: back.answer }),
    onSuccess: (_, back) => {
      toast({ text: `${shown(back.source)} is logged in.` })
      changed()
    },
  })
  const end = useMutation({
    mutationFn: (one: Source) => request<{ revocation: Revocation }>('DELETE', `${pathOf(one.source_id)}/login`),
    onSuccess: ({ body }, one) => {
      toast({ text: `${shown(one.source_id)} is logged out. ${revocations[body.revocation]}` })
      changed()
    },
  })
  const { mutate } = finish
  useEffect(() => {
    const back = readable ? takeAnswer() : undefined
    if (back) mutate(back)
  }, [readable, mutate])
  if (!readable) return null
  const rows = sources.data?.items.filter((one) => canLogIn(one) && (!only || one.source_id === only)) ?? []
  if (only && rows.length === 0) return null
  return (
    <section className="panel stack" aria-labelledby="settings-logins">
      <h2 id="settings-logins">Logins of sources</h2>
      {sources.isPending && <Loading what="sources" />}
      {sources.isError && <ProblemNote error={sources.error} onRetry={() => void sources.refetch()} />}
      {begin.isError && <ProblemNote error={begin.error} what="The login did not begin" />}
      {finish.isPending && <Loading what="the login" />}
      {finish.isError && (
        <ProblemNote error={finish.error} what={`${shown(finish.variables?.source ?? '')} is not logged in`} />
      )}
      {end.isError && <ProblemNote error={end.error} what="The source is still logged in" />}
      {sources.data && rows.length === 0 && (
        <p className="muted">Only MCP servers over HTTP log in, and no source is one.</p>
      )}
      {rows.length > 0 && (
        <Table
          caption="Logins of sources"
          rows={rows}
          keyOf={(one) => one.source_id}
          columns={[
            { name: 'Source', cell: (one) => shown(one.source_id) },
            { name: 'Login', cell: (one) => <State one={one} /> },
            { name: 'At', cell: (one) => one.login && shown(one.login.issuer), hideNarrow: true },
            { name: 'Since', cell: (one) => one.login && <Time at={one.login.login_at} />, hideNarrow: true },
            {
              name: 'Change',
              unnamed: true,
              cell: (one) => (
                <span className="row">
                  <Button onClick={() => begin.mutate(one)} busy={begin.isPending} whyNot={whyNot}>
                    Log in<span className="unseen"> {shown(one.source_id)}</span>
                  </Button>
                  {one.login && (
                    <Button onClick={() => end.mutate(one)} busy={end.isPending} whyNot={may('removeSourceLogin')}>
                      Log out<span className="unseen"> {shown(one.source_id)}</span>
                    </Button>
                  )}
                </span>
              ),
            },
          ]}
        />
      )}
      <p className="muted">
        On the command line: <code>countersign source login NAME</code>
      </p>
    </section>
  )
}

const revocations: Record<Revocation, string> = {
  done: 'Its tokens are revoked.',
  unsupported: 'Its server has no way to revoke tokens.',
  failed: 'Its server did not revoke the tokens.',
}

function State({ one: { login } }: { one: Source }) {
  if (!login) return <Chip>none</Chip>
  if (login.lost_at)
    return (
      <>
        <Chip tone="bad">lost</Chip> {shown(login.lost_reason ?? '')}
      </>
    )
  if (login.needed_scopes.length > 0)
    return (
      <>
        <Chip tone="waits">lacks scopes</Chip> {shown(login.needed_scopes.join(' '))}
      </>
    )
  return <Chip tone="good">logged in</Chip>
}
