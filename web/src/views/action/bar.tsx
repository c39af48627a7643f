import { shown } from '../../lib/text'
import { duration, useNow } from '../../lib/time'
import { type Item, place, spans } from './way'

// Bar draws the waits and the calls of an action to scale. The list below says the same, and more.
export function Bar({ items, ended }: { items: readonly Item[]; ended: boolean }) {
  const now = useNow(ended ? 3_600_000 : 5_000)
  const all = spans(items, ended, now)
  const [first, last] = [all[0], all.at(-1)]
  if (!first || !last) return null
  const total = duration(Math.max(0, last.to - first.from))
  return (
    <figure className="way-bar">
      <svg
        viewBox="0 0 1000 14"
        preserveAspectRatio="none"
        role="img"
        aria-label={`Waits and calls over ${total}; each is listed below`}
      >
        {place(all).map((span, i) => (
          <rect
            key={i}
            className={`bar-${span.kind}`}
            x={span.x * 1000}
            y={span.kind === 'call' ? 0 : 4}
            width={Math.max(1, span.width * 1000 - 1)}
            height={span.kind === 'call' ? 14 : 6}
          >
            <title>{`${shown(span.words)}, ${duration(span.to - span.from)}`}</title>
          </rect>
        ))}
      </svg>
      <figcaption className="row small muted">
        <span>
          <i className="swatch swatch-person" /> waits for people
        </span>
        <span>
          <i className="swatch swatch-wait" /> waits
        </span>
        <span>
          <i className="swatch swatch-call" /> calls
        </span>
        <span className="grow" />
        <span>{total} in all</span>
      </figcaption>
    </figure>
  )
}
