// A change of a setting that other people may change at the same time.
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { get, Problem } from './client'
import type { Json } from './json'
import { configChanged } from './query'

// Version is a stored value with its ETag, without the quotes. The value is null where nothing is stored.
export interface Version<T extends Json> {
  value: T | null
  etag: string
}

// Collision is a change that was refused because the stored value is another one by now.
export interface Collision<T extends Json> {
  was: T | null
  theirs: T | null
  // mine is null where the change removes the value.
  mine: T | null
}

export interface ChangeOptions<T extends Json> {
  // base is the version that the draft began with. A later one is not looked at while the component is mounted: events
  // read the stored value anew under a draft, which would then replace a change that nobody has seen.
  base: Version<T>
  // read returns the stored version at the address of a value, after a refusal.
  read: (value: T | null) => Promise<Version<T>>
  // write stores a value, or removes it where the value is null. ifMatch is that of a request (lib/client).
  write: (value: T | null, ifMatch: string) => Promise<unknown>
  onSaved: (value: T | null) => void
}

// versionAt reads a value by its address; nothing is stored where the API finds none.
export async function versionAt<S extends { etag: string }, T extends Json>(
  to: string,
  read: (stored: S) => T,
): Promise<Version<T>> {
  try {
    const stored = await get<S>(to)
    return { value: read(stored), etag: stored.etag }
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return { value: null, etag: '' }
    throw error
  }
}

// matchOf returns the precondition of a change that is based on a version; '*' where nothing is stored.
export const matchOf = ({ etag }: Version<Json>): string => (etag ? `"${etag}"` : '*')

// settle sends a change that is based on a version. It returns the stored version where that is another one by now, and
// undefined where the change is stored.
export async function settle<T extends Json>(
  base: Version<T>,
  value: T | null,
  { read, write }: Pick<ChangeOptions<T>, 'read' | 'write'>,
): Promise<Version<T> | undefined> {
  try {
    await write(value, matchOf(base))
    return undefined
  } catch (error) {
    if (error instanceof Problem && error.status === 412) return read(value)
    throw error
  }
}

// useChange writes a value with the precondition that nobody else changed it. Where somebody did, `collision` has both
// versions, and nothing is stored until the person has chosen one: `keep` makes the stored version the base, so that
// the next save replaces what the person has seen; `drop` returns the stored value and makes it the base.
export function useChange<T extends Json>({ base: first, read, write, onSaved }: ChangeOptions<T>) {
  const [base, setBase] = useState(first)
  const [collision, setCollision] = useState<{ theirs: Version<T>; shown: Collision<T> }>()
  const sending = useMutation<Version<T> | undefined, unknown, T | null>({
    mutationFn: (value) => settle(base, value, { read, write }),
    onSuccess: (theirs, value) => {
      configChanged()
      if (!theirs) return onSaved(value)
      setCollision({ theirs, shown: { was: base.value, theirs: theirs.value, mine: value } })
    },
  })
  const take = () => {
    if (collision) setBase(collision.theirs)
    setCollision(undefined)
    return collision?.theirs.value ?? null
  }
  return {
    // base is the stored value that the change is based on.
    base: base.value,
    save: (value: T | null) => {
      if (!sending.isPending && !collision) sending.mutate(value)
    },
    busy: sending.isPending,
    error: sending.error,
    collision: collision?.shown,
    // whyNot is why nothing can be saved now.
    whyNot: collision && 'Choose a version first.',
    keep: () => void take(),
    drop: take,
  }
}

export type Change<T extends Json> = ReturnType<typeof useChange<T>>
