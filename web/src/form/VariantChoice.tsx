// The choice between the variants of a union. The typed value is converted, and nothing is lost without a warning.
import { useState } from 'react'
import { get } from '../lib/pointer'
import { shown } from '../lib/text'
import { put } from './draft'
import type { Editing } from './editing'
import type { Field } from './plan'
import { type Converted, converted } from './variant'

export function VariantChoice({ field, id, editing }: { field: Field; id: string; editing: Editing }) {
  const { draft, onDraft, schema, choose } = editing
  const { pointer, variants, variant } = field
  const [pending, setPending] = useState<{ to: number; result: Converted }>()
  const name = shown(field.name || 'arguments')
  const change = (to: number, { value, open }: Converted) => {
    const next = put(draft, pointer, value)
    const typed = Object.fromEntries(open.map((at) => [pointer + at, { text: '', problem: 'needs a value' }]))
    setPending(undefined)
    choose(pointer, to)
    onDraft({ args: next.args, typed: { ...next.typed, ...typed } })
  }
  const start = (to: number) => {
    const unread = draft.typed[pointer]
    const result = converted(unread?.text || get(draft.args, pointer)!, variants[to]!, schema)
    if (result.lost.length) setPending({ to, result })
    else change(to, result)
  }
  return (
    <div className="arg variant">
      <div className="arg-head">
        <label htmlFor={id}>
          Variant of <bdi>{name}</bdi>
        </label>
      </div>
      <select id={id} value={pending?.to ?? variant ?? -1} onChange={(e) => start(Number(e.target.value))}>
        {variant === undefined && (
          <option value={-1} disabled>
            choose
          </option>
        )}
        {variants.map((one, i) => (
          <option key={i} value={i}>
            {shown(one.label)}
          </option>
        ))}
      </select>
      {pending && (
        <div className="banner tone-person" role="alert">
          <p>
            “{shown(variants[pending.to]!.label)}” has no place for:{' '}
            {pending.result.lost.map((text) => shown(text)).join(', ')}.
          </p>
          <p className="row">
            <button type="button" className="link" onClick={() => change(pending.to, pending.result)}>
              Change and lose it
            </button>
            <button type="button" className="link" onClick={() => setPending(undefined)}>
              Keep it
            </button>
          </p>
        </div>
      )}
    </div>
  )
}
