// A setting that is changed in a sheet: what changes is shown before it is saved, and both versions where two people
// changed it.
import { type ReactNode, useState } from 'react'
import type { Change } from '../lib/change'
import type { Json } from '../lib/json'
import { diff } from '../lib/pointer'
import { Button, Command, Dialog, ProblemNote, Sending, Sheet } from '../ui'
import { Collision } from './collision'
import { Changes } from './text'

export interface Removal {
  // word is the verb of the button, and name the setting in the question.
  word: string
  name: string
  // text is the consequence.
  text: ReactNode
  whyNot: string | undefined
}

interface SettingProps<T extends Json> {
  title: string
  change: Change<T>
  // value is the value of the draft, null where it stores nothing, and undefined where it has none.
  value: T | null | undefined
  // whyNot is why the value cannot be saved.
  whyNot: string | undefined
  // dirty reports whether something outside the value is changed, such as a secret.
  dirty?: boolean
  // hidden are the pointers of secrets, whose values are not repeated.
  hidden?: readonly string[]
  // onTheirs replaces the draft.
  onTheirs: (theirs: T | null) => void
  remove?: Removal | undefined
  command?: string
  onClose: () => void
  children: ReactNode
}

export function Setting<T extends Json>(props: SettingProps<T>) {
  const { title, change, value, whyNot, dirty, hidden, onTheirs, remove, command, onClose, children } = props
  const [removing, setRemoving] = useState(false)
  const changes = value === undefined ? [] : diff(change.base ?? undefined, value ?? undefined)
  const off = change.whyNot ?? whyNot ?? (changes.length > 0 || dirty ? undefined : 'Nothing is changed.')
  const save = () => off === undefined && value !== undefined && change.save(value)
  return (
    <Sheet
      title={title}
      onClose={onClose}
      actions={
        <>
          {remove && change.base !== null && (
            <Button
              kind="danger"
              whyNot={remove.whyNot ?? change.whyNot}
              busy={change.busy}
              onClick={() => setRemoving(true)}
            >
              {remove.word}…
            </Button>
          )}
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" command="send" whyNot={off} busy={change.busy} onClick={save}>
            Save
          </Button>
        </>
      }
    >
      <Sending run={save} whyNot={off} />
      <div className="stack">
        {change.collision && (
          <Collision
            of={change.collision}
            hidden={hidden}
            onKeep={change.keep}
            onDrop={() => onTheirs(change.drop())}
          />
        )}
        {change.error !== null && <ProblemNote error={change.error} what="Not saved" />}
        {children}
        <BeforeAfter change={change} value={value} hidden={hidden} />
        {command && <Command of={command} />}
      </div>
      {removing && remove && (
        <Dialog
          title={`${remove.word} ${remove.name}?`}
          onClose={() => setRemoving(false)}
          actions={
            <>
              <Button onClick={() => setRemoving(false)}>Keep it</Button>
              <Button
                kind="danger"
                onClick={() => {
                  setRemoving(false)
                  change.save(null)
                }}
              >
                {remove.word}
              </Button>
            </>
          }
        >
          <div className="stack">{remove.text}</div>
        </Dialog>
      )}
    </Sheet>
  )
}

// BeforeAfter shows how a stored value would change.
export function BeforeAfter<T extends Json>({
  change,
  value,
  hidden = [],
}: {
  change: Change<T>
  value: T | null | undefined
  hidden?: readonly string[] | undefined
}) {
  if (change.base === null || change.collision || value === undefined || value === null) return null
  const changes = diff(change.base, value).filter(({ pointer }) => !hidden.includes(pointer))
  if (changes.length === 0) return null
  return (
    <section aria-label="Before and after">
      <h3>Before and after</h3>
      <Changes changes={changes} />
    </section>
  )
}

// parsed returns what make returns, or the message of the RangeError that it throws.
export function parsed<T>(make: () => T): { value?: T; wrong?: string } {
  try {
    return { value: make() }
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return { wrong: error.message }
  }
}
