import { type ReactNode, useState } from 'react'
import { type ChangeOptions, useChange } from '../lib/change'
import { Problem } from '../lib/client'
import type { JsonObject } from '../lib/json'
import { shown } from '../lib/text'
import { Field } from '../ui'
import { type Draft, draftOf, type PlainField, saysNone, valueFrom, withNone } from './plain'
import { type Removal, Setting } from './setting'

export interface PlainSheetProps extends ChangeOptions<JsonObject> {
  title: string
  fields: readonly PlainField[]
  onClose: () => void
  // whyNot is why the person may not save.
  whyNot?: string | undefined
  // blank is the value that a new setting begins with.
  blank?: JsonObject
  remove?: Removal | undefined
  command?: string
  // fieldsOf returns the fields that a draft has; all of them, unless it is given.
  fieldsOf?: (draft: Draft) => readonly PlainField[]
  // check returns the problems of a value as a whole, by pointer.
  check?: (value: JsonObject) => Readonly<Record<string, string>>
  // children are shown below the fields, with the value as it is typed.
  children?: (value: JsonObject) => ReactNode
}

// PlainSheet changes a setting of few fields.
export function PlainSheet({ fields: all, fieldsOf, blank = {}, check, whyNot, children, ...rest }: PlainSheetProps) {
  const [draft, setDraft] = useState(() => draftOf(all, rest.base.value ?? blank))
  const fields = fieldsOf?.(draft) ?? all
  const { value, problems: typed } = valueFrom(fields, draft)
  const problems = { ...check?.(value), ...typed }
  const change = useChange<JsonObject>(rest)
  const refused = change.error instanceof Problem ? change.error.errors : []
  const wrong = (pointer: string) =>
    problems[pointer] ??
    refused.find((one) => one.pointer === pointer || one.pointer.startsWith(`${pointer}/`))?.message
  return (
    <Setting
      {...rest}
      change={change}
      value={value}
      hidden={all.filter(({ secret }) => secret).map(({ pointer }) => pointer)}
      whyNot={whyNot ?? (Object.keys(problems).length > 0 ? 'A field is not filled in correctly.' : undefined)}
      onTheirs={(theirs) => setDraft(draftOf(all, theirs ?? {}))}
    >
      {fields.map((field) => (
        <Input
          key={field.pointer}
          field={field}
          draft={draft}
          // A field that is still empty is not complained of while the person is on the way to it.
          error={draft[field.pointer] || refused.length > 0 ? wrong(field.pointer) : undefined}
          onChange={setDraft}
        />
      ))}
      {children?.(value)}
    </Setting>
  )
}

interface InputProps {
  field: PlainField
  draft: Draft
  error: string | undefined
  onChange: (draft: Draft) => void
}

function Input({ field: { pointer, label, kind, choices, hint, absent, none }, draft, error, onChange }: InputProps) {
  const text = draft[pointer] ?? ''
  const put = (typed: string) => onChange({ ...draft, [pointer]: typed })
  if (kind === 'check')
    return (
      <label className="row">
        <input type="checkbox" checked={text === 'true'} onChange={(e) => put(String(e.target.checked))} /> {label}
      </label>
    )
  const putNone = (empty: boolean) => onChange(withNone(draft, pointer, empty))
  const off = none !== undefined && saysNone(draft, pointer)
  return (
    <div className="stack">
      <Field label={label} hint={hint} error={error && shown(error)}>
        {(wiring) =>
          kind === 'choice' ? (
            <select {...wiring} value={text} onChange={(e) => put(e.target.value)}>
              {absent !== undefined && <option value="">{absent}</option>}
              {choices?.map((choice) => (
                <option key={choice}>{choice}</option>
              ))}
            </select>
          ) : kind === 'lines' || kind === 'json' ? (
            <textarea
              {...wiring}
              className="mono"
              spellCheck={false}
              disabled={off}
              value={text}
              onChange={(e) => put(e.target.value)}
            />
          ) : (
            <input
              {...wiring}
              inputMode={kind === 'number' ? 'decimal' : undefined}
              autoComplete="off"
              value={text}
              onChange={(e) => put(e.target.value)}
            />
          )
        }
      </Field>
      {none !== undefined && (
        <label className="row">
          <input type="checkbox" checked={off} onChange={(e) => putNone(e.target.checked)} /> {none}
        </label>
      )}
    </div>
  )
}
