import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { personOf } from '../../lib/actor'
import { type Problem, request, type Schemas } from '../../lib/client'
import { useMay, useMe } from '../../lib/me'
import { type Whole, whole } from '../../lib/pages'
import { useParams } from '../../lib/params'
import { queries } from '../../lib/query'
import { shown } from '../../lib/text'
import { useNow } from '../../lib/time'
import { Ask, Button, Chip, Command, Empty, Loading, ProblemNote, Shown, Table, Time, toast } from '../../ui'
import { Export } from '../../ui/export'
import { MakeToken, RotateToken } from './make'
import { NarrowToken } from './narrow'
import { useOperators } from './operators'
import { purpose, rolesOf, stateOf } from './scopes'
import { SecretOnce } from './secret'

type Token = Schemas['Token']

const to = '/api/v1/tokens'
const key = ['config', 'tokens']
const changed = () => void queries.invalidateQueries({ queryKey: key })

const ends =
  'It is refused everywhere within ten seconds, and so are the browsers that logged in with it. What it proposed ' +
  'stays. This cannot be taken back.'

export function Tokens() {
  const may = useMay()
  const me = useMe().data
  const now = useNow(60_000)
  const [params, change] = useParams()
  const all = params.get('all') === 'true'
  const people = useOperators().data?.items
  const tokens = useQuery<Whole<Token>, Problem>({
    queryKey: [...key, all],
    queryFn: ({ signal }) => whole<Token>(to, { all: all ? 'true' : undefined }, signal),
  })
  const [ending, setEnding] = useState<Token>()
  const [secret, setSecret] = useState<{ name: string; secret: string }>()
  const rows = tokens.data?.items
  const rotated = rows?.find((row) => row.token_id === params.get('rotate'))
  const narrowed = rows?.find((row) => row.token_id === params.get('narrow'))
  const close = () => change({ make: undefined, rotate: undefined, narrow: undefined }, { replace: true })
  const done = ({ name, token }: Schemas['IssuedToken']) => {
    setSecret({ name, secret: token })
    changed()
    close()
  }
  // Nobody ends or rotates more than they make.
  const whyNot = (row: Token, operation: 'revokeToken' | 'rotateToken' | 'narrowToken') =>
    may(operation) ??
    (stateOf(row, now) === 'valid' ? undefined : 'It has ended.') ??
    (me && rolesOf(me.role).includes(row.role) ? undefined : 'Only owners change tokens of this role.')
  return (
    <>
      <div className="row">
        <label className="tick grow">
          <input
            type="checkbox"
            checked={all}
            onChange={(event) => change({ all: event.target.checked ? 'true' : undefined })}
          />
          Also revoked and expired ones
        </label>
        {rows && <Export name="tokens" to={to} query={{ all: all ? 'true' : undefined }} />}
        <Button kind="primary" whyNot={may('issueToken')} onClick={() => change({ make: 'true' })}>
          Make a token
        </Button>
      </div>
      {tokens.isPending && <Loading what="tokens" />}
      {tokens.error && (
        <ProblemNote error={tokens.error} what="The tokens were not loaded" onRetry={() => void tokens.refetch()} />
      )}
      {rows?.length === 0 && (
        <Empty title="No tokens">
          <p>Agents and programs show a token. Make one here, or in a terminal:</p>
          <pre className="json" tabIndex={0}>
            countersign token create --role agent --name "mail agent" --tool "mail:*" --expires-in 30d
          </pre>
        </Empty>
      )}
      {rows && rows.length > 0 && (
        <div className="panel">
          <Table
            caption="Tokens"
            rows={rows}
            keyOf={(row) => row.token_id}
            columns={[
              { name: 'Name', cell: (row) => <Shown text={row.name} /> },
              { name: 'Role', cell: (row) => row.role },
              { name: 'State', cell: (row) => <State one={row} now={now} /> },
              { name: 'For', cell: (row) => <Purpose one={row} people={people} />, hideNarrow: true },
              {
                name: 'Made',
                cell: (row) => (
                  <>
                    <Time at={row.created_at} />
                    {row.issued_by && <span className="muted"> by {shown(personOf(row.issued_by))}</span>}
                  </>
                ),
                hideNarrow: true,
              },
              { name: 'Used', cell: (row) => <Time at={row.last_used_at} /> },
              { name: 'Ends', cell: (row) => <Time at={row.revoked_at ?? row.expires_at} />, hideNarrow: true },
              {
                name: 'Change',
                unnamed: true,
                cell: (row) => (
                  <span className="row nowrap">
                    <Button whyNot={whyNot(row, 'narrowToken')} onClick={() => change({ narrow: row.token_id })}>
                      Narrow<span className="unseen"> {shown(row.name)}</span>
                    </Button>
                    <Button whyNot={whyNot(row, 'rotateToken')} onClick={() => change({ rotate: row.token_id })}>
                      Rotate<span className="unseen"> {shown(row.name)}</span>
                    </Button>
                    <Button whyNot={whyNot(row, 'revokeToken')} onClick={() => setEnding(row)}>
                      End<span className="unseen"> {shown(row.name)}</span>
                    </Button>
                  </span>
                ),
              },
            ]}
          />
        </div>
      )}
      {tokens.data?.cut && <p className="muted">Not all tokens are listed: the export has them.</p>}
      <Command of="countersign token list" />
      {params.get('make') === 'true' && !may('issueToken') && <MakeToken onDone={done} onClose={close} />}
      {rotated && !whyNot(rotated, 'rotateToken') && <RotateToken one={rotated} onDone={done} onClose={close} />}
      {narrowed && !whyNot(narrowed, 'narrowToken') && (
        <NarrowToken
          one={narrowed}
          onDone={() => {
            toast({ text: `The token of ${shown(narrowed.name)} is narrowed.` })
            changed()
            close()
          }}
          onClose={close}
        />
      )}
      {secret && <SecretOnce {...secret} onClose={() => setSecret(undefined)} />}
      {ending && (
        <Ask
          title={`End the token of ${shown(ending.name)}?`}
          text={ends}
          label="End it"
          note="no"
          hint=""
          send={() => request('DELETE', `${to}/${ending.token_id}`)}
          onDone={() => {
            toast({ text: `The token of ${shown(ending.name)} ends within ten seconds.` })
            changed()
          }}
          onClose={() => setEnding(undefined)}
        />
      )}
    </>
  )
}

function State({ one, now }: { one: Token; now: number }) {
  const state = stateOf(one, now)
  const overlap = one.previous_until && Date.parse(one.previous_until) > now
  return (
    <>
      <Chip tone={state === 'valid' ? 'good' : 'calm'}>{state}</Chip>
      {overlap && (
        <span className="muted">
          {' '}
          old secret ends <Time at={one.previous_until} />
        </span>
      )}
    </>
  )
}

// Purpose shows the person behind a token, and its scopes and tools.
function Purpose({ one, people }: { one: Token; people: readonly Schemas['Operator'][] | undefined }) {
  const person = one.operator_id && (people?.find((row) => row.operator_id === one.operator_id)?.name ?? 'a person')
  const parts = [...(person ? [`as ${person}`] : []), ...purpose(one)]
  return (
    <div className="wide-cell small">
      {parts.length === 0 ? <span className="muted">all that the role may</span> : <Shown text={parts.join(' · ')} />}
    </div>
  )
}
