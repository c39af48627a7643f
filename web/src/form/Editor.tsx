// One field to change, without fields inside.
import { type SyntheticEvent, use, useRef, useState } from 'react'
import { type Json, same, stringify } from '../lib/json'
import { get } from '../lib/pointer'
import { shown } from '../lib/text'
import { useReadable } from './beside'
import { add, put, take, type } from './draft'
import { Complaints, type Editing, nameOf, useTyped } from './editing'
import { Marks, MarksAt, marksAt } from './marks'
import type { Field } from './plan'
import { HiddenMark } from './text'

interface Props {
  field: Field
  id: string
  editing: Editing
}

// Editor shows a field with its name, what the schema asks of it, and what does not fit.
export function Editor({ field: planned, id, editing }: Props) {
  const { draft, complaints } = editing
  const wrong = draft.typed[planned.pointer]
  // What a person still has to choose or to write is null until then.
  const open = wrong !== undefined && planned.value === null && ['number', 'boolean', 'choice'].includes(planned.writes)
  const field = open ? { ...planned, kind: planned.writes } : planned
  const bad = wrong !== undefined || complaints.some((c) => c.pointer === field.pointer)
  const typing = field.value !== undefined && field.kind !== 'const' && field.kind !== 'null'
  const name = <bdi>{shown(nameOf(field) || 'arguments')}</bdi>
  const marked = marksAt(use(Marks), field.pointer).length > 0
  const notes = [marked && `${id}-m`, field.description && `${id}-d`, field.hints.length && `${id}-h`, bad && `${id}-c`]
    .filter(Boolean)
    .join(' ')
  return (
    <div className={bad ? 'arg bad' : 'arg'} data-pointer={field.pointer}>
      <div className="arg-head">
        {typing ? <label htmlFor={id}>{name}</label> : <strong>{name}</strong>}
        {field.required && <span className="faint">required</span>}
        {!field.known && <span className="faint">not in the schema</span>}
        {field.hints.length > 0 && (
          <span className="faint" id={`${id}-h`}>
            {shown(field.hints.join(' · '))}
          </span>
        )}
        {field.kind === 'escaped' && <HiddenMark />}
        <Tools field={field} editing={editing} />
      </div>
      {field.description && (
        <p className="faint" id={`${id}-d`}>
          {shown(field.description)}
        </p>
      )}
      {field.value === undefined ? (
        <Absent field={field} editing={editing} />
      ) : (
        <Control field={field} id={id} editing={editing} notes={notes} bad={bad} />
      )}
      {marked && (
        <p id={`${id}-m`}>
          <MarksAt of={field.pointer} />
        </p>
      )}
      {wrong && (
        <p className="complaint" id={`${id}-c`}>
          {shown(wrong.problem)}
        </p>
      )}
      {!wrong && <Complaints of={field.pointer} id={`${id}-c`} complaints={complaints} />}
    </div>
  )
}

function Absent({ field, editing }: Omit<Props, 'id'>) {
  return (
    <span className="blank">
      not sent{' '}
      <button type="button" className="link" onClick={() => editing.onDraft(add(editing.draft, field, editing.schema))}>
        Add<span className="unseen"> {shown(field.name)}</span>
      </button>
    </span>
  )
}

function Tools({ field, editing }: { field: Field; editing: Editing }) {
  const { draft, onDraft, asText, toggle } = editing
  if (field.value === undefined || field.pointer === '') {
    return asText.has(field.pointer) && !draft.typed[field.pointer] ? (
      <button type="button" className="link" onClick={() => toggle(field.pointer)}>
        As fields
      </button>
    ) : null
  }
  const name = <span className="unseen"> {shown(field.name)}</span>
  return (
    <span className="tools">
      {asText.has(field.pointer) && !draft.typed[field.pointer] && (
        <button type="button" className="link" onClick={() => toggle(field.pointer)}>
          As fields{name}
        </button>
      )}
      {field.nullable && field.kind !== 'null' && (
        <button type="button" className="link" onClick={() => onDraft(put(draft, field.pointer, null))}>
          Set to null{name}
        </button>
      )}
      <button type="button" className="link" onClick={() => onDraft(take(draft, field.pointer))}>
        Remove{name}
      </button>
    </span>
  )
}

type ControlProps = Props & { notes: string; bad: boolean }

function Control(props: ControlProps) {
  const { field, editing } = props
  switch (field.kind) {
    case 'const':
      return <code>{shown(stringify(field.value))}</code>
    case 'null':
      return (
        <span className="blank">
          null{' '}
          <button
            type="button"
            className="link"
            onClick={() => editing.onDraft(add(editing.draft, field, editing.schema))}
          >
            Write a value<span className="unseen"> for {shown(field.name)}</span>
          </button>
        </span>
      )
    case 'choice':
      return (
        <Choice
          {...props}
          options={field.options.map((o) => ({ value: o.value, label: o.label ?? stringify(o.value) }))}
        />
      )
    case 'boolean':
      return (
        <Choice
          {...props}
          options={[
            { value: true, label: 'true' },
            { value: false, label: 'false' },
          ]}
        />
      )
    default:
      return <Typing {...props} />
  }
}

function Choice({
  field,
  id,
  editing,
  notes,
  bad,
  options,
}: ControlProps & { options: { value: Json; label: string }[] }) {
  const open = editing.draft.typed[field.pointer] !== undefined
  const at = open ? -1 : options.findIndex((o) => same(o.value, field.value))
  return (
    <select
      id={id}
      value={at}
      aria-describedby={notes || undefined}
      aria-invalid={bad || undefined}
      onChange={(e) => editing.onDraft(put(editing.draft, field.pointer, options[Number(e.target.value)]!.value))}
    >
      {at < 0 && (
        <option value={-1} disabled>
          choose
        </option>
      )}
      {options.map((o, i) => (
        <option key={i} value={i}>
          {shown(o.label)}
        </option>
      ))}
    </select>
  )
}

// oneLine is how long a text is that is written in a single line.
const oneLine = 120

function Typing({ field, id, editing, notes, bad }: ControlProps) {
  const [text, setText] = useTyped(field, editing.draft)
  const readable = useReadable(field, get(editing.draft.args, field.pointer.slice(0, field.pointer.lastIndexOf('/'))))
  const [several, setSeveral] = useState(field.long || text.length > oneLine || text.includes('\n'))
  const height = useRef(0)
  const rows = Math.min(24, Math.max(height.current, text.split('\n').length, Math.ceil(text.length / 90)))
  height.current = rows
  const onChange = (value: string) => {
    setText(value)
    editing.onDraft(type(editing.draft, field.pointer, field.kind, value))
  }
  const shared = {
    id,
    value: text,
    'aria-describedby': notes || undefined,
    'aria-invalid': bad || undefined,
    spellCheck: false,
    autoComplete: 'off',
  }
  const beside = readable !== undefined && <span className="beside">{readable}</span>
  if (field.kind === 'number')
    return (
      <>
        <input {...shared} type="text" inputMode="decimal" onChange={(e) => onChange(e.target.value)} />
        {beside}
      </>
    )
  if (field.kind === 'text' && !several && !text.includes('\n')) {
    // An input would lose the line breaks of pasted text: the field becomes one of several lines.
    const insert = (event: SyntheticEvent<HTMLInputElement>, data: DataTransfer) => {
      const put = data.getData('text/plain')
      if (!/[\r\n]/.test(put)) return
      event.preventDefault()
      const { selectionStart, selectionEnd } = event.currentTarget
      onChange(
        text.slice(0, selectionStart ?? text.length) +
          put.replaceAll(/\r\n?/g, '\n') +
          text.slice(selectionEnd ?? text.length),
      )
      setSeveral(true)
    }
    return (
      <>
        <input
          {...shared}
          type="text"
          onPaste={(e) => insert(e, e.clipboardData)}
          onDrop={(e) => insert(e, e.dataTransfer)}
          onChange={(e) => onChange(e.target.value)}
        />
        {beside}
        {!field.hints.length && (
          <button type="button" className="link small" onClick={() => setSeveral(true)}>
            Several lines<span className="unseen"> for {shown(field.name)}</span>
          </button>
        )}
      </>
    )
  }
  return (
    <textarea
      {...shared}
      rows={rows}
      className={field.kind === 'text' ? undefined : 'code'}
      onChange={(e) => onChange(e.target.value)}
    />
  )
}
