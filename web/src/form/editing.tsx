// What the fields of a form share while a person edits them.
import { useEffect, useRef, useState } from 'react'
import { type Json, parse, same } from '../lib/json'
import { shown } from '../lib/text'
import type { Draft } from './draft'
import { type Field, face, read } from './plan'

// Complaint is what does not fit at a place: advice, or what the server said.
export interface Complaint {
  pointer: string
  detail: string
}

// Editing is what all fields of a form share.
export interface Editing {
  schema: Json
  draft: Draft
  onDraft: (draft: Draft) => void
  complaints: readonly Complaint[]
  asText: ReadonlySet<string>
  toggle: (pointer: string) => void
  // choose says which variant a value is that is still open.
  choose: (pointer: string, variant: number) => void
}

// nameOf returns how a field is called: its key or number, with what the schema calls it.
export function nameOf(field: Field): string {
  const title = titleOf(field)
  return title ? `${field.name} (${title})` : field.name
}

// titleOf returns the schema's title of a field, where that is more than its name.
export function titleOf({ name, title }: Field): string | undefined {
  const plain = (text: string) => text.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, '')
  return title && plain(title) !== plain(name) ? title : undefined
}

// Complaints says what does not fit at a place.
export function Complaints({ of, id, complaints }: { of: string; id: string; complaints: readonly Complaint[] }) {
  const mine = complaints.filter((c) => c.pointer === of)
  return mine.length ? (
    <p className="complaint" id={id}>
      {mine.map((c) => shown(c.detail)).join('; ')}
    </p>
  ) : null
}

// useTyped keeps what is typed into a field as long as it means the field's value, so that a text is not written anew
// under the hand.
export function useTyped(field: Field, draft: Draft): [string, (text: string) => void] {
  const [last, setLast] = useState('')
  const wrong = draft.typed[field.pointer]
  if (wrong) return [wrong.text, setLast]
  return [means(field, last) ? last : face(field), setLast]
}

function means(field: Field, text: string): boolean {
  const result = read(field.kind, text, parse)
  return 'value' in result && same(result.value, field.value)
}

// ComplaintSummary lists the refusals of the server, and takes the focus when it comes.
export function ComplaintSummary({ title, complaints }: { title: string; complaints: readonly Complaint[] }) {
  const ref = useRef<HTMLDivElement>(null)
  useEffect(() => ref.current?.focus(), [complaints])
  return (
    <div ref={ref} tabIndex={-1} role="alert" className="banner bad">
      <strong>{shown(title)}</strong>
      <ul>
        {complaints.map((c, i) => (
          <li key={i}>
            <code>{shown(c.pointer || '/')}</code> {shown(c.detail)}
          </li>
        ))}
      </ul>
    </div>
  )
}
