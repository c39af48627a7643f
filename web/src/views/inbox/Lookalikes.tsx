// Addresses and hosts in the arguments that may be taken for others.
import type { Mark } from '../../form/marks'
import type { Schemas } from '../../lib/client'
import { Shown } from '../../ui'

// most is how many of the marks show before somebody opens the others.
const most = 3

export function Lookalikes({ of }: { of: Schemas['Action']['lookalikes'] }) {
  if (!of?.length) return null
  return (
    <div className="banner tone-drift">
      <Lines of={of.slice(0, most)} />
      {of.length > most && (
        <details>
          <summary>{of.length - most} more look-alikes</summary>
          <Lines of={of.slice(most)} />
        </details>
      )}
    </div>
  )
}

function Lines({ of }: { of: readonly Mark[] }) {
  return (
    <ul className="lookalikes" aria-label="Look-alike addresses">
      {of.map((one, i) => (
        <li key={i}>
          <code className="pointer">
            <Shown text={one.pointer} />
          </code>{' '}
          <strong>
            <Shown text={one.value} />
          </strong>{' '}
          <Shown text={one.text} />
        </li>
      ))}
    </ul>
  )
}

// lookalike returns a mark for one line.
export function lookalike(of: Schemas['InboxItem']['lookalikes']): string | undefined {
  const one = of?.find((each) => each.like) ?? of?.[0]
  if (!one) return undefined
  if (one.kind === 'hidden') return 'hidden characters'
  return one.like ? `like ${one.like}` : 'look-alike'
}
