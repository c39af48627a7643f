import { type ReactNode, useState } from 'react'
import { type ChangeOptions, useChange } from '../lib/change'
import { Problem } from '../lib/client'
import type { Json, JsonObject } from '../lib/json'
import { shown } from '../lib/text'
import { Button, Field, ProblemNote, Sheet } from '../ui'
import { Sending } from '../ui/ask'
import { Collision } from './collision'
import { type Draft, draftOf, type PlainField, saysNone, valueFrom, withNone } from './plain'

export interface PlainSheetProps extends Omit<ChangeOptions<JsonObject>, 'onSaved'> {
  title: string
  fields: readonly PlainField[]
  onSaved: (value: JsonObject | null) => void
  onClose: () => void
  // whyNot is why the person may not save.
  whyNot?: string | undefined
  // remove is the label of the button that removes what is stored, and whyNotRemove why the person may not.
  remove?: string
  whyNotRemove?: string | undefined
  // fieldsOf returns the fields that a draft has; all of them, unless it is given.
  fieldsOf?: (draft: Draft) => readonly PlainField[]
  // check returns the problems of a value as a whole, by pointer.
  check?: (value: JsonObject) => Readonly<Record<string, string>>
  // children are shown below the fields, with the value as it is typed.
  children?: (value: JsonObject) => ReactNode
}

// PlainSheet changes a setting in a sheet. Where somebody else changed it meanwhile, both versions are shown.
export function PlainSheet({
  title,
  fields: all,
  fieldsOf,
  check,
  onClose,
  whyNot,
  remove,
  whyNotRemove,
  children,
  ...change
}: PlainSheetProps) {
  const [draft, setDraft] = useState(() => draftOf(all, change.base.value ?? {}))
  const fields = fieldsOf?.(draft) ?? all
  const { value, problems: typed } = valueFrom(fields, draft)
  const problems = { ...check?.(value), ...typed }
  const { save, busy, error, collision, keep, drop } = useChange<JsonObject>(change)
  const refused = error instanceof Problem ? error.errors : []
  const wrong = (pointer: string) =>
    problems[pointer] ??
    refused.find((one) => one.pointer === pointer || one.pointer.startsWith(`${pointer}/`))?.message
  const why =
    whyNot ??
    (collision && 'Choose a version first.') ??
    (Object.keys(problems).length > 0 ? 'A field is not filled in correctly.' : undefined)
  const submit = () => !why && save(value)
  return (
    <Sheet
      title={title}
      onClose={onClose}
      actions={
        <>
          {remove && (
            <Button
              kind="danger"
              busy={busy}
              whyNot={whyNotRemove ?? (collision && 'Choose a version first.')}
              onClick={() => save(null)}
            >
              {remove}
            </Button>
          )}
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" command="send" busy={busy} whyNot={why} onClick={submit}>
            Save
          </Button>
        </>
      }
    >
      <div className="stack">
        <Sending run={submit} whyNot={why} />
        {collision && (
          <Collision
            of={collision}
            onKeep={keep}
            onDrop={() => setDraft(draftOf(all, (drop() as Json | null) ?? {}))}
          />
        )}
        {error !== null && <ProblemNote error={error} what="Nothing was saved" />}
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
      </div>
    </Sheet>
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
