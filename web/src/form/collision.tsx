// Two people changed the same setting: both versions, of which one is taken.
import type { Collision as Both } from '../lib/change'
import type { Json } from '../lib/json'
import { diff } from '../lib/pointer'
import { Button } from '../ui/button'
import { Icon } from '../ui/icon'
import { Changes } from './text'

const absent = (value: Json | null): Json | undefined => value ?? undefined

// Collision shows the other person's change and yours, and asks which of them goes on.
export function Collision<T extends Json>({
  of: { was, theirs, mine },
  hidden = [],
  onKeep,
  onDrop,
}: {
  of: Both<T>
  // hidden are the pointers of secrets, which are not shown.
  hidden?: readonly string[] | undefined
  // onKeep keeps the person's own version, to be saved over the other one.
  onKeep: () => void
  // onDrop puts the stored version in place of the person's own.
  onDrop: () => void
}) {
  return (
    <div className="problem" role="alert">
      <Icon name="triangle" />
      <div className="stack">
        <strong>{theirs === null ? 'Somebody else removed it.' : 'Somebody else changed it.'}</strong>
        <p>Nothing is stored yet.</p>
        <section aria-label="Their change">
          <h3>Their change</h3>
          <Changes changes={diff(absent(was), absent(theirs))} />
        </section>
        <section aria-label="Yours, over theirs">
          <h3>Yours, over theirs</h3>
          <Changes changes={diff(absent(theirs), absent(mine)).filter(({ pointer }) => !hidden.includes(pointer))} />
        </section>
        <p className="row">
          <Button onClick={onDrop}>Use theirs</Button>
          <Button onClick={onKeep}>Keep mine</Button>
        </p>
      </div>
    </div>
  )
}
