// Names in arguments that may be taken for others, each where it is.
import { createContext, use, useMemo } from 'react'
import type { Schemas } from '../lib/client'
import { below } from '../lib/pointer'
import { shown } from '../lib/text'
import { Chip } from '../ui'

export type Mark = NonNullable<Schemas['Action']['lookalikes']>[number]

type ByPointer = ReadonlyMap<string, readonly Mark[]>

// Marks holds the marks of the arguments that are shown, by their pointers.
export const Marks = createContext<ByPointer>(new Map())

// useMarks returns marks by their pointers.
export function useMarks(all: readonly Mark[] | undefined): ByPointer {
  return useMemo(() => Map.groupBy(all ?? [], (mark) => mark.pointer), [all])
}

// marksAt returns the marks of a value, also those inside of it.
export function marksAt(marks: ByPointer, of: string): Mark[] {
  return [...marks].flatMap(([pointer, at]) => (below(pointer, of) ? at : []))
}

// MarksAt shows the marks of a value; with inside those inside of it as well.
export function MarksAt({ of, inside = true }: { of: string; inside?: boolean }) {
  const marks = use(Marks)
  return (inside ? marksAt(marks, of) : (marks.get(of) ?? [])).map((mark, i) => (
    <Chip key={i} tone="drift" icon="triangle">
      <bdi>
        {mark.pointer !== of && <code>{shown(mark.pointer.slice(of.length))} </code>}
        <strong>{shown(mark.value)}</strong> {shown(mark.text)}
      </bdi>
    </Chip>
  ))
}
