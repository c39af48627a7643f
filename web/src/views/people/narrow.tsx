// Rights taken from a token that exists.
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { post, type Schemas } from '../../lib/client'
import { lines } from '../../lib/lines'
import { shown } from '../../lib/text'
import { Button, Command, Field, ProblemNote, Sending, Sheet } from '../../ui'
import { type Scope, scopesOf } from './scopes'

type Token = Schemas['Token']

const spans = [
  ['', 'as before'],
  ['1h', 'in 1 hour'],
  ['1d', 'in 1 day'],
  ['30d', 'in 30 days'],
  ['90d', 'in 90 days'],
] as const

// changed returns a list that was edited; undefined where it is as before.
const changed = (now: readonly string[], was: readonly string[] | undefined) =>
  now.join('\n') === (was ?? []).join('\n') ? undefined : now

// NarrowToken takes scopes, tools and validity from a token. The server refuses rights that the token lacks.
export function NarrowToken({ one, onDone, onClose }: { one: Token; onDone: () => void; onClose: () => void }) {
  const had = scopesOf(one.role).filter(({ scope }) => !one.scopes || one.scopes.includes(scope))
  const [kept, setKept] = useState<ReadonlySet<Scope>>(new Set(had.map(({ scope }) => scope)))
  const [tools, setTools] = useState((one.tools ?? []).join('\n'))
  const [span, setSpan] = useState('')
  const body = {
    scopes: kept.size === had.length ? undefined : had.map(({ scope }) => scope).filter((scope) => kept.has(scope)),
    tools: changed(lines(tools), one.tools),
    expires_in: span || undefined,
  }
  const sending = useMutation<unknown, unknown, void>({
    mutationFn: () => post(`/api/v1/tokens/${one.token_id}/narrow`, body),
    onSuccess: onDone,
  })
  const whyNot =
    kept.size === 0
      ? 'Keep a scope, or end the token.'
      : body.tools?.length === 0
        ? 'Keep a tool, or end the token.'
        : Object.values(body).every((part) => part === undefined)
          ? 'Nothing is changed yet.'
          : undefined
  const narrow = () => sending.mutate()
  return (
    <Sheet
      title={`Narrow the token of ${shown(one.name)}`}
      onClose={onClose}
      actions={
        <>
          <Button kind="primary" command="send" whyNot={whyNot} busy={sending.isPending} onClick={narrow}>
            Narrow it
          </Button>
          <Button onClick={onClose}>Cancel</Button>
        </>
      }
    >
      <Sending run={narrow} whyNot={whyNot} />
      <div className="stack">
        <p>It keeps its secret. What you take away cannot be given back to it.</p>
        <fieldset className="scopes">
          <legend>Scopes that it keeps</legend>
          {had.map(({ scope, text }) => (
            <label key={scope}>
              <input
                type="checkbox"
                checked={kept.has(scope)}
                onChange={(event) => {
                  const next = new Set(kept)
                  if (event.target.checked) next.add(scope)
                  else next.delete(scope)
                  setKept(next)
                }}
              />
              <span>
                <code>{scope}</code> <span className="muted small">{text}</span>
              </span>
            </label>
          ))}
        </fieldset>
        <Field
          label="Tools that it keeps"
          hint={one.tools ? 'One pattern a line.' : 'One pattern a line, such as mail:*. Empty: all tools, as before.'}
        >
          {(wiring) => (
            <textarea
              {...wiring}
              className="mono"
              value={tools}
              spellCheck={false}
              onChange={(event) => setTools(event.target.value)}
            />
          )}
        </Field>
        <Field label="The token ends">
          {(wiring) => (
            <select {...wiring} value={span} onChange={(event) => setSpan(event.target.value)}>
              {spans.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          )}
        </Field>
        {sending.error !== null && <ProblemNote error={sending.error} what="Not narrowed" />}
        <Command of="countersign token narrow TOKEN-ID --scope SCOPE --tool PATTERN --expires-in DURATION" />
      </div>
    </Sheet>
  )
}
